import type { BinaryReader } from './binary-reader.ts'
import { isComponent, walkCoreModule } from './core-module.ts'
import { quoted, refusal } from './refusal.ts'

const PREAMBLE_BYTES = 8
const MAX_EXPORTS = 4096

const SECTION = {
  custom: 0,
  coreModule: 1,
  coreInstances: 2,
  coreTypes: 3,
  component: 4,
  instances: 5,
  aliases: 6,
  types: 7,
  canonical: 8,
  start: 9,
  imports: 10,
  exports: 11,
  values: 12,
} as const

const SORT = { core: 0, function: 1, value: 2, type: 3, component: 4, instance: 5 } as const
const SORT_WORDS = ['core item', 'function', 'value', 'type', 'component', 'instance'] as const
const CORE_MODULE_SORT = 0x11

export type SortWord = (typeof SORT_WORDS)[number]
export type ExternName = { readonly name: string; readonly sort: SortWord; readonly offset: number }

export type ComponentLimits = { readonly modules: number; readonly instances: number; readonly depth: number }

/** What a walk over a component found. */
export type ComponentFacts = {
  /** Imports and exports of the outermost component. */
  readonly imports: readonly ExternName[]
  readonly exports: readonly ExternName[]
  /** Where each core module lies in the upload, in the order of the binary. */
  readonly modules: readonly { readonly offset: number; readonly size: number }[]
  /** Custom sections by the component or module they stand in; depth 0 is the outermost component. */
  readonly custom: readonly { readonly name: string; readonly depth: number; readonly content: Uint8Array }[]
}

/** One component on the way down. */
type Scope = {
  /** For each component that can be instantiated here: how many instances that makes, nested ones included. */
  readonly components: number[]
  instances: number
}

/**
 * Walks a component once, front to back: reads what admission judges (names of imports and exports, custom sections,
 * places of core modules) and refuses what no tool needs and the generator or a box does not bear (sandbox J1-J5, R3).
 * What it steps over (types, canonical functions, code) is validated by the generator, inside its box.
 */
export class ComponentWalk {
  readonly #limits: ComponentLimits
  readonly #scopes: Scope[] = []
  readonly #imports: ExternName[] = []
  readonly #exports: ExternName[] = []
  readonly #modules: { offset: number; size: number }[] = []
  readonly #custom: { name: string; depth: number; content: Uint8Array }[] = []

  constructor(limits: ComponentLimits) {
    this.#limits = limits
  }

  walk(reader: BinaryReader): ComponentFacts {
    this.#component(reader)
    return { imports: this.#imports, exports: this.#exports, modules: this.#modules, custom: this.#custom }
  }

  get #outermost(): boolean {
    return this.#scopes.length === 1
  }

  /** @returns how many instances one instantiation of it makes. */
  #component(reader: BinaryReader): number {
    const start = reader.at
    if (!isComponent(reader.slice(PREAMBLE_BYTES).rest()))
      throw reader.malformed('a nested component does not begin as one', start)
    if (this.#scopes.length >= this.#limits.depth)
      throw refusal('too_complex', `its components are nested deeper than ${this.#limits.depth} levels`, start)
    const scope: Scope = { components: [], instances: 1 }
    this.#scopes.push(scope)
    while (!reader.done) {
      const id = reader.byte()
      this.#section(id, reader.slice(reader.u32()), scope)
    }
    this.#scopes.pop()
    return scope.instances
  }

