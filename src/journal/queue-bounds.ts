import { BrainError } from '../kernel/errors.ts'
import { describeLimit, type Limits } from '../contract/limits.ts'

/**
 * Counts what waits to be written, in all and per session, and refuses what would go over (J9). What finds its queue
 * empty always enters: a single append over a bound would otherwise be refused for ever, whatever the load.
 */
export class QueueBounds {
  readonly #limits: Limits
  readonly #sessions = new Map<string, number>()
  #total = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** @throws BrainError `overloaded`; nothing was counted then. */
  enter(bytes: number, session?: string): void {
    if (this.#total > 0 && this.#total + bytes > this.#limits.journalQueueBytes)
      throw new BrainError(
        'overloaded',
        `Cannot write to the journal: ${this.#total} bytes are waiting and ${bytes} more go over the limit of ${describeLimit('journalQueueBytes', this.#limits)}`,
      )
    if (session !== undefined) this.#enterSession(bytes, session)
    this.#total += bytes
  }

  leave(bytes: number, session?: string): void {
    this.#total -= bytes
    if (session === undefined) return
    const left = (this.#sessions.get(session) ?? 0) - bytes
    if (left > 0) this.#sessions.set(session, left)
    else this.#sessions.delete(session)
  }

  #enterSession(bytes: number, session: string): void {
    const waiting = this.#sessions.get(session) ?? 0
    if (waiting > 0 && waiting + bytes > this.#limits.sessionQueueBytes)
      throw new BrainError(
        'overloaded',
        `Cannot append to session "${session}": ${waiting} bytes of it are waiting and ${bytes} more go over the limit of ${describeLimit('sessionQueueBytes', this.#limits)}`,
      )
    this.#sessions.set(session, waiting + bytes)
  }
}
