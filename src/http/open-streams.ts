/** The event streams that are open, so that a server that stops can end them (contract 3.5). */
export class OpenStreams {
  readonly #open = new Set<AbortController>()
  #hasEnded = false

  /** @returns a function that forgets the stream. */
  add(stream: AbortController): () => void {
    this.#open.add(stream)
    if (this.#hasEnded) stream.abort()
    return () => this.#open.delete(stream)
  }

  /** Ends those that are open, and those that are opened later. */
  end(): void {
    this.#hasEnded = true
    for (const stream of this.#open) stream.abort()
  }
}
