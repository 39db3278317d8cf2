import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import { HOP_HEADERS } from '../../wire/egress.ts'
import { Failure } from './failure.ts'
import { type CurrentInvocation, Resource } from './invocation.ts'

/** Contract 6.1. */
const MOST_BYTES = 64 * 1024
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TAB = 9
const SPACE = 32
const DELETE = 127

type Entry = readonly [name: string, value: Uint8Array]

const failHeader = (tag: Wasi.HeaderError['tag']): never => {
  throw new Failure<Wasi.HeaderError>({ tag })
}

const isVisible = (byte: number): boolean => byte === TAB || (byte >= SPACE && byte !== DELETE)

/** A list of header fields; names are compared without case, and kept as they were given. */
export class FieldTable {
  #entries: Entry[] = []
  #bytes = 0

  get entries(): readonly Entry[] {
    return this.#entries
  }

  valuesOf(name: string): Uint8Array[] {
    const wanted = name.toLowerCase()
    return this.#entries.filter(([own]) => own.toLowerCase() === wanted).map(([, value]) => value)
  }

  /** @throws Failure `invalid-syntax`; `forbidden` when the section would have more than 64 KiB */
  append(name: string, value: Uint8Array): void {
    if (!TOKEN.test(name) || !value.every(isVisible)) failHeader('invalid-syntax')
    if (this.#bytes + name.length + value.length > MOST_BYTES) failHeader('forbidden')
    this.#bytes += name.length + value.length
    this.#entries.push([name, value])
  }

  /** @throws Failure `invalid-syntax` */
  delete(name: string): void {
    if (!TOKEN.test(name)) failHeader('invalid-syntax')
    const wanted = name.toLowerCase()
    this.#entries = this.#entries.filter(([own]) => own.toLowerCase() !== wanted)
    this.#bytes = this.#entries.reduce((sum, [own, value]) => sum + own.length + value.length, 0)
  }

  /** Fields of an answer, which the broker has checked and bounded. */
  static of(entries: readonly Entry[]): FieldTable {
    const table = new FieldTable()
    table.#entries = [...entries]
    table.#bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
    return table
  }

  copy(): FieldTable {
    const table = new FieldTable()
    table.#entries = [...this.#entries]
    table.#bytes = this.#bytes
    return table
  }
}

/** @throws Failure `forbidden` for what the broker writes itself */
function assertAllowed(name: string): void {
  if (HOP_HEADERS.has(name.toLowerCase())) failHeader('forbidden')
}

/** `fields` of wasi:http/types. jco constructs it without saying for which call: that comes from `current`. */
export function createFields(current: CurrentInvocation) {
  return class Fields extends Resource implements Wasi.Fields {
    readonly table: FieldTable
    readonly #mutable: boolean

    constructor(table = new FieldTable(), mutable = true) {
      super(current.get())
      this.table = table
      this.#mutable = mutable
    }

    static fromList(entries: readonly Entry[]): Fields {
      const table = new FieldTable()
      for (const [name, value] of entries) {
        assertAllowed(name)
        table.append(name, value)
      }
      return new Fields(table)
    }

    get(name: string): Uint8Array[] {
      return this.table.valuesOf(name)
    }

    has(name: string): boolean {
      return this.table.valuesOf(name).length > 0
    }

    set(name: string, values: readonly Uint8Array[]): void {
      this.delete(name)
      assertAllowed(name)
      for (const value of values) this.table.append(name, value)
    }

    delete(name: string): void {
      if (!this.#mutable) failHeader('immutable')
      this.table.delete(name)
    }

    append(name: string, value: Uint8Array): void {
      if (!this.#mutable) failHeader('immutable')
      assertAllowed(name)
      this.table.append(name, value)
    }

    entries(): [string, Uint8Array][] {
      return this.table.entries.map(([name, value]) => [name, value])
    }

    clone(): Fields {
      return new Fields(this.table.copy())
    }

    /** Another handle of the same fields, which cannot change them. */
    view(): Fields {
      return new Fields(this.table, false)
    }
  }
}

export type Fields = InstanceType<ReturnType<typeof createFields>>
