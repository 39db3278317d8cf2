import type { Box } from './box.ts'

/** Boxes that serve a key and can be given a call of it, in the order in which they became so. */
export class BoxesByKey {
  readonly #boxes = new Map<string, Set<Box>>()

  put(key: string, box: Box): void {
    const boxes = this.#boxes.get(key)
    if (boxes === undefined) this.#boxes.set(key, new Set([box]))
    else boxes.add(box)
  }

  remove(key: string, box: Box): void {
    const boxes = this.#boxes.get(key)
    if (boxes?.delete(box) === true && boxes.size === 0) this.#boxes.delete(key)
  }

  /** Takes the box that was put first. */
  takeFirst(key: string): Box | undefined {
    const [box] = this.#boxes.get(key) ?? []
    if (box !== undefined) this.remove(key, box)
    return box
  }

  /** Takes the box that was put last; there are few of one key. */
  takeLast(key: string): Box | undefined {
    let last: Box | undefined
    for (const box of this.#boxes.get(key) ?? []) last = box
    if (last !== undefined) this.remove(key, last)
    return last
  }
}
