import { BinaryReader } from './binary-reader.ts'

/** What this reader does not follow: resources of others, long types, constructs that came after it was written. */
const UNKNOWN = '?'
/** Types can be nested so that their text would grow without bound. */
const MAX_TEXT = 400
const PREAMBLE_BYTES = 8

const SECTION = { instances: 5, aliases: 6, types: 7, canonical: 8, imports: 10, exports: 11 } as const
const SORT = { core: 0, function: 1, type: 3, instance: 5 } as const

const PRIMITIVES: Readonly<Record<number, string>> = {
  0x7f: 'bool',
  0x7e: 's8',
  0x7d: 'u8',
  0x7c: 's16',
  0x7b: 'u16',
  0x7a: 's32',
  0x79: 'u32',
  0x78: 's64',
  0x77: 'u64',
  0x76: 'f32',
  0x75: 'f64',
  0x74: 'char',
  0x73: 'string',
}

type Exports = ReadonlyMap<string, Type>
/** A type in words, so that types of different names and the same structure are equal. */
type Type = { readonly text: string; readonly exports?: Exports }
const unknown: Type = { text: UNKNOWN }

const typeOf = (text: string): Type => (text.length > MAX_TEXT ? unknown : { text })

function lost(): never {
  throw new Error('not followed')
}

function each<T>(reader: BinaryReader, read: () => T): T[] {
  const items: T[] = []
  for (let count = reader.u32(); count > 0; count--) {
    reader.countItem()
    items.push(read())
  }
  return items
}

const optional = <T>(reader: BinaryReader, read: () => T): T | undefined => (reader.byte() === 0 ? undefined : read())

function externName(reader: BinaryReader): string {
  if (reader.byte() > 1) lost()
  return reader.name()
}

/** Reads one type, given those before it. */
class TypeReader {
  readonly #reader: BinaryReader
  readonly #types: readonly Type[]

  constructor(reader: BinaryReader, types: readonly Type[]) {
    this.#reader = reader
    this.#types = types
  }

  read(): Type {
    const reader = this.#reader
    const form = reader.byte()
    switch (form) {
      case 0x72:
        return typeOf(`record{${this.#list(() => `${reader.name()}:${this.#value()}`)}}`)
      case 0x71:
        return typeOf(`variant{${this.#list(() => this.#case())}}`)
      case 0x70:
        return typeOf(`list<${this.#value()}>`)
      case 0x6f:
        return typeOf(`tuple<${this.#list(() => this.#value())}>`)
      case 0x6e:
        return typeOf(`flags{${this.#list(() => reader.name())}}`)
      case 0x6d:
        return typeOf(`enum{${this.#list(() => reader.name())}}`)
      case 0x6b:
        return typeOf(`option<${this.#value()}>`)
      case 0x6a:
        return typeOf(`result<${this.#optionalValue()},${this.#optionalValue()}>`)
      case 0x69:
      case 0x68:
        reader.u32()
        return unknown
      case 0x42:
        return this.#instance()
      case 0x40:
        return this.#function()
      case 0x3f:
        reader.byte()
        optional(reader, () => reader.u32())
        return unknown
      default:
        return { text: PRIMITIVES[form] ?? lost() }
    }
  }

  /** Stops adding to the text when that is too long anyway, so that it costs no more than the bytes it is read from. */
  #list(read: () => string): string {
    let text = ''
    each(this.#reader, () => {
      const item = read()
      if (text.length <= MAX_TEXT) text += text === '' ? item : `,${item}`
    })
    return text
  }

  #case(): string {
    const name = this.#reader.name()
    const value = this.#optionalValue()
    this.#reader.byte()
    return `${name}(${value})`
  }

  #optionalValue(): string {
    return optional(this.#reader, () => this.#value()) ?? '_'
  }

  /** A primitive, or the index of a type: a signed number, of which the negative ones are the primitives. */
  #value(): string {
    const first = this.#reader.byte()
    if (first >= 0x40 && first < 0x80) return PRIMITIVES[first] ?? lost()
    let index = first & 0x7f
    for (let shift = 7, byte = first; byte >= 0x80; shift += 7) {
      if (shift > 28) lost()
      byte = this.#reader.byte()
      index += (byte & 0x7f) * 2 ** shift
    }
    return (this.#types[index] ?? lost()).text
  }

  #function(): Type {
    const reader = this.#reader
    const parameters = this.#list(() => {
      reader.name()
      return this.#value()
    })
    const answer = reader.byte() === 0 ? this.#value() : reader.u32() === 0 ? '_' : lost()
    return typeOf(`(${parameters})->${answer}`)
  }

  #instance(): Type {
    const reader = this.#reader
    const types: Type[] = []
    const exports = new Map<string, Type>()
    each(reader, () => {
      const declaration = reader.byte()
      if (declaration === 1) types.push(new TypeReader(reader, types).read())
      else if (declaration === 2) types.push(this.#outerType())
      else if (declaration === 4) {
        const name = externName(reader)
        const type = readDescription(reader, types)
        if (type.sort === SORT.type) types.push(type.type)
        exports.set(name, type.type)
      } else lost()
    })
    return { text: UNKNOWN, exports }
  }

  #outerType(): Type {
    if (this.#reader.byte() !== SORT.type || this.#reader.byte() !== 2) lost()
    const level = this.#reader.u32()
    const index = this.#reader.u32()
    return level === 1 ? (this.#types[index] ?? lost()) : unknown
  }
}

