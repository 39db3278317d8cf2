/** Joins those who ask for the same thing while it is being made: they get the same result or the same failure. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Promise<T>>()

  run(key: string, work: () => Promise<T>): Promise<T> {
    const flying = this.#flights.get(key)
    if (flying !== undefined) return flying
    const flight = work().finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  /** Resolves when nothing flies any more. */
  async idle(): Promise<void> {
    while (this.#flights.size > 0) await Promise.allSettled(this.#flights.values())
  }
}
