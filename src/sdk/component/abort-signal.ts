import { GuestEvent, GuestEventTarget } from './event-target.ts'
import { setTimer } from './event-loop.ts'

let abort: (signal: GuestAbortSignal, reason: unknown) => void

export class GuestAbortSignal extends GuestEventTarget {
  #isAborted = false
  #reason: unknown
  onabort: ((event: GuestEvent) => void) | null = null

  static {
    abort = (signal, reason) => signal.#abort(reason)
    Object.defineProperty(this, 'name', { value: 'AbortSignal' })
  }

  get aborted(): boolean {
    return this.#isAborted
  }

  get reason(): unknown {
    return this.#reason
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason
  }

  static abort(reason?: unknown): GuestAbortSignal {
    const signal = new GuestAbortSignal()
    signal.#abort(reason)
    return signal
  }

  static timeout(ms: number): GuestAbortSignal {
    const signal = new GuestAbortSignal()
    setTimer(() => signal.#abort(new DOMException('The operation timed out', 'TimeoutError')), ms, false)
    return signal
  }

  static any(signals: Iterable<GuestAbortSignal>): GuestAbortSignal {
    const any = new GuestAbortSignal()
    for (const signal of signals)
      if (signal.aborted) any.#abort(signal.reason)
      else signal.addEventListener('abort', () => any.#abort(signal.reason), { once: true })
    return any
  }

  #abort(reason: unknown = new DOMException('The operation was aborted', 'AbortError')): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#reason = reason
    this.dispatchEvent(new GuestEvent('abort'))
  }
}

export class GuestAbortController {
  readonly signal = new GuestAbortSignal()

  abort(reason?: unknown): void {
    abort(this.signal, reason)
  }
}
