/** The event streams that are open, so that a server that stops can end them (contract 3.5). */
export class OpenStreams {
  readonly #open = new Map<AbortController, () => boolean>()
  #hasEnded = false

  /**
   * @param mayGoOn whether who opened the stream may still do so
   * @returns a function that forgets the stream
   */
  add(stream: AbortController, mayGoOn: () => boolean): () => void {
    this.#open.set(stream, mayGoOn)
    if (this.#hasEnded) stream.abort()
    return () => this.#open.delete(stream)
  }

  /** Ends those that could not be opened now: whose token was withdrawn. */
  endWithdrawn(): void {
    for (const [stream, mayGoOn] of this.#open) if (!mayGoOn()) stream.abort()
  }

  /** Ends those that are open, and those that are opened later. */
  end(): void {
    this.#hasEnded = true
    for (const stream of this.#open.keys()) stream.abort()
  }
}
