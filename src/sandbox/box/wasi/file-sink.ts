import { FACTS, FILE_OP, type FileCode } from '../../wire/files.ts'
import { failFile } from './failure.ts'
import type { FileRequests } from './file-requests.ts'
import type { Sink } from './streams.ts'

/**
 * Writes a file from `offset` on, or at its end. A libc writes 4 KiB at a time, and each piece would be a request: what
 * follows the first one is kept back, as far as the broker has reserved room for it, and leaves in large pieces
 * (write-behind.ts).
 */
export class FileSink implements Sink {
  readonly #files: FileRequests
  readonly #handle: number
  /** Where the next byte goes; undefined = at the end, wherever that is at each write. */
  #at: number | undefined
  #credit = 0
  #failed: FileCode | undefined

  constructor(files: FileRequests, handle: number, offset: number | undefined) {
    this.#files = files
    this.#handle = handle
    this.#at = offset
  }

  write(contents: Uint8Array): void {
    this.#raise()
    if (this.#keep(contents)) return
    this.flush()
    // What has just left may have brought new credit.
    if (!this.#keep(contents)) this.put(contents)
  }

  flush(): void {
    this.#files.flush()
    this.#raise()
  }

  /** Sends all of it. @throws Failure with the file error */
  put(contents: Uint8Array): void {
    for (let done = 0; done < contents.length;) {
      const data = contents.subarray(done)
      const reply =
        this.#at === undefined
          ? this.#files.ask(FILE_OP.APPEND, this.#handle, { data })
          : this.#files.ask(FILE_OP.WRITE, this.#handle, { b: this.#at, data })
      const count = reply.readUInt32LE(FACTS.VALUE)
      this.#credit = reply.readDoubleLE(FACTS.SIZE)
      if (count === 0) failFile('io')
      done += count
      if (this.#at !== undefined) this.#at += count
    }
  }

  /** Bytes that were kept back are lost: the next operation says so. */
  fail(code: FileCode): void {
    this.#failed = code
  }

  #keep(contents: Uint8Array): boolean {
    if (contents.length > this.#credit || !this.#files.keep(this, contents)) return false
    this.#credit -= contents.length
    return true
  }

  #raise(): void {
    if (this.#failed === undefined) return
    this.#files.told(this)
    failFile(this.#failed)
  }
}
