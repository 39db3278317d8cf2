import { leb128 } from '../leb128.ts'
import { packed } from './lz4.ts'
import { marginOf, unpackerBody } from './unpacker.ts'
import { sectionsOf, WasmReader, type Section } from './wasm-reader.ts'

const PAGE = 65_536
/** Smaller ones are not worth the work at every start. */
const LEAST_BYTES = 256 * 1024

const [CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, START, CODE, DATA, DATA_COUNT] = [0, 1, 2, 3, 5, 8, 10, 11, 12] as const
/** The order of sections; custom ones may stand anywhere. */
const ORDER = [TYPE, IMPORT, FUNCTION, 4, MEMORY, 13, 6, 7, START, 9, DATA_COUNT, CODE, DATA]
const [CORE_MODULE, COMPONENT] = [1, 4] as const

/**
 * A component whose largest memory image is packed, and unpacked by a start function: the heap of QuickJS, with what it
 * parsed, is more than half of a component and shrinks to half.
 *
 * The memory is the same, byte for byte, whenever anything else of the component begins: this is tried before it is
 * believed. What is not as componentize-qjs writes it stays as it is.
 */
export function packSnapshot(component: Uint8Array): Uint8Array {
  return rewritten(component, (module) => packModule(module) ?? module)
}

function rewritten(component: Uint8Array, change: (module: Uint8Array) => Uint8Array): Uint8Array {
  const parts = sectionsOf(component).map(({ id, content }) => {
    if (id === CORE_MODULE) return section(id, change(content))
    return section(id, id === COMPONENT ? rewritten(content, change) : content)
  })
  return Buffer.concat([component.subarray(0, 8), ...parts])
}

const section = (id: number, content: Uint8Array): Uint8Array =>
  Buffer.concat([Buffer.from([id, ...leb128(content.length)]), content])

/** The part of WebAssembly that is used here of what lib.dom would declare. */
const { WebAssembly: wasm } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Module: new (bytes: Uint8Array) => object
    readonly Instance: new (module: object) => { readonly exports: { readonly m: { readonly buffer: ArrayBuffer } } }
  }
}

type Image = { readonly from: number; readonly bytes: Uint8Array }

/** @returns undefined for a module without a large image, or with something that is not expected in one */
function packModule(module: Uint8Array): Uint8Array | undefined {
  const sections = sectionsOf(module)
  const content = (id: number): Uint8Array | undefined => sections.find((one) => one.id === id)?.content
  const [data, memory] = [content(DATA), content(MEMORY)]
  if (data === undefined || data.length < LEAST_BYTES || memory === undefined) return undefined
  if (content(START) !== undefined || content(DATA_COUNT) !== undefined) return undefined
  const image = imageOf(data)
  if (image === undefined) return undefined
  const { from, bytes } = image
  const small = packed(bytes)
  const to = from + bytes.length
  const roomy = withPages(memory, Math.ceil((to + marginOf(small.length)) / PAGE))
  if (roomy === undefined) return undefined
  const type = content(TYPE) ?? Buffer.from([0])
  const imports = content(IMPORT) ?? Buffer.from([0])
  const functions = content(FUNCTION) ?? Buffer.from([0])
  const start = importedFunctions(imports) + new WasmReader(functions).size()
  const body = unpackerBody({ from, to, size: small.length })
  const changed = new Map<number, Uint8Array>([
    [TYPE, appended(type, [0x60, 0, 0])],
    [FUNCTION, appended(functions, leb128(new WasmReader(type).size()))],
    [MEMORY, roomy],
    [START, Buffer.from(leb128(start))],
    [DATA_COUNT, Buffer.from([1])],
    [CODE, appended(content(CODE) ?? Buffer.from([0]), body)],
    [DATA, Buffer.concat([Buffer.from([1, 1, ...leb128(small.length)]), small])],
  ])
  assertSame(image, roomy, changed)
  return assembled(module, sections, changed)
}