  #section(id: number, section: BinaryReader, scope: Scope): void {
    switch (id) {
      case SECTION.custom:
        return this.#customSection(section.name(), section.rest(), this.#scopes.length - 1)
      case SECTION.coreModule:
        return this.#module(section)
      case SECTION.component:
        scope.components.push(this.#component(section))
        return
      case SECTION.coreInstances:
        return each(section, 'the core instance section', () => this.#coreInstance(section, scope))
      case SECTION.instances:
        return each(section, 'the instance section', () => this.#instance(section, scope))
      case SECTION.aliases:
        return each(section, 'the alias section', () => this.#alias(section, scope))
      case SECTION.imports:
        return each(section, 'the import section', () => this.#import(section))
      case SECTION.exports:
        return each(section, 'the export section', () => this.#export(section))
      case SECTION.coreTypes:
      case SECTION.types:
      case SECTION.canonical:
        return
      case SECTION.start:
        throw unsupported('a start function of a component', section.at)
      case SECTION.values:
        throw unsupported('values of a component', section.at)
      default:
        throw section.malformed(`a component has the unknown section ${id}`)
    }
  }

  #customSection(name: string, content: Uint8Array, depth: number): void {
    this.#custom.push({ name, depth, content })
  }

  #module(section: BinaryReader): void {
    const { at: offset, end } = section
    if (this.#modules.length >= this.#limits.modules)
      throw refusal('too_complex', `it has more than ${this.#limits.modules} core modules`, offset)
    this.#modules.push({ offset, size: end - offset })
    const depth = this.#scopes.length
    walkCoreModule(section, (name, content) => this.#customSection(name, content, depth))
  }

  #addInstances(scope: Scope, count: number, offset: number): void {
    scope.instances += count
    if (scope.instances > this.#limits.instances)
      throw refusal(
        'too_complex',
        `starting it makes more than ${this.#limits.instances} instances (BRAIN_MAX_CORE_INSTANCES)`,
        offset,
      )
  }

  #coreInstance(reader: BinaryReader, scope: Scope): void {
    this.#addInstances(scope, 1, reader.at)
    const form = reader.byte()
    if (form > 1) throw reader.malformed('a core instance has an unknown form', reader.at - 1)
    if (form === 0) reader.u32()
    for (let count = reader.u32(); count > 0; count--) {
      reader.skipCoreName()
      reader.byte()
      reader.u32()
    }
  }

  #instance(reader: BinaryReader, scope: Scope): void {
    const offset = reader.at
    const form = reader.byte()
    if (form > 1) throw reader.malformed('an instance has an unknown form', offset)
    this.#addInstances(scope, form === 0 ? this.#weight(reader, scope, reader.u32()) : 1, offset)
    for (let count = reader.u32(); count > 0; count--) {
      if (form === 1) externName(reader)
      else reader.name()
      skipSortAndIndex(reader)
    }
  }

  #weight(reader: BinaryReader, scope: Scope | undefined, index: number): number {
    const weight = scope?.components[index]
    if (weight === undefined) throw reader.malformed(`there is no component ${index}`)
    return weight
  }

  #alias(reader: BinaryReader, scope: Scope): void {
    const offset = reader.at
    const sort = readSort(reader)
    const target = reader.byte()
    if (target === 0 && sort.word === 'component') throw unsupported('a component taken from an instance', offset)
    if (target === 0) {
      reader.u32()
      reader.name()
    } else if (target === 1) {
      reader.u32()
      reader.skipCoreName()
    } else if (target === 2) {
      const level = reader.u32()
      const index = reader.u32()
      if (sort.word !== 'component') return
      scope.components.push(this.#weight(reader, this.#scopes[this.#scopes.length - 1 - level], index))
    } else throw reader.malformed('an alias has an unknown target', reader.at - 1)
  }

  #import(reader: BinaryReader): void {
    const offset = reader.at
    const name = externName(reader)
    const sort = skipExternDescription(reader, name)
    if (this.#outermost) this.#imports.push({ name, sort, offset })
  }

  #export(reader: BinaryReader): void {
    const offset = reader.at
    const name = externName(reader)
    const { word } = skipSortAndIndex(reader)
    if (word === 'core item' || word === 'component' || word === 'value')
      throw unsupported(`the export ${quoted(name)} of a ${word}`, offset)
    const ascribed = reader.byte()
    if (ascribed > 1) throw reader.malformed('an export has an unknown form', reader.at - 1)
    if (ascribed === 1) skipExternDescription(reader, name)
    if (!this.#outermost) return
    if (this.#exports.length >= MAX_EXPORTS)
      throw refusal('too_complex', `it has more than ${MAX_EXPORTS} exports`, offset)
    this.#exports.push({ name, sort: word, offset })
  }
}

const unsupported = (what: string, offset: number): Error =>
  refusal('unsupported_feature', `it uses ${what} (byte ${offset}), which Brain does not run`, offset)

/** Reads a counted list that must fill its section. */
function each(section: BinaryReader, what: string, read: () => void): void {
  for (let count = section.u32(); count > 0; count--) {
    section.countItem()
    read()
  }
  section.finish(what)
}

function externName(reader: BinaryReader): string {
  const offset = reader.at
  const form = reader.byte()
  if (form > 1) throw unsupported('a name with attributes', offset)
  return reader.name()
}

function readSort(reader: BinaryReader): { readonly word: SortWord; readonly core: number } {
  const sort = reader.byte()
  const word = SORT_WORDS[sort]
  if (word === undefined) throw reader.malformed(`there is no sort ${sort}`, reader.at - 1)
  return { word, core: sort === SORT.core ? reader.byte() : 0 }
}

function skipSortAndIndex(reader: BinaryReader): { readonly word: SortWord } {
  const sort = readSort(reader)
  reader.u32()
  return sort
}

/** Steps over what an import or export is; refuses the sorts that would have to be handed to the component. */
function skipExternDescription(reader: BinaryReader, name: string): SortWord {
  const offset = reader.at
  const { word, core } = readSort(reader)
  if (word === 'core item') {
    if (core !== CORE_MODULE_SORT) throw reader.malformed('only modules can be core imports', offset)
    throw unsupported(`the core module ${quoted(name)} as an import`, offset)
  }
  if (word === 'value' || word === 'component') throw unsupported(`the ${word} ${quoted(name)} as an import`, offset)
  if (word === 'type') {
    const bound = reader.byte()
    if (bound > 1) throw reader.malformed('a type has an unknown bound', reader.at - 1)
    if (bound === 1) return word
  }
  reader.u32()
  return word
}
