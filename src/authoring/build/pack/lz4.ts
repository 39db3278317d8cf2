// The LZ4 block format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md

const SHORTEST_MATCH = 4
/** The format asks that a block ends with literals, so that fast decoders may read ahead. */
const LAST_LITERALS = 5
const NO_MATCH_WITHIN = 12
const FARTHEST = 65_535
const HASH_BITS = 16
/** How many earlier places with the same four bytes are looked at. */
const MOST_TRIES = 24

type Match = { readonly length: number; readonly offset: number }
const NONE: Match = { length: 0, offset: 0 }

/** Packs bytes. The result is at most 1/255 larger than they are, and 16 bytes. */
export function packed(source: Uint8Array): Uint8Array {
  const writer = new Writer(source)
  const finder = new MatchFinder(source)
  const last = source.length - NO_MATCH_WITHIN
  let anchor = 0
  let at = 0
  while (at < last) {
    const match = finder.at(at)
    // A longer one that begins a byte later is worth the byte.
    if (match.length === 0 || (at + 1 < last && finder.peek(at + 1).length > match.length + 1)) {
      at++
      continue
    }
    writer.sequence(anchor, at, match)
    for (let inside = at + 1; inside < Math.min(at + match.length, last); inside++) finder.note(inside)
    at += match.length
    anchor = at
  }
  return writer.end(anchor)
}

class MatchFinder {
  readonly #source: Uint8Array
  readonly #view: DataView
  readonly #heads = new Int32Array(1 << HASH_BITS).fill(-1)
  readonly #before: Int32Array

  constructor(source: Uint8Array) {
    this.#source = source
    this.#view = new DataView(source.buffer, source.byteOffset, source.byteLength)
    this.#before = new Int32Array(source.length).fill(-1)
  }

  /** The longest match at a place, which is noted. */
  at(place: number): Match {
    const match = this.peek(place)
    this.note(place)
    return match
  }

  note(place: number): void {
    const hash = this.#hash(place)
    if (this.#heads[hash] === place) return
    this.#before[place] = this.#heads[hash] ?? -1
    this.#heads[hash] = place
  }

  peek(place: number): Match {
    let best = NONE
    let candidate = this.#heads[this.#hash(place)] ?? -1
    if (candidate === place) candidate = this.#before[place] ?? -1
    for (let tries = 0; tries < MOST_TRIES && candidate >= 0 && place - candidate <= FARTHEST; tries++) {
      const length = this.#common(candidate, place)
      if (length >= SHORTEST_MATCH && length > best.length) best = { length, offset: place - candidate }
      candidate = this.#before[candidate] ?? -1
    }
    return best
  }

  #hash(place: number): number {
    return Math.imul(this.#view.getUint32(place, true), 0x9e3779b1) >>> (32 - HASH_BITS)
  }

  #common(one: number, other: number): number {
    const most = this.#source.length - LAST_LITERALS - other
    let length = 0
    while (length < most && this.#source[one + length] === this.#source[other + length]) length++
    return length
  }
}

class Writer {
  readonly #source: Uint8Array
  readonly #target: Uint8Array
  #size = 0

  constructor(source: Uint8Array) {
    this.#source = source
    this.#target = new Uint8Array(source.length + Math.ceil(source.length / 255) + 16)
  }

  /** Literals from `anchor` to `at`, and a match. */
  sequence(anchor: number, at: number, { length, offset }: Match): void {
    const more = length - SHORTEST_MATCH
    this.#literals(anchor, at, Math.min(more, 15))
    this.#target[this.#size++] = offset & 0xff
    this.#target[this.#size++] = offset >> 8
    this.#extend(more)
  }

  /** The literals that remain. */
  end(anchor: number): Uint8Array {
    this.#literals(anchor, this.#source.length, 0)
    return this.#target.subarray(0, this.#size)
  }

  #literals(from: number, to: number, match: number): void {
    const length = to - from
    this.#target[this.#size++] = (Math.min(length, 15) << 4) | match
    this.#extend(length)
    this.#target.set(this.#source.subarray(from, to), this.#size)
    this.#size += length
  }

  #extend(length: number): void {
    if (length < 15) return
    let rest = length - 15
    for (; rest >= 255; rest -= 255) this.#target[this.#size++] = 255
    this.#target[this.#size++] = rest
  }
}