function assembled(
  module: Uint8Array,
  sections: readonly Section[],
  changed: ReadonlyMap<number, Uint8Array>,
): Uint8Array {
  const custom = sections.filter(({ id }) => id === CUSTOM)
  const known = ORDER.flatMap((id) => {
    const content = changed.get(id) ?? sections.find((one) => one.id === id)?.content
    return content === undefined ? [] : [section(id, content)]
  })
  return Buffer.concat([module.subarray(0, 8), ...known, ...custom.map(({ content }) => section(CUSTOM, content))])
}

/** A vector with one more element. */
function appended(vector: Uint8Array, element: readonly number[]): Uint8Array {
  const reader = new WasmReader(vector)
  const count = reader.size()
  return Buffer.concat([Buffer.from(leb128(count + 1)), vector.subarray(reader.at), Buffer.from(element)])
}

/** What active segments with constant places, in memory 0, make of an empty memory. */
function imageOf(data: Uint8Array): Image | undefined {
  const reader = new WasmReader(data)
  const segments: { readonly at: number; readonly bytes: Uint8Array }[] = []
  for (let left = reader.size(); left > 0; left--) {
    const [kind, opcode] = [reader.size(), reader.byte()]
    if (kind !== 0 || opcode !== 0x41) return undefined
    const at = reader.signed()
    if (at < 0 || reader.byte() !== 0x0b) return undefined
    segments.push({ at, bytes: reader.bytes(reader.size()) })
  }
  if (segments.length === 0) return undefined
  const from = Math.min(...segments.map(({ at }) => at))
  const to = segments.reduce((most, { at, bytes }) => Math.max(most, at + bytes.length), 0)
  const image = new Uint8Array(to - from)
  for (const { at, bytes } of segments) image.set(bytes, at - from)
  return { from, bytes: image }
}

/** The section of one memory with so many pages at least. */
function withPages(memory: Uint8Array, pages: number): Uint8Array | undefined {
  const reader = new WasmReader(memory)
  const [count, flags, least] = [reader.size(), reader.byte(), reader.size()]
  // With an upper bound, or of another kind, it is none of componentize-qjs.
  if (count !== 1 || flags !== 0) return undefined
  return Buffer.from([1, 0, ...leb128(Math.max(least, pages))])
}

function importedFunctions(imports: Uint8Array): number {
  const reader = new WasmReader(imports)
  let functions = 0
  for (let left = reader.size(); left > 0; left--) {
    reader.bytes(reader.size())
    reader.bytes(reader.size())
    const kind = reader.byte()
    if (kind !== 0) throw new Error(`Cannot pack the component: its main module imports something of kind ${kind}`)
    reader.size()
    functions++
  }
  return functions
}

/** @throws Error when the memory is another one than it was */
function assertSame({ from, bytes }: Image, memory: Uint8Array, changed: ReadonlyMap<number, Uint8Array>): void {
  const trial = Buffer.concat([
    Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
    section(TYPE, Buffer.from([1, 0x60, 0, 0])),
    section(FUNCTION, Buffer.from([1, 0])),
    section(MEMORY, memory),
    section(7, Buffer.from([1, 1, 0x6d, 2, 0])),
    section(START, Buffer.from([0])),
    section(DATA_COUNT, Buffer.from([1])),
    section(
      CODE,
      Buffer.from([1, ...unpackerBody({ from, to: from + bytes.length, size: sizeOf(changed.get(DATA)) })]),
    ),
    section(DATA, changed.get(DATA) ?? Buffer.from([0])),
  ])
  const { exports } = new wasm.Instance(new wasm.Module(trial))
  const made = Buffer.from(exports.m.buffer)
  const isSame =
    made.subarray(from, from + bytes.length).equals(bytes) &&
    made.subarray(0, from).every((byte) => byte === 0) &&
    made.subarray(from + bytes.length).every((byte) => byte === 0)
  if (!isSame) throw new Error('Cannot pack the component: it would be unpacked to something else')
}

/** Of the one passive segment. */
function sizeOf(data: Uint8Array | undefined): number {
  const reader = new WasmReader(data ?? new Uint8Array())
  reader.size()
  reader.byte()
  return reader.size()
}
