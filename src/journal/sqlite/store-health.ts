import type { JournalHealth } from '../journal.ts'

const PROBE_EVERY_MS = 1000

/**
 * Whether one side of the store works: `degraded` from a call that failed until one that proves the contrary (J4). While
 * degraded it tries by itself now and then, so that a server which gets no work because it is degraded finds out.
 */
export class StoreHealth implements Disposable {
  readonly #probe: () => Promise<unknown>
  #state: JournalHealth = { state: 'ok' }
  #timer: NodeJS.Timeout | undefined
  #disposed = false

  /** `probe` tries the store, and reports what comes of it to `succeeded` or `failed` like any other call. */
  constructor(probe: () => Promise<unknown>) {
    this.#probe = probe
  }

  get state(): JournalHealth {
    return this.#state
  }

  succeeded(): void {
    if (this.#state.state === 'ok') return
    this.#state = { state: 'ok' }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  failed(reason: string): void {
    this.#state = { state: 'degraded', reason }
    if (!this.#disposed)
      this.#timer ??= setInterval(() => void this.#probe().catch(() => undefined), PROBE_EVERY_MS).unref()
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
