import {
  FACTS,
  FILE_CODES,
  FILE_OP,
  MAX_DATA_BYTES,
  NO_HANDLE,
  OPEN_BIT,
  REQUEST,
  STATUS_LIMIT,
} from '../../wire/files.ts'
import type { Handle, Listing, ListingPage, OpenDirectory, OpenFile } from './handle.ts'
import { checkPath } from './path.ts'
import { codeOf, refuse } from './refusal.ts'
import { type Facts, writeFacts } from './system.ts'

/** A directory that the guest finds under a name of its own. Its handle is its place in the list of mounts. */
export type BrokerMount = {
  readonly guest: string
  readonly directory: OpenDirectory
  /** Runs once, when the invocation is over. */
  readonly release?: () => void
}

/** Bounds of one invocation (contract A13); `fileOps` 0 = unlimited. */
export type FileLimits = {
  readonly openFiles: number
  readonly fileOps: number
  readonly readBytes: number
}

const STATUS: ReadonlyMap<string, number> = new Map(FILE_CODES.map((code, status) => [code, status]))
const NOTHING = Buffer.alloc(0)
const AT_END = 1

type Request = {
  readonly bits: number
  readonly handle: number
  readonly other: number
  readonly a: number
  readonly b: number
  readonly one: Buffer
  readonly two: Buffer
}

type Reply = { value: number; extra: number; credit: number; facts: Facts | undefined; data: Buffer }

function readRequest(bytes: Buffer): Request {
  if (bytes.length < REQUEST.HEAD) refuse('invalid')
  const end = REQUEST.HEAD + bytes.readUInt32LE(REQUEST.ONE_LENGTH)
  if (end > bytes.length) refuse('invalid')
  return {
    bits: bytes.readUInt16LE(REQUEST.BITS),
    handle: bytes.readUInt32LE(REQUEST.HANDLE),
    other: bytes.readUInt32LE(REQUEST.OTHER),
    a: bytes.readDoubleLE(REQUEST.A),
    b: bytes.readDoubleLE(REQUEST.B),
    one: bytes.subarray(REQUEST.HEAD, end),
    two: bytes.subarray(end),
  }
}

/** A length from a box: NaN, fractions and negative numbers are refused, more than `most` is `most`. */
const lengthOf = (value: number, most: number): number =>
  Number.isInteger(value) && value >= 0 ? Math.min(value, most) : refuse('invalid')

const offsetOf = (value: number): number => (Number.isSafeInteger(value) && value >= 0 ? value : refuse('invalid'))

/** An offset or size that a file may grow to. */
function growthTo(value: number, more: number): number {
  const at = Number.isInteger(value) && value >= 0 ? value : refuse('invalid')
  return Number.isSafeInteger(at + more) ? at : refuse('file-too-large')
}

/**
 * The files of one invocation: every path and handle of its box is answered here, out of what its grants mount. Handles
 * are numbers that mean nothing elsewhere; all of them end with `close`. Never throws for what a box says.
 */
export class FileBroker {
  readonly #handles = new Map<number, Handle>()
  readonly #listings = new Map<number, Listing>()
  readonly #mounts: readonly BrokerMount[]
  readonly #limits: FileLimits
  #next = 0
  #ops = 0
  #closed = false

  constructor(mounts: readonly BrokerMount[], limits: FileLimits) {
    this.#mounts = mounts
    this.#limits = limits
    for (const { directory } of mounts) this.#handles.set(this.#next++, directory)
  }

  /** Requests answered so far. */
  get ops(): number {
    return this.#ops
  }

  /** Whether the box asked more often than `fileOps`: its invocation ends with `file_limit`. */
  get exhausted(): boolean {
    return this.#limits.fileOps > 0 && this.#ops > this.#limits.fileOps
  }

