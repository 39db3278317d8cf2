type Source = {
  /** The next piece; empty at the end, which closes the stream. */
  readonly read: () => Promise<Buffer>
  /** Closes the stream before its end. */
  readonly abandon: () => void
}

/**
 * The bytes of one stream. An object and no generator: one that was never started does not run its `finally`, and the
 * stream of a client that left before the first byte would stay open.
 */
export class FilePieces implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: Source
  #open = true

  constructor(source: Source) {
    this.#source = source
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#open) return { done: true, value: undefined }
    try {
      const value = await this.#source.read()
      if (value.length > 0) return { done: false, value }
      this.#open = false
      return { done: true, value: undefined }
    } catch (error) {
      this.#abandon()
      throw error
    }
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#abandon()
    return Promise.resolve({ done: true, value: undefined })
  }

  throw(error: unknown): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#abandon()
    return Promise.reject(error as Error)
  }

  #abandon(): void {
    if (!this.#open) return
    this.#open = false
    this.#source.abandon()
  }
}
