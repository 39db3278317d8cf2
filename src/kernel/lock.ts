/** Lets one holder in at a time, first come first served. */
export class Lock {
  #last: Promise<void> = Promise.resolve()
  #holders = 0

  /** Whether somebody holds the lock or waits for it. */
  get isBusy(): boolean {
    return this.#holders > 0
  }

  /** Whether somebody waits for whoever holds it. */
  get isAwaited(): boolean {
    return this.#holders > 1
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const mine = Promise.withResolvers<void>()
    this.#last = mine.promise
    this.#holders++
    try {
      await before
      return await work()
    } finally {
      this.#holders--
      mine.resolve()
    }
  }
}
