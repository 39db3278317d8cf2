import { leb } from '../fixtures/wasm-builder.ts'

type Section = { readonly id: number; readonly content: Buffer }
export type Mutant = { readonly bytes: Buffer; readonly how: string }

const PREAMBLE_BYTES = 8
/** Numbers in LEB128 at the edges of what readers take: 2^32-1, one bit more, a sixth byte, zeros that need not be there. */
const ODD_NUMBERS = [
  [0xff, 0xff, 0xff, 0xff, 0x0f],
  [0xff, 0xff, 0xff, 0xff, 0x1f],
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
  [0x80, 0x80, 0x80, 0x80, 0x00],
  [0x80, 0x00],
  [0x7f],
  [0x80],
].map((bytes) => Buffer.from(bytes))

function sectionsOf(component: Buffer): Section[] {
  const sections: Section[] = []
  for (let at = PREAMBLE_BYTES; at < component.length;) {
    const id = component[at++] ?? 0
    let size = 0
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = component[at++] ?? 0
      size += (byte & 0x7f) * 2 ** shift
      more = byte >= 0x80
    }
    sections.push({ id, content: component.subarray(at, at + size) })
    at += size
  }
  return sections
}

const bytesOf = (preamble: Buffer, sections: readonly Section[]): Buffer =>
  Buffer.concat([
    preamble,
    ...sections.flatMap(({ id, content }) => [Buffer.from([id]), Buffer.from(leb(content.length)), content]),
  ])

/** Makes broken components of good ones, always the same ones for the same random numbers. */
export class ComponentMutator {
  readonly #random: () => number
  readonly #seeds: readonly { readonly name: string; readonly bytes: Buffer; readonly sections: readonly Section[] }[]

  constructor(random: () => number, seeds: ReadonlyMap<string, Buffer>) {
    this.#random = random
    this.#seeds = [...seeds].map(([name, bytes]) => ({ name, bytes, sections: sectionsOf(bytes) }))
  }

  next(): Mutant {
    const seed = this.#pick(this.#seeds)
    const other = this.#pick(this.#seeds)
    const kinds = ['flip', 'cut', 'number', 'insert', 'swap', 'drop', 'repeat', 'splice', 'inside', 'inside', 'length']
    const kind = this.#pick(kinds)
    const how = `${kind} of ${seed.name}${kind === 'splice' ? ` and ${other.name}` : ''}`
    return { how, bytes: this.#change(kind, seed, other.sections) }
  }

  #change(kind: string, seed: { bytes: Buffer; sections: readonly Section[] }, others: readonly Section[]): Buffer {
    const { bytes } = seed
    const preamble = bytes.subarray(0, PREAMBLE_BYTES)
    const sections = [...seed.sections]
    const at = this.#below(sections.length)
    switch (kind) {
      case 'cut':
        return bytes.subarray(0, this.#below(bytes.length))
      case 'swap':
        sections.push(...sections.splice(at, 1 + this.#below(3)))
        return bytesOf(preamble, sections)
      case 'drop':
        sections.splice(at, 1)
        return bytesOf(preamble, sections)
      case 'repeat':
        sections.splice(this.#below(sections.length), 0, this.#pick(sections))
        return bytesOf(preamble, sections)
      case 'splice':
        return bytesOf(preamble, [...sections.slice(0, at), ...others.slice(this.#below(others.length))])
      case 'inside': {
        // The lengths around it stay true, so that what reads the section meets the fault and not what cuts it out.
        const section = this.#smallOf(sections)
        const changed = { ...section, content: this.#edit(section.content) }
        return bytesOf(preamble, sections.with(sections.indexOf(section), changed))
      }
      case 'length': {
        const place = bytesOf(preamble, sections.slice(0, at)).length + 1
        return Buffer.concat([bytes.subarray(0, place), this.#pick(ODD_NUMBERS), bytes.subarray(place + 1)])
      }
      default:
        return this.#edit(bytes)
    }
  }

  #smallOf(sections: readonly Section[]): Section {
    const small = sections.filter(({ content }) => content.length > 0 && content.length < 4096)
    return this.#pick(small.length > 0 ? small : sections)
  }

  /** One to three bytes changed, put in or taken out. */
  #edit(bytes: Buffer): Buffer {
    let edited = Buffer.from(bytes)
    for (let times = 1 + this.#below(3); times > 0; times--) {
      const at = this.#below(edited.length)
      const kind = this.#below(4)
      if (kind === 0) edited[at] = this.#below(256)
      else if (kind === 1) edited[at] = (edited[at] ?? 0) ^ (1 << this.#below(8))
      else {
        const put = kind === 2 ? this.#pick(ODD_NUMBERS) : Buffer.alloc(0)
        edited = Buffer.concat([edited.subarray(0, at), put, edited.subarray(at + this.#below(3))])
      }
    }
    return edited
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end)
  }

  #pick<T>(items: readonly T[]): T {
    const item = items[this.#below(items.length)]
    if (item === undefined) throw new Error('there is nothing to pick from')
    return item
  }
}
