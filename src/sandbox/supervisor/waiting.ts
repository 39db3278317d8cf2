type Weighed = { readonly invoke: { readonly length: number } }

/** Calls that have arrived and not begun, within a bound for their number and one for their bytes. */
export class Waiting<Item extends Weighed> {
  readonly #most: { readonly calls: number; readonly bytes: number }
  readonly #items = new Set<Item>()
  #bytes = 0

  constructor(most: { readonly calls: number; readonly bytes: number }) {
    this.#most = most
  }

  /** @returns false, and takes nothing, when there is no room; one alone always finds room */
  add(item: Item): boolean {
    const bytes = this.#bytes + item.invoke.length
    if (this.#items.size > 0 && (this.#items.size >= this.#most.calls || bytes > this.#most.bytes)) return false
    this.#items.add(item)
    this.#bytes = bytes
    return true
  }

  delete(item: Item): void {
    if (this.#items.delete(item)) this.#bytes -= item.invoke.length
  }
}
