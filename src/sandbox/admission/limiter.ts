/** Lets so many in at once, so many wait in order, and turns the rest away. */
export class Limiter {
  readonly #atOnce: number
  readonly #waiting: number
  readonly #queue: (() => void)[] = []
  #running = 0

  constructor(atOnce: number, waiting: number) {
    this.#atOnce = atOnce
    this.#waiting = waiting
  }

  /**
   * @param whenFull makes the error for those who are turned away.
   * @throws what `whenFull` makes, at once; whatever `work` throws.
   */
  async run<T>(work: () => Promise<T>, whenFull: () => Error): Promise<T> {
    if (this.#running >= this.#atOnce) {
      if (this.#queue.length >= this.#waiting) throw whenFull()
      // Who leaves hands over its place: nobody who comes later can take it in between.
      await new Promise<void>((resolve) => this.#queue.push(resolve))
    } else this.#running++
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
