import { BrainError, messageOf } from '../../kernel/errors.ts'
import { errorText } from '../wire/box-frames.ts'
import type { Channel } from '../wire/channel.ts'
import { frame, type Part } from '../wire/frames.ts'
import { FILE_STEPS, FROM_SUPERVISOR, u32 } from '../wire/server-frames.ts'
import type { IncomingFile, OpenedFile, WorkspaceStore } from './files/workspace-files.ts'

const PIECE_BYTES = 1024 * 1024
/** Files that are read and written at once: each holds a descriptor of this process, which has others to serve. */
const MOST_STREAMS = 256
const OK = Buffer.of(0)
const FAILED = Buffer.of(1)

type Place = { readonly workspace: string; readonly path: string }
type Query = { readonly workspace: string; readonly prefix: string; readonly after: string; readonly limit: number }

/** Answers the server's questions about workspaces (client/file-client.ts), each on its own. */
export class FileService {
  readonly #store: WorkspaceStore
  readonly #server: Channel
  readonly #reads = new Map<number, OpenedFile>()
  readonly #writes = new Map<number, IncomingFile>()
  #next = 1

  constructor(store: WorkspaceStore, server: Channel) {
    this.#store = store
    this.#server = server
  }

  /** @param body valid until this returns */
  onFrame(body: Buffer): void {
    const id = body.readUInt32LE(0)
    const step = body[4] ?? 0
    const stream = body.readUInt32LE(5)
    this.#answer(step, stream, Buffer.from(body.subarray(9))).then(
      (answer) => this.#server.write(frame(FROM_SUPERVISOR.FILE, u32(id), OK, answer)),
      (error: unknown) => {
        const code = error instanceof BrainError ? error.code : 'internal'
        this.#server.write(frame(FROM_SUPERVISOR.FILE, u32(id), FAILED, errorText(code, messageOf(error))))
      },
    )
  }

  async #answer(step: number, stream: number, body: Buffer): Promise<Part> {
    const question = (): unknown => JSON.parse(body.toString('utf8'))
    const kind = FILE_STEPS[step]
    switch (kind) {
      case 'list': {
        const { workspace, ...query } = question() as Query
        return JSON.stringify(await this.#store.list(workspace, query))
      }
      case 'openRead':
        return this.#openRead(question() as Place)
      case 'read':
        return this.#read(stream)
      case 'openWrite': {
        this.#checkRoom()
        const { workspace, path } = question() as Place
        this.#writes.set(this.#next, this.#store.create(workspace, path))
        return u32(this.#next++)
      }
      case 'write':
        await this.#writing(stream).write(body)
        return ''
      case 'commit':
        return this.#commit(stream)
      case 'abandon':
        this.#abandon(stream)
        return ''
      case 'remove': {
        const { workspace, path } = question() as Place
        this.#store.remove(workspace, path)
        return ''
      }
      case 'destroy':
        await this.#store.destroy((question() as Place).workspace)
        return ''
      case undefined:
        throw new Error(`step ${step} of a file question`)
      default:
        return kind satisfies never
    }
  }

  #checkRoom(): void {
    if (this.#reads.size + this.#writes.size < MOST_STREAMS) return
    const message = `Cannot open the file: ${MOST_STREAMS} files are being read and written already; try again`
    throw new BrainError('overloaded', message)
  }

  #openRead({ workspace, path }: Place): Buffer {
    this.#checkRoom()
    const file = this.#store.open(workspace, path)
    this.#reads.set(this.#next, file)
    const answer = Buffer.allocUnsafe(12)
    answer.writeUInt32LE(this.#next++, 0)
    answer.writeDoubleLE(file.size, 4)
    return answer
  }

  async #read(stream: number): Promise<Buffer> {
    const file = this.#reads.get(stream)
    if (file === undefined) throw new Error(`no stream ${stream}`)
    const piece = await file.read(PIECE_BYTES)
    if (piece.length === 0) this.#abandon(stream)
    return piece
  }

  #writing(stream: number): IncomingFile {
    const file = this.#writes.get(stream)
    if (file === undefined) throw new Error(`no stream ${stream}`)
    return file
  }

  async #commit(stream: number): Promise<Buffer> {
    const file = this.#writing(stream)
    this.#writes.delete(stream)
    const { size } = await file.commit()
    const answer = Buffer.allocUnsafe(8)
    answer.writeDoubleLE(size)
    return answer
  }

  #abandon(stream: number): void {
    this.#reads.get(stream)?.close()
    this.#reads.delete(stream)
    this.#writes.get(stream)?.abort()
    this.#writes.delete(stream)
  }
}
