import { BrainError, clip, ERRORS, type ErrorCode } from '../../kernel/errors.ts'
import type { FileEntry, WorkspaceFiles } from '../sandbox.ts'
import { readError } from '../wire/box-frames.ts'
import { frame } from '../wire/frames.ts'
import { FILE_STEPS, type FileStep, TO_SUPERVISOR, u32 } from '../wire/server-frames.ts'
import { FilePieces } from './file-pieces.ts'

type Waiting = { readonly resolve: (body: Buffer) => void; readonly reject: (error: BrainError) => void }
type Request = { readonly stream?: number; readonly body?: Uint8Array | string }

const PIECE_BYTES = 1024 * 1024
const NO_STREAM = 0

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

/**
 * Files of workspaces, through the supervisor. A stream is a series of questions of at most 1 MiB, each asked when the
 * one before is answered: whoever is slow slows the other side down, and nothing is queued.
 */
export class FileClient implements WorkspaceFiles {
  readonly #send: (bytes: Buffer) => boolean
  readonly #waiting = new Map<number, Waiting>()
  #next = 0

  constructor(send: (bytes: Buffer) => boolean) {
    this.#send = send
  }

  async list(
    workspace: string,
    query: { prefix: string; after: string; limit: number },
  ): Promise<readonly FileEntry[]> {
    const body = await this.#ask('list', { body: JSON.stringify({ workspace, ...query }) })
    return JSON.parse(body.toString('utf8')) as FileEntry[]
  }

  async read(workspace: string, path: string): Promise<{ size: number; body: AsyncIterable<Uint8Array> }> {
    const opened = await this.#ask('openRead', { body: JSON.stringify({ workspace, path }) })
    return { size: opened.readDoubleLE(4), body: this.#pieces(opened.readUInt32LE(0)) }
  }

  async write(workspace: string, path: string, body: AsyncIterable<Uint8Array>): Promise<{ size: number }> {
    const opened = await this.#ask('openWrite', { body: JSON.stringify({ workspace, path }) })
    const stream = opened.readUInt32LE(0)
    try {
      for await (const chunk of body)
        for (let at = 0; at < chunk.length; at += PIECE_BYTES)
          await this.#ask('write', { stream, body: chunk.subarray(at, at + PIECE_BYTES) })
      const committed = await this.#ask('commit', { stream })
      return { size: committed.readDoubleLE(0) }
    } catch (error) {
      await this.#ask('abandon', { stream }).catch(() => {})
      throw error
    }
  }

  async remove(workspace: string, path: string): Promise<void> {
    await this.#ask('remove', { body: JSON.stringify({ workspace, path }) })
  }

  async destroy(workspace: string): Promise<void> {
    await this.#ask('destroy', { body: JSON.stringify({ workspace }) })
  }

  /** An answer of the supervisor. @param body valid until this returns */
  onAnswer(body: Buffer): void {
    const id = body.readUInt32LE(0)
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (waiting === undefined) return
    if (body[4] === 0) return waiting.resolve(Buffer.from(body.subarray(5)))
    const { code, message } = readError(body.subarray(5))
    waiting.reject(new BrainError(isErrorCode(code) ? code : 'internal', clip(message)))
  }

  /** The supervisor is gone: nothing that was asked is answered. */
  onLost(): void {
    for (const { reject } of this.#waiting.values()) reject(lost())
    this.#waiting.clear()
  }

  #pieces(stream: number): FilePieces {
    const abandon = () => this.#ask('abandon', { stream }).then(undefined, () => {})
    return new FilePieces({ read: () => this.#ask('read', { stream }), abandon: () => void abandon() })
  }

  #ask(step: FileStep, { stream = NO_STREAM, body = '' }: Request): Promise<Buffer> {
    const id = this.#next
    this.#next = (id + 1) >>> 0
    return new Promise((resolve, reject) => {
      const sent = this.#send(
        frame(TO_SUPERVISOR.FILE, u32(id), Buffer.of(FILE_STEPS.indexOf(step)), u32(stream), body),
      )
      if (sent) this.#waiting.set(id, { resolve, reject })
      else reject(lost())
    })
  }
}

const lost = (): BrainError =>
  new BrainError('storage_unavailable', 'Cannot reach the files of the workspace: their process was lost; try again')
