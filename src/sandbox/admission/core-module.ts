import type { BinaryReader } from './binary-reader.ts'
import { refusal } from './refusal.ts'

const PREAMBLE_BYTES = 8

const SECTION = { custom: 0, import: 2, memory: 5, export: 7, last: 13 } as const
const KIND = { function: 0, table: 1, memory: 2, global: 3, tag: 4 } as const
const FLAG = { maximum: 1, shared: 2, wide: 4, known: 7 } as const
const TYPED_REFERENCE = [0x63, 0x64]

const unsupported = (what: string, offset: number): Error =>
  refusal('unsupported_feature', `its core module uses ${what} (byte ${offset}), which Brain does not run`, offset)

function skipValueType(reader: BinaryReader): void {
  if (TYPED_REFERENCE.includes(reader.byte())) reader.skipS33()
}

function skipLimits(reader: BinaryReader, what: 'memory' | 'table'): void {
  const offset = reader.at
  const flags = reader.byte()
  if (flags & FLAG.shared) throw unsupported(`a shared ${what}`, offset)
  if (flags & FLAG.wide) throw unsupported(`a 64-bit ${what}`, offset)
  if (flags & ~FLAG.known) throw unsupported(`an unknown kind of ${what}`, offset)
  reader.u32()
  if (flags & FLAG.maximum) reader.u32()
}

function skipImportDescription(reader: BinaryReader): 'memory' | 'other' {
  const kind = reader.byte()
  switch (kind) {
    case KIND.function:
      reader.u32()
      return 'other'
    case KIND.table:
      skipValueType(reader)
      skipLimits(reader, 'table')
      return 'other'
    case KIND.memory:
      skipLimits(reader, 'memory')
      return 'memory'
    case KIND.global:
      skipValueType(reader)
      reader.byte()
      return 'other'
    case KIND.tag:
      reader.byte()
      reader.u32()
      return 'other'
    default:
      throw reader.malformed(`an import has the unknown kind ${kind}`, reader.at - 1)
  }
}

function readImports(reader: BinaryReader): number {
  let memories = 0
  for (let count = reader.u32(); count > 0; count--) {
    reader.skipCoreName()
    reader.skipCoreName()
    if (skipImportDescription(reader) === 'memory') memories++
  }
  reader.finish('the import section of a core module')
  return memories
}

function readMemories(reader: BinaryReader): number {
  const offset = reader.at
  const count = reader.u32()
  if (count > 1) throw unsupported('more than one memory', offset)
  if (count === 1) skipLimits(reader, 'memory')
  reader.finish('the memory section of a core module')
  return count
}

function readExports(reader: BinaryReader): void {
  for (let count = reader.u32(); count > 0; count--) {
    reader.skipCoreName()
    if (reader.byte() > KIND.tag) throw reader.malformed('an export has an unknown kind', reader.at - 1)
    reader.u32()
  }
  reader.finish('the export section of a core module')
}

export type CustomSection = (name: string, content: Uint8Array) => void

/** Walks one core module: names that would be pasted into code, and memories that a box cannot bound (sandbox J1, R3). */
export function walkCoreModule(reader: BinaryReader, onCustom: CustomSection): void {
  const start = reader.at
  const preamble = reader.slice(PREAMBLE_BYTES).rest()
  if (!isCoreModule(preamble)) throw reader.malformed('a core module does not begin as one', start)
  let memories = 0
  while (!reader.done) {
    const id = reader.byte()
    const section = reader.slice(reader.u32())
    if (id === SECTION.custom) onCustom(section.name(), section.rest())
    else if (id === SECTION.import) memories += readImports(section)
    else if (id === SECTION.memory) memories += readMemories(section)
    else if (id === SECTION.export) readExports(section)
    else if (id > SECTION.last) throw section.malformed(`a core module has the unknown section ${id}`)
    if (memories > 1) throw unsupported('more than one memory', section.at)
  }
}

const startsWith = (bytes: Uint8Array, tail: readonly number[]): boolean =>
  [0x00, 0x61, 0x73, 0x6d, ...tail].every((byte, i) => bytes[i] === byte)

/** Whether bytes begin as WebAssembly of any sort. */
export const isWasm = (bytes: Uint8Array): boolean => startsWith(bytes, [])
export const isCoreModule = (bytes: Uint8Array): boolean => startsWith(bytes, [0x01, 0x00, 0x00, 0x00])
export const isComponent = (bytes: Uint8Array): boolean => startsWith(bytes, [0x0d, 0x00, 0x01, 0x00])
