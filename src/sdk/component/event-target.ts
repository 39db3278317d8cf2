type Listener = ((event: GuestEvent) => void) | { handleEvent(event: GuestEvent): void }
type Signal = GuestEventTarget & { readonly aborted: boolean }
type ListenerOptions = boolean | { readonly once?: boolean; readonly signal?: Signal }

/** As much of DOM's events as targets without a tree have. */
export class GuestEvent {
  readonly type: string
  target: GuestEventTarget | null = null
  defaultPrevented = false
  readonly cancelable: boolean
  isStopped = false

  constructor(type: string, { cancelable = false }: { readonly cancelable?: boolean } = {}) {
    this.type = String(type)
    this.cancelable = cancelable
  }

  get currentTarget(): GuestEventTarget | null {
    return this.target
  }

  preventDefault(): void {
    if (this.cancelable) this.defaultPrevented = true
  }

  stopImmediatePropagation(): void {
    this.isStopped = true
  }

  stopPropagation(): void {}
}

export class GuestEventTarget {
  readonly #listeners: { readonly type: string; readonly listener: Listener; readonly once: boolean }[] = []

  addEventListener(type: string, listener: Listener | null, options?: ListenerOptions): void {
    const { once = false, signal } = typeof options === 'object' ? options : {}
    if (listener === null || listener === undefined || signal?.aborted === true) return
    if (this.#listeners.some((one) => one.type === type && one.listener === listener)) return
    this.#listeners.push({ type, listener, once })
    signal?.addEventListener('abort', () => this.removeEventListener(type, listener), { once: true })
  }

  removeEventListener(type: string, listener: Listener | null): void {
    const index = this.#listeners.findIndex((one) => one.type === type && one.listener === listener)
    if (index >= 0) this.#listeners.splice(index, 1)
  }

  /** What a listener throws is thrown when all of them have heard of the event, as a job of its own. */
  dispatchEvent(event: GuestEvent): boolean {
    event.target = this
    const property: unknown = (this as unknown as Record<string, unknown>)[`on${event.type}`]
    if (typeof property === 'function') call(property as Listener, event)
    for (const { type, listener, once } of this.#listeners.slice()) {
      if (event.isStopped) break
      if (type !== event.type) continue
      if (once) this.removeEventListener(type, listener)
      call(listener, event)
    }
    return !event.defaultPrevented
  }
}

function call(listener: Listener, event: GuestEvent): void {
  try {
    if (typeof listener === 'function') Reflect.apply(listener, event.target, [event])
    else listener.handleEvent(event)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
