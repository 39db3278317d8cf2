import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import { elapse, note, quiet, take, WAKE_WINDOW_MS, type Wakes } from './wakes.ts'

/** Sees a session's committed records and asks for an activation when they call for one (contract 3.4). */
export class WakeWatcher {
  readonly #wake: () => void
  readonly #silent = new Set<number>()
  #wakes: Wakes = quiet
  #timer: NodeJS.Timeout | undefined

  /** @param wake is called when the window has passed; it starts an activation unless one is running. */
  constructor(wake: () => void) {
    this.#wake = wake
  }

  records(records: readonly JournalRecord[]): void {
    for (const record of records) this.#record(record)
  }

  #record(record: JournalRecord): void {
    const cancelled = dataOf(record, 'tool_cancel_started')
    if (cancelled !== undefined) this.#silent.add(cancelled.target_sequence)
    const { origin } = record
    // A direct call's records stay in the batch, but none of them wakes (contract A11).
    if (record.event_type === 'tool_call_started' && origin?.kind === 'application') this.#silent.add(record.sequence)
    if (origin?.kind !== 'tool') return
    const ended = record.event_type === 'tool_call_ended'
    const wakes = ended || record.event_type === 'tool_result_emitted' || !isReservedKind(record.event_type)
    if (wakes && !this.#silent.has(origin.sequence)) this.#note(record.sequence)
    if (ended) this.#silent.delete(origin.sequence)
  }

  #note(sequence: number): void {
    this.#wakes = note(this.#wakes, sequence, performance.now())
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#wakes = elapse(this.#wakes)
      this.#wake()
    }, WAKE_WINDOW_MS)
  }

  /** Calls that were open and direct before this process knew the session. */
  ignore(sequence: number): void {
    this.#silent.add(sequence)
  }

  /** Whether an activation is due in a session whose completion marker is `marker`; takes the note with it. */
  take(marker: number): boolean {
    const { start, wakes } = take(this.#wakes, marker)
    this.#wakes = wakes
    return start
  }

  get isPending(): boolean {
    return this.#wakes.phase !== 'quiet'
  }

  /** Interrupts and failed activations drop what was noted. */
  drop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wakes = quiet
  }
}
