type Owned = { readonly owner: string }

type Owner<Item> = { running: number; readonly waiting: Set<Item> }

/**
 * Who may run now. `total` at once, `perOwner` of them of one owner; the others wait, first come first served within an
 * owner, the owners in turn.
 */
export class Permits<Item extends Owned> {
  readonly #total: number
  readonly #perOwner: number
  readonly #owners = new Map<string, Owner<Item>>()
  /** Owners with somebody waiting and room for one more of theirs, in turn. */
  readonly #turns = new Set<Owner<Item>>()
  #running = 0
  #waiting = 0

  constructor(total: number, perOwner: number) {
    this.#total = total
    this.#perOwner = perOwner
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Takes a permit (true) or a place in the queue (false). */
  enter(item: Item): boolean {
    let owner = this.#owners.get(item.owner)
    if (owner === undefined) {
      owner = { running: 0, waiting: new Set() }
      this.#owners.set(item.owner, owner)
    }
    if (this.#running < this.#total && owner.running < this.#perOwner && owner.waiting.size === 0) {
      owner.running++
      this.#running++
      return true
    }
    owner.waiting.add(item)
    this.#waiting++
    if (owner.running < this.#perOwner) this.#turns.add(owner)
    return false
  }

  /** Gives the permit of an item back. @returns the one that has it now, if any */
  leave(item: Item): Item | undefined {
    const owner = this.#owners.get(item.owner)
    if (owner === undefined) return undefined
    owner.running--
    this.#running--
    if (owner.waiting.size > 0) this.#turns.add(owner)
    this.#forget(item.owner, owner)
    return this.#next()
  }

  /** Takes an item out of the queue. @returns whether it was there */
  abandon(item: Item): boolean {
    const owner = this.#owners.get(item.owner)
    if (owner === undefined || !owner.waiting.delete(item)) return false
    this.#waiting--
    if (owner.waiting.size === 0) this.#turns.delete(owner)
    this.#forget(item.owner, owner)
    return true
  }

  #next(): Item | undefined {
    if (this.#running >= this.#total) return undefined
    const [owner] = this.#turns
    const [item] = owner?.waiting ?? []
    if (owner === undefined || item === undefined) return undefined
    this.#turns.delete(owner)
    owner.waiting.delete(item)
    this.#waiting--
    owner.running++
    this.#running++
    // To the end of the round, unless its own bound is reached.
    if (owner.waiting.size > 0 && owner.running < this.#perOwner) this.#turns.add(owner)
    return item
  }

  #forget(name: string, owner: Owner<Item>): void {
    if (owner.running === 0 && owner.waiting.size === 0) this.#owners.delete(name)
  }
}
