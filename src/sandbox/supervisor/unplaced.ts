import type { Call } from './call.ts'

/** Calls that wait for a box, in order, found by key as well. */
export class Unplaced {
  readonly #all = new Set<Call>()
  readonly #byKey = new Map<string, Set<Call>>()

  get size(): number {
    return this.#all.size
  }

  add(call: Call): void {
    this.#all.add(call)
    const same = this.#byKey.get(call.key)
    if (same === undefined) this.#byKey.set(call.key, new Set([call]))
    else same.add(call)
  }

  delete(call: Call): void {
    if (!this.#all.delete(call)) return
    const same = this.#byKey.get(call.key)
    same?.delete(call)
    if (same?.size === 0) this.#byKey.delete(call.key)
  }

  /** The one that waits longest. */
  take(): Call | undefined {
    const [call] = this.#all
    if (call !== undefined) this.delete(call)
    return call
  }

  /** The one of a key that waits longest. */
  takeOf(key: string): Call | undefined {
    const [call] = this.#byKey.get(key) ?? []
    if (call !== undefined) this.delete(call)
    return call
  }
}