  /** The reply to one request: its head, and data where there is some. */
  answer(request: Buffer): Buffer[] {
    const reply: Reply = { value: 0, extra: 0, credit: 0, facts: undefined, data: NOTHING }
    const head = Buffer.alloc(FACTS.HEAD)
    this.#ops++
    if (this.exhausted) {
      head[FACTS.STATUS] = STATUS_LIMIT
      return [head]
    }
    try {
      if (this.#closed) refuse('bad-descriptor')
      const parts = readRequest(request)
      const closing = request.readUInt32LE(REQUEST.CLOSING)
      if (closing !== NO_HANDLE) this.#close(closing)
      this.#run(request[REQUEST.OP] ?? 0, parts, reply)
    } catch (error) {
      head[FACTS.STATUS] = STATUS.get(codeOf(error)) ?? STATUS_LIMIT
      return [head]
    }
    if (reply.facts !== undefined) writeFacts(head, 0, reply.facts)
    else head.writeDoubleLE(reply.credit, FACTS.SIZE)
    head.writeUInt16LE(reply.extra, FACTS.EXTRA)
    head.writeUInt32LE(reply.value, FACTS.VALUE)
    return reply.data.length > 0 ? [head, reply.data] : [head]
  }

  /** Closes everything that is still open and gives the mounts back. Again: does nothing. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const listing of this.#listings.values()) listing.close()
    for (const handle of this.#handles.values()) handle.close()
    this.#listings.clear()
    this.#handles.clear()
    for (const mount of this.#mounts) mount.release?.()
  }

  #handle(id: number): Handle {
    return this.#handles.get(id) ?? refuse('bad-descriptor')
  }

  #directory(id: number): OpenDirectory {
    const handle = this.#handle(id)
    return handle.type === 'directory' ? handle : refuse('not-directory')
  }

  #file(id: number): OpenFile {
    const handle = this.#handle(id)
    return handle.type === 'file' ? handle : refuse('is-directory')
  }

  #reserve(): void {
    if (this.#handles.size - this.#mounts.length + this.#listings.size >= this.#limits.openFiles)
      refuse('insufficient-memory')
  }

  /** The handles of the mounts stay: guests drop them, and still reach the files by path (spine trap 5). */
  #close(id: number): void {
    if (id < this.#mounts.length) return
    const handle = this.#handle(id)
    this.#handles.delete(id)
    handle.close()
  }

  #run(op: number, request: Request, reply: Reply): void {
    switch (op) {
      case FILE_OP.OPEN:
        return this.#open(request, reply)
      case FILE_OP.CLOSE:
        return this.#close(request.handle)
      case FILE_OP.STAT:
        reply.facts = this.#handle(request.handle).stat()
        return
      case FILE_OP.READ:
      case FILE_OP.WRITE:
      case FILE_OP.APPEND:
      case FILE_OP.SET_SIZE:
        return this.#runFile(op, request, reply)
      case FILE_OP.SYNC: {
        const handle = this.#handle(request.handle)
        return handle.type === 'file' ? handle.sync() : undefined
      }
      case FILE_OP.SET_TIMES:
        return this.#handle(request.handle).setTimes(request.two)
      case FILE_OP.LIST:
        return this.#list(request, reply)
      case FILE_OP.END_LIST:
        return this.#endList(request.other)
      default:
        return this.#runDirectory(op, request, reply)
    }
  }

  #runFile(op: number, { handle, a, b, two }: Request, reply: Reply): void {
    const file = this.#file(handle)
    switch (op) {
      case FILE_OP.READ: {
        const length = lengthOf(a, Math.min(this.#limits.readBytes, MAX_DATA_BYTES))
        reply.data = file.read(offsetOf(b), length)
        reply.extra = reply.data.length < length ? AT_END : 0
        return
      }
      case FILE_OP.WRITE:
        reply.value = file.write(growthTo(b, two.length), two)
        reply.credit = file.credit()
        return
      case FILE_OP.APPEND:
        reply.value = file.append(two)
        reply.credit = file.credit()
        return
      default:
        file.setSize(growthTo(a, 0))
    }
  }

  #runDirectory(op: number, request: Request, reply: Reply): void {
    const directory = this.#directory(request.handle)
    const follow = (request.bits & OPEN_BIT.FOLLOW) !== 0
    const path = checkPath(request.one)
    switch (op) {
      case FILE_OP.STAT_AT:
        reply.facts = directory.statAt(path, follow)
        return
      case FILE_OP.MAKE_DIRECTORY:
        return directory.makeDirectory(path)
      case FILE_OP.REMOVE_DIRECTORY:
        return directory.removeDirectory(path)
      case FILE_OP.UNLINK:
        return directory.unlink(path)
      case FILE_OP.RENAME:
        return directory.rename(path, this.#directory(request.other), checkPath(request.two))
      case FILE_OP.SYMLINK:
        return directory.symlink(request.two, path)
      case FILE_OP.READ_LINK:
        reply.data = directory.readLink(path)
        return
      case FILE_OP.SET_TIMES_AT:
        return directory.setTimesAt(path, follow, request.two)
      default:
        refuse('unsupported')
    }
  }

  #open(request: Request, reply: Reply): void {
    const directory = this.#directory(request.handle)
    this.#reserve()
    const handle = directory.open(checkPath(request.one), request.bits)
    reply.value = this.#next++
    this.#handles.set(reply.value, handle)
    reply.facts = handle.stat()
  }

  #list(request: Request, reply: Reply): void {
    let id = request.other
    if (id === NO_HANDLE) {
      const directory = this.#directory(request.handle)
      this.#reserve()
      id = this.#next++
      this.#listings.set(id, directory.list())
    }
    const { entries, last } = this.#nextPage(id)
    reply.data = entries
    reply.extra = last ? AT_END : 0
    reply.value = id
    if (last) this.#endList(id)
  }

  #nextPage(id: number): ListingPage {
    const listing = this.#listings.get(id) ?? refuse('bad-descriptor')
    try {
      return listing.next()
    } catch (error) {
      this.#endList(id)
      throw error
    }
  }

  #endList(id: number): void {
    this.#listings.get(id)?.close()
    this.#listings.delete(id)
  }
}
