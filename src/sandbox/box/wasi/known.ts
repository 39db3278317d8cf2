import { FACTS, KIND } from '../../wire/files.ts'

/** Facts of one object, as they lie in a reply or a page of a listing. */
export class Facts {
  readonly #bytes: Buffer
  readonly #at: number

  /** `bytes` must stay as they are: a copy of a reply. */
  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes
    this.#at = at
  }

  get kind(): number {
    return this.#bytes[this.#at + FACTS.KIND] ?? KIND.UNKNOWN
  }

  get size(): number {
    return this.#bytes.readDoubleLE(this.#at + FACTS.SIZE)
  }

  get identity(): bigint {
    return this.#bytes.readBigUInt64LE(this.#at + FACTS.IDENTITY)
  }

  get modified(): Time {
    return timeAt(this.#bytes, this.#at + FACTS.MTIME_SECONDS, this.#at + FACTS.MTIME_NANOS)
  }

  get accessed(): Time {
    return timeAt(this.#bytes, this.#at + FACTS.ATIME_SECONDS, this.#at + FACTS.ATIME_NANOS)
  }
}

type Time = { readonly seconds: bigint; readonly nanoseconds: number }

/** WASI has no time before 1970. */
function timeAt(bytes: Buffer, seconds: number, nanos: number): Time {
  const whole = bytes.readDoubleLE(seconds)
  return whole < 0
    ? { seconds: 0n, nanoseconds: 0 }
    : { seconds: BigInt(whole), nanoseconds: bytes.readUInt32LE(nanos) }
}

/** What facts are asked for: the stat, or the identity alone. */
export type Use = 'stat' | 'identity'

type Entry = { readonly facts: Facts; stat: number; identity: number }

const FRESH_MS = 250
const MOST_ENTRIES = 4096

/**
 * What one request taught, so that the usual groups of a libc cost one request: a stat, then the identity of the same
 * file; a listing, then identity and stat of every name in it. Every fact serves each question of its group once, so that
 * a guest that looks twice looks anew. All is forgotten at any change by this call, and after 250 ms.
 */
export class KnownFacts {
  readonly #entries = new Map<string, Entry>()
  #since = 0

  /**
   * @param keys all the questions that the facts answer
   * @param uses how often they may answer each use of them
   */
  learn(keys: readonly string[], facts: Facts, uses: Readonly<Record<Use, number>>): void {
    if (this.#entries.size >= MOST_ENTRIES) this.forget()
    if (this.#entries.size === 0) this.#since = performance.now()
    const entry = { facts, ...uses }
    for (const key of keys) this.#entries.set(key, entry)
  }

  recall(key: string, use: Use): Facts | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (performance.now() - this.#since > FRESH_MS) {
      this.forget()
      return undefined
    }
    if (entry[use] === 0) return undefined
    entry[use]--
    return entry.facts
  }

  forget(): void {
    if (this.#entries.size > 0) this.#entries.clear()
  }
}
