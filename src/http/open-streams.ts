/** The event streams that are open, so that a server that stops can end them (contract 3.5). */
export class OpenStreams {
  readonly #open = new Set<AbortController>()

  /** @returns a function that forgets the stream. */
  add(stream: AbortController): () => void {
    this.#open.add(stream)
    return () => this.#open.delete(stream)
  }

  end(): void {
    for (const stream of this.#open) stream.abort()
  }
}
