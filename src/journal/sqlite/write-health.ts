import type { JournalHealth } from '../journal.ts'

const PROBE_EVERY_MS = 1000

/**
 * Whether writes reach the disk: `degraded` from one that failed until one that succeeds (J4). While degraded it makes a
 * small write of its own now and then, so that a server which gets no work because it is degraded finds out.
 */
export class WriteHealth implements Disposable {
  readonly #probe: () => Promise<unknown>
  #state: JournalHealth = { state: 'ok' }
  #timer: NodeJS.Timeout | undefined
  #disposed = false

  /** `probe` writes, and reports what comes of it to `succeeded` or `failed` like any other write. */
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
