import { printable, quoted, refusal } from './refusal.ts'

const MAX_NAME_BYTES = 4096
/** Names, sections and list items of one upload; a Python component has about 40,000. */
const MAX_ITEMS = 400_000

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What all readers of one upload count together. */
type Budget = { items: number }

/**
 * Reads a stretch of a binary from front to back and refuses whatever leads out of it. Every step consumes at least one
 * byte, so a walk is linear in the size of the upload whatever counts it claims.
 */
export class BinaryReader {
  readonly bytes: Uint8Array
  readonly end: number
  readonly #budget: Budget
  #at: number

  constructor(bytes: Uint8Array, start: number, end: number, budget: Budget = { items: 0 }) {
    this.bytes = bytes
    this.#at = start
    this.end = end
    this.#budget = budget
  }

  get at(): number {
    return this.#at
  }

  get done(): boolean {
    return this.#at >= this.end
  }

  malformed(reason: string, offset = this.#at): Error {
    return refusal(
      'malformed',
      `it is malformed at byte ${offset}: ${reason}. Build it again and upload all of it`,
      offset,
    )
  }

  byte(): number {
    const value = this.#at < this.end ? this.bytes[this.#at] : undefined
    if (value === undefined) throw this.malformed('it ends too early')
    this.#at++
    return value
  }

  /** An unsigned LEB128 number of 32 bits. */
  u32(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte()
      if (shift === 28 && byte > 0x0f) break
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw this.malformed('a number has more than 32 bits', this.#at - 1)
  }

  /** Steps over a signed LEB128 number of 33 bits. */
  skipS33(): void {
    for (let i = 0; i < 5; i++) if (this.byte() < 0x80) return
    throw this.malformed('a number has more than 33 bits', this.#at - 1)
  }

  /** Bounds the time that a walk takes: 32 MiB can hold many millions of items. */
  countItem(): void {
    if (++this.#budget.items > MAX_ITEMS)
      throw refusal('too_complex', `it has more than ${MAX_ITEMS} names, sections and list items`, this.#at)
  }

  /** The next `size` bytes, for another reader of the same budget. */
  slice(size: number): BinaryReader {
    this.countItem()
    const start = this.#at
    if (size > this.end - start)
      throw this.malformed(`a section claims ${size} bytes, and ${this.end - start} are left`, start)
    this.#at += size
    return new BinaryReader(this.bytes, start, start + size, this.#budget)
  }

  /** Everything that is left. */
  rest(): Uint8Array {
    return this.bytes.subarray(this.#at, this.end)
  }

  name(): string {
    const start = this.#at
    const size = this.#nameSize()
    try {
      return utf8.decode(this.bytes.subarray(this.#at - size, this.#at))
    } catch {
      throw this.malformed('a name is not UTF-8', start)
    }
  }

  /**
   * Steps over a name of a core module. The generator pastes these into string literals of JavaScript, some of them
   * unescaped (sandbox J1).
   */
  skipCoreName(): void {
    const start = this.#at
    const size = this.#nameSize()
    if (isSafeCoreName(this.bytes, this.#at - size, this.#at)) return
    const shown = quoted(Buffer.from(this.bytes.subarray(this.#at - size, this.#at)).toString('utf8'))
    const reason = `its core name ${shown} at byte ${start} has characters other than printable ASCII, or one of `
    throw refusal('unsafe_name', `${reason}' " \` \\ \${ */`, start)
  }

  /** Steps over a name and answers its size. */
  #nameSize(): number {
    const start = this.#at
    const size = this.u32()
    if (size > MAX_NAME_BYTES) {
      const reason = `it has a name of ${size} bytes at byte ${start}; ${MAX_NAME_BYTES} are allowed`
      throw refusal('too_complex', reason, start)
    }
    if (size > this.end - this.#at) throw this.malformed('a name is longer than what is left', start)
    this.countItem()
    this.#at += size
    return size
  }

  /** Fails unless everything was read. */
  finish(what: string): void {
    if (!this.done) throw this.malformed(`${printable(what)} has bytes left over`)
  }
}

const code = (character: string): number => character.charCodeAt(0)
const [DOLLAR, OPEN_BRACE, STAR, SLASH] = ['$', '{', '*', '/'].map(code)
/** 1 for printable ASCII without quotes and backslashes. A Python component has 40,000 names: a table is quickest. */
const SAFE = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte <= 0x7e && !['"', "'", '`', '\\'].map(code).includes(byte) ? 1 : 0,
)

/** Nor may it hold what begins or ends something inside a template or a comment. */
function isSafeCoreName(bytes: Uint8Array, start: number, end: number): boolean {
  let before: number | undefined
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (SAFE[byte] === 0) return false
    if ((byte === OPEN_BRACE && before === DOLLAR) || (byte === SLASH && before === STAR)) return false
    before = byte
  }
  return true
}
