// setTimeout counts in 32 bits.
const LONGEST_MS = 0x7fff_ffff

/**
 * Deadlines of many things on one timer. Nearly all of them are taken back long before they are due, so that setting and
 * taking back cost a map entry; what is due is looked for only when the timer fires.
 */
export class Alarms<Subject> {
  readonly #at = new Map<Subject, number>()
  readonly #ring: (subject: Subject) => void
  readonly #now: () => number
  #timer: NodeJS.Timeout | undefined
  #armedFor = Number.POSITIVE_INFINITY

  /** @param ring called once per alarm, which is then gone. */
  constructor(ring: (subject: Subject) => void, now: () => number = () => performance.now()) {
    this.#ring = ring
    this.#now = now
  }

  get size(): number {
    return this.#at.size
  }

  /** Sets the alarm of a subject to an instant of the monotonic clock, replacing an earlier one. */
  set(subject: Subject, at: number): void {
    this.#at.set(subject, at)
    if (at < this.#armedFor) this.#arm(at)
  }

  clear(subject: Subject): void {
    this.#at.delete(subject)
  }

  #arm(at: number): void {
    clearTimeout(this.#timer)
    this.#armedFor = at
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(at - this.#now(), 0), LONGEST_MS))
  }

  #fire(): void {
    this.#armedFor = Number.POSITIVE_INFINITY
    const now = this.#now()
    const due: Subject[] = []
    let next = Number.POSITIVE_INFINITY
    for (const [subject, at] of this.#at) {
      if (at <= now) due.push(subject)
      else if (at < next) next = at
    }
    for (const subject of due) this.#at.delete(subject)
    if (next < Number.POSITIVE_INFINITY) this.#arm(next)
    for (const subject of due) this.#ring(subject)
  }
}