function readDescription(reader: BinaryReader, types: readonly Type[]): { readonly sort: number; readonly type: Type } {
  const sort = reader.byte()
  if (sort === SORT.type && reader.byte() === 1) return { sort, type: unknown }
  if (sort !== SORT.type && sort !== SORT.function && sort !== SORT.instance) lost()
  return { sort, type: types[reader.u32()] ?? lost() }
}

/** Follows the index spaces of one component as far as they lead to the type of an exported function. */
class EntryFinder {
  readonly #name: string
  readonly #types: Type[] = []
  readonly #functions: Type[] = []
  readonly #instances: (Exports | undefined)[] = []
  found: Type | undefined

  constructor(name: string) {
    this.#name = name
  }

  section(id: number, reader: BinaryReader): void {
    if (id === SECTION.types) each(reader, () => this.#types.push(new TypeReader(reader, this.#types).read()))
    else if (id === SECTION.imports) each(reader, () => this.#import(reader))
    else if (id === SECTION.instances) each(reader, () => this.#instance(reader))
    else if (id === SECTION.aliases) each(reader, () => this.#alias(reader))
    else if (id === SECTION.canonical) each(reader, () => this.#canonical(reader))
    else if (id === SECTION.exports) each(reader, () => this.#export(reader))
  }

  #add(sort: number, type: Type): void {
    if (sort === SORT.type) this.#types.push(type)
    else if (sort === SORT.function) this.#functions.push(type)
    else if (sort === SORT.instance) this.#instances.push(type.exports)
  }

  #import(reader: BinaryReader): void {
    externName(reader)
    const { sort, type } = readDescription(reader, this.#types)
    this.#add(sort, type)
  }

  #instance(reader: BinaryReader): void {
    const isInline = reader.byte() === 1
    if (!isInline) reader.u32()
    each(reader, () => {
      if (isInline) externName(reader)
      else reader.name()
      if (reader.byte() === SORT.core) reader.byte()
      reader.u32()
    })
    this.#instances.push(undefined)
  }

  #alias(reader: BinaryReader): void {
    const sort = reader.byte()
    if (sort === SORT.core) reader.byte()
    const target = reader.byte()
    const index = reader.u32()
    if (target === 2) reader.u32()
    const name = target === 2 ? '' : reader.name()
    this.#add(sort, this.#instances[index]?.get(name) ?? unknown)
  }

  #canonical(reader: BinaryReader): void {
    const operation = reader.byte()
    if (operation >= 2 && operation <= 4) return void reader.u32() // of a resource
    if (operation > 4 || reader.byte() !== 0) lost()
    reader.u32()
    each(reader, () => {
      const option = reader.byte()
      if (option > 7) lost()
      if (option >= 3 && option !== 6) reader.u32()
    })
    if (operation === 0) this.#functions.push(this.#types[reader.u32()] ?? lost())
  }

  #export(reader: BinaryReader): void {
    const name = externName(reader)
    const sort = reader.byte()
    if (sort === SORT.core) reader.byte()
    const index = reader.u32()
    optional(reader, () => readDescription(reader, this.#types))
    const spaces: Readonly<Record<number, Type | undefined>> = {
      [SORT.function]: this.#functions[index],
      [SORT.type]: this.#types[index],
    }
    const exports = sort === SORT.instance ? this.#instances[index] : undefined
    const type = exports === undefined ? (spaces[sort] ?? unknown) : { text: UNKNOWN, exports }
    this.#add(sort, type)
    if (name === this.#name && sort === SORT.function) this.found ??= type
  }
}

/**
 * The structure of an exported function of a component, in words: `(u32,list<string>)->result<_,string>`. Its use is to
 * tell an author early that a component was built for another world; the generator remains the judge of types.
 *
 * @param bytes a component that the gate walked.
 * @returns undefined when this small reader does not follow the component all the way.
 */
export function entryType(bytes: Uint8Array, name: string): string | undefined {
  const finder = new EntryFinder(name)
  try {
    const reader = new BinaryReader(bytes, PREAMBLE_BYTES, bytes.length)
    while (!reader.done && finder.found === undefined) {
      const id = reader.byte()
      finder.section(id, reader.slice(reader.u32()))
    }
  } catch {
    return undefined
  }
  const text = finder.found?.text
  return text === undefined || text.includes(UNKNOWN) ? undefined : text
}
