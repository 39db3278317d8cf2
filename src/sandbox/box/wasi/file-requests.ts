import { FACTS, FILE_CODES, FILE_OP, MAX_PATH_BYTES, NO_HANDLE, REQUEST, STATUS_LIMIT } from '../../wire/files.ts'
import { LIMITS } from '../../../contract/limits.ts'
import { LimitReached } from './ending.ts'
import { failFile } from './failure.ts'
import type { FileSink } from './file-sink.ts'
import { KnownFacts } from './known.ts'
import { WriteBehind } from './write-behind.ts'

export type RequestFields = {
  readonly other?: number
  readonly bits?: number
  readonly a?: number
  readonly b?: number
  readonly path?: string
  readonly secondPath?: string
  readonly data?: Uint8Array
}

type Send = (parts: readonly Uint8Array[]) => Buffer

const NO_FIELDS: RequestFields = {}

/** What may change facts that were learnt. */
const CHANGES: ReadonlySet<number> = new Set([
  FILE_OP.WRITE,
  FILE_OP.APPEND,
  FILE_OP.SET_SIZE,
  FILE_OP.SET_TIMES,
  FILE_OP.SET_TIMES_AT,
  FILE_OP.MAKE_DIRECTORY,
  FILE_OP.REMOVE_DIRECTORY,
  FILE_OP.UNLINK,
  FILE_OP.RENAME,
  FILE_OP.SYMLINK,
])

/** What may make a path mean another object than before. */
const MOVES: ReadonlySet<number> = new Set([FILE_OP.REMOVE_DIRECTORY, FILE_OP.UNLINK, FILE_OP.RENAME, FILE_OP.SYMLINK])

/** Asks the broker. Memory for requests is shared by all of a call: one is outstanding at a time. */
export class FileRequests {
  readonly known = new KnownFacts()
  /** Grows with every change of this call: what was read ahead before is stale. */
  changes = 0
  /** Grows when a path may mean something else: facts are not looked up by paths from before. */
  moves = 0
  readonly #send: Send
  readonly #request = Buffer.alloc(REQUEST.HEAD + 2 * MAX_PATH_BYTES)
  readonly #behind = new WriteBehind()
  #closing = NO_HANDLE

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * @returns the reply, valid until the next request
   * @throws Failure with the file error, LimitReached
   */
  ask(op: number, handle: number, fields: RequestFields = NO_FIELDS): Buffer {
    this.#behind.flush()
    if (CHANGES.has(op)) this.changed()
    if (MOVES.has(op)) this.moves++
    const end = this.#write(op, handle, fields)
    const head = this.#request.subarray(0, end)
    const reply = this.#send(fields.data === undefined ? [head] : [head, fields.data])
    const status = reply[FACTS.STATUS] ?? STATUS_LIMIT
    if (status === 0) return reply
    const code = FILE_CODES[status]
    if (code !== undefined && code !== 'ok') return failFile(code)
    const { unit, variable } = LIMITS.guestFileOps
    throw new LimitReached('file_limit', `The component used up its file ${unit} (${variable})`)
  }

  /** Forgets what was learnt: this call changes something. */
  changed(): void {
    this.changes++
    this.known.forget()
  }

  /** Takes bytes of a sink that are sent later. @returns false where they are not taken */
  keep(sink: FileSink, bytes: Uint8Array): boolean {
    if (!this.#behind.keep(sink, bytes)) return false
    this.changed()
    return true
  }

  /** Sends what sinks have kept back; what goes wrong with it is told to the sink. */
  flush(): void {
    this.#behind.flush()
  }

  /** The guest has learnt that bytes of this sink are lost. */
  told(sink: FileSink): void {
    this.#behind.told(sink)
  }

  /** Like {@link flush}, where nobody would be told. @throws LostWrite */
  settle(): void {
    this.#behind.settle()
  }

  /** Closes a handle with the next request, whatever that is; the end of the invocation closes it as well. */
  closeLater(handle: number): void {
    this.#behind.flush()
    if (this.#closing === NO_HANDLE) this.#closing = handle
    else this.ask(FILE_OP.CLOSE, handle)
  }

  #write(op: number, handle: number, fields: RequestFields): number {
    const request = this.#request
    request[REQUEST.OP] = op
    request.writeUInt16LE(fields.bits ?? 0, REQUEST.BITS)
    request.writeUInt32LE(handle, REQUEST.HANDLE)
    request.writeUInt32LE(fields.other ?? NO_HANDLE, REQUEST.OTHER)
    request.writeUInt32LE(this.#closing, REQUEST.CLOSING)
    this.#closing = NO_HANDLE
    request.writeDoubleLE(fields.a ?? 0, REQUEST.A)
    request.writeDoubleLE(fields.b ?? 0, REQUEST.B)
    const one = this.#writePath(fields.path, REQUEST.HEAD)
    request.writeUInt32LE(one - REQUEST.HEAD, REQUEST.ONE_LENGTH)
    return this.#writePath(fields.secondPath, one)
  }

  #writePath(path: string | undefined, at: number): number {
    if (path === undefined) return at
    if (Buffer.byteLength(path) > MAX_PATH_BYTES) failFile('name-too-long')
    return at + this.#request.write(path, at)
  }
}
