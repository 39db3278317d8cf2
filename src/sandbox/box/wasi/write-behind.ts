import type { FileCode } from '../../wire/files.ts'
import { Failure } from './failure.ts'
import type { FileSink } from './file-sink.ts'

const BEHIND_BYTES = 256 * 1024

/** For all invocations of this box, one after another. Most never need it. */
let shared: Buffer | undefined

/** Written bytes that were never stored, and that the guest was not told of. Ends its call. */
export class LostWrite extends Error {
  override readonly name = 'LostWrite'

  constructor(code: FileCode) {
    super(`bytes that the tool wrote to a file could not be stored: ${code}`)
  }
}

/**
 * What one sink has taken and not yet sent. Only one has any at a time, and everything that could see the difference
 * sends it first: other file requests, host calls, waiting, the end of the call. A call that is killed loses it.
 */
export class WriteBehind {
  #sink: FileSink | undefined
  #length = 0
  #lost: { readonly sink: FileSink; readonly code: FileCode } | undefined

  /** @returns false where it is not taken: it does not fit, or another sink's bytes are there */
  keep(sink: FileSink, bytes: Uint8Array): boolean {
    if (this.#sink !== undefined && this.#sink !== sink) return false
    if (this.#length + bytes.length > BEHIND_BYTES) return false
    shared ??= Buffer.allocUnsafeSlow(BEHIND_BYTES)
    shared.set(bytes, this.#length)
    this.#length += bytes.length
    this.#sink = sink
    return true
  }

  /** Sends what is there. A file error is kept for its sink. */
  flush(): void {
    const sink = this.#sink
    if (sink === undefined || shared === undefined) return
    const bytes = shared.subarray(0, this.#length)
    this.#sink = undefined
    this.#length = 0
    try {
      sink.put(bytes)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const code = error.payload as FileCode
      sink.fail(code)
      this.#lost = { sink, code }
    }
  }

  /** The guest has learnt what became of this sink's bytes. */
  told(sink: FileSink): void {
    if (this.#lost?.sink === sink) this.#lost = undefined
  }

  /** Sends what is there, before something is said that relies on it. @throws LostWrite */
  settle(): void {
    this.flush()
    if (this.#lost !== undefined) throw new LostWrite(this.#lost.code)
  }
}
