/** Time that this process computes for the requests of one call; what it waits for others is not counted. */
export class WorkMeter {
  #ms = 0
  #since: number | undefined

  get ms(): number {
    return this.#ms
  }

  /** Counts what `work` takes; once, where it is within what is counted already. */
  run<Result>(work: () => Result): Result {
    if (this.#since !== undefined) return work()
    this.begin()
    try {
      return work()
    } finally {
      this.end()
    }
  }

  /** For two listeners around those of others, on one event. */
  begin(): void {
    this.#since = performance.now()
  }

  end(): void {
    if (this.#since !== undefined) this.#ms += performance.now() - this.#since
    this.#since = undefined
  }
}
