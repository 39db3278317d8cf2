/** Writes something whole, one write at a time: who asks while one goes on shares the next, which has everything. */
export class SharedWrite {
  readonly #write: () => Promise<void>
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(write: () => Promise<void>) {
    this.#write = write
  }

  /** @returns when what was there at the time of this call is written. */
  run(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      const writing = this.#write()
      this.#running = writing.catch(() => undefined)
      return writing
    })
    return this.#next
  }
}
