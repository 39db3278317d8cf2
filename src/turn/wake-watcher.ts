import type { SessionState } from '../journal/session-state.ts'
import type { JournalRecord } from '../journal/record.ts'
import { advance, elapse, forget, quietAt, type Wakes } from './wakes.ts'

/** After this long an activation that could not be opened is tried again. */
const RETRY_MS = 1000

/** Follows a session's committed records and asks for an activation when one is due (contract 3.4). */
export class WakeWatcher {
  readonly #wake: () => void
  #wakes: Wakes
  #timer: NodeJS.Timeout | undefined

  /**
   * @param state of the session as it was opened.
   * @param wake is called when the window has passed; it starts an activation unless one is running.
   */
  constructor(state: Pick<SessionState, 'marker' | 'isStopped'>, wake: () => void) {
    this.#wakes = quietAt(state.marker, state.isStopped)
    this.#wake = wake
  }

  records(records: readonly JournalRecord[]): void {
    const now = performance.now()
    for (const record of records) this.#wakes = advance(this.#wakes, record, now)
    this.#watch(now)
  }

  /** Whether an activation is to be started as soon as none is running. */
  get isDue(): boolean {
    return this.#wakes.phase === 'due'
  }

  get isPending(): boolean {
    return this.#wakes.phase !== 'quiet'
  }

  /** The session is stopped: what was noted starts nothing. */
  drop(): void {
    this.#wakes = forget(this.#wakes)
  }

  /** Asks again later: the activation that was due could not be opened. */
  retry(): void {
    setTimeout(() => this.#wake(), RETRY_MS).unref()
  }

  #watch(now: number): void {
    if (this.#wakes.phase !== 'gathering' || this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.#ring(), Math.max(1, Math.ceil(this.#wakes.at - now)))
  }

  /** A timer may have been set for a window that was given up since: the one that is open now decides. */
  #ring(): void {
    this.#timer = undefined
    const now = performance.now()
    this.#wakes = elapse(this.#wakes, now)
    this.#watch(now)
    if (this.isDue) this.#wake()
  }
}
