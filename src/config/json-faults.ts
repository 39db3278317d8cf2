import { MAX_JSON_DEPTH, parseJson } from '../kernel/json.ts'
import { endOfString } from './json-place.ts'

/** What is wrong with JSON text: where, from 0, in the value at which place, and why. It quotes nothing but names. */
export type JsonFault = { readonly at: number; readonly place: readonly PropertyKey[]; readonly reason: string }

class Stop extends Error {}

/**
 * What a person must change before `parseJson` takes a text, and the members that stand twice in one object, of which it
 * would drop one without a word. After a fault of grammar nothing more is looked for.
 */
export function jsonFaults(text: string): readonly JsonFault[] {
  const faults: JsonFault[] = []
  const reader = new Reader(text, (fault) => faults.push(fault))
  try {
    reader.readAll()
  } catch (error) {
    if (!(error instanceof Stop)) throw error
  }
  return faults
}

class Reader {
  readonly #text: string
  readonly #tell: (fault: JsonFault) => void
  readonly #place: PropertyKey[] = []
  #at = 0

  constructor(text: string, tell: (fault: JsonFault) => void) {
    this.#text = text
    this.#tell = tell
  }

  readAll(): void {
    this.#readValue()
    if (this.#next() !== undefined) this.#stop('nothing may follow the value of the file')
  }

  #tellOf(reason: string, at = this.#at): void {
    this.#tell({ at, place: [...this.#place], reason })
  }

  #stop(reason: string): never {
    this.#tellOf(reason)
    throw new Stop(reason)
  }

  /** The next character that is no white space. */
  #next(): string | undefined {
    while (/[ \t\n\r]/.test(this.#text[this.#at] ?? '')) this.#at++
    return this.#text[this.#at]
  }

  /** Whether the next character is this one, which is left behind then. */
  #takes(character: string): boolean {
    if (this.#next() !== character) return false
    this.#at++
    return true
  }

  #readValue(): void {
    const first = this.#next()
    if ((first === '{' || first === '[') && this.#place.length >= MAX_JSON_DEPTH)
      this.#stop(`is nested deeper than ${MAX_JSON_DEPTH} levels`)
    if (first === '{') this.#readObject()
    else if (first === '[') this.#readArray()
    else this.#readScalar(first === '"' ? endOfString(this.#text, this.#at) : this.#endOfWord())
  }

  /** Where a number or a word is over that begins here. */
  #endOfWord(): number {
    let end = this.#at
    while (end < this.#text.length && !/[\s,:[\]{}"]/.test(this.#text[end] ?? '')) end++
    return end
  }

  /** A text, a number or a word, which ends before `end`. */
  #readScalar(end: number): unknown {
    const source = this.#text.slice(this.#at, end)
    try {
      const value: unknown = parseJson(source, 'it')
      this.#at = end
      return value
    } catch {
      if (source.startsWith('"')) return this.#stop('a text is not in the form of JSON: its end or an escape is wrong')
      if (/^-?\d+[\d.eE+-]*$/.test(source)) return this.#stop('a number is wrongly written, or too large to be exact')
      return this.#stop('a value is expected here, in the form of JSON')
    }
  }

  #readObject(): void {
    this.#at++
    const names = new Set<string>()
    if (this.#takes('}')) return
    do {
      if (this.#next() !== '"') this.#stop('the name of a member is expected here, in double quotes')
      const at = this.#at
      const name = this.#readScalar(endOfString(this.#text, at)) as string
      this.#place.push(name)
      if (names.has(name)) this.#tellOf('is there twice: of two, one would not count', at)
      names.add(name)
      if (!this.#takes(':')) this.#stop('a colon is expected here, after the name of a member')
      this.#readValue()
      this.#place.pop()
    } while (this.#takes(','))
    if (!this.#takes('}')) this.#stop('a comma or } is expected here')
  }

  #readArray(): void {
    this.#at++
    if (this.#takes(']')) return
    for (let index = 0; ; index++) {
      this.#place.push(index)
      this.#readValue()
      this.#place.pop()
      if (!this.#takes(',')) break
    }
    if (!this.#takes(']')) this.#stop('a comma or ] is expected here')
  }
}
