/** Work on one key at a time, in the order of asking; different keys do not wait for each other. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const mine = (async () => {
      await before?.catch(() => {}) // whoever asked for it was told
      return await work()
    })()
    this.#last.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key)
    }
  }
}
