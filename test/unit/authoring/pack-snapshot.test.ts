import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leb128, signedLeb128 } from '../../../src/authoring/build/leb128.ts'
import { packed } from '../../../src/authoring/build/pack/lz4.ts'
import { packSnapshot } from '../../../src/authoring/build/pack/pack-snapshot.ts'
import { marginOf, unpackerBody } from '../../../src/authoring/build/pack/unpacker.ts'
import { sectionsOf } from '../../../src/authoring/build/pack/wasm-reader.ts'

const { WebAssembly: wasm } = globalThis as any
const PAGE = 65_536

const section = (id: number, content: Uint8Array | readonly number[]): Uint8Array =>
  Buffer.concat([Buffer.from([id, ...leb128(content.length)]), Uint8Array.from(content)])
const moduleOf = (...sections: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), ...sections])
const componentOf = (module: Uint8Array): Uint8Array =>
  Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]), section(1, module)])

/** What the unpacker makes of packed bytes, and the whole memory around it. */
function unpacked(bytes: Uint8Array, from: number): Uint8Array {
  const small = packed(bytes)
  const to = from + bytes.length
  const body = unpackerBody({ from, to, size: small.length })
  const module = moduleOf(
    section(1, [1, 0x60, 0, 0]),
    section(3, [1, 0]),
    section(5, [1, 0, ...leb128(Math.ceil((to + marginOf(small.length)) / PAGE))]),
    section(7, [1, 1, 0x6d, 2, 0]),
    section(8, [0]),
    section(12, [1]),
    section(10, [1, ...body]),
    section(11, Buffer.concat([Buffer.from([1, 1, ...leb128(small.length)]), small])),
  )
  return new Uint8Array(new wasm.Instance(new wasm.Module(module)).exports.m.buffer)
}

/** Bytes as memory has them: runs, repetitions at every distance, and noise. */
const memory = fc
  .array(
    fc.oneof(
      fc.record({ run: fc.nat(255), length: fc.integer({ min: 1, max: 700 }) }),
      fc.record({ noise: fc.uint8Array({ minLength: 1, maxLength: 400 }) }),
      fc.record({ back: fc.integer({ min: 1, max: 70_000 }), length: fc.integer({ min: 1, max: 900 }) }),
    ),
    { minLength: 1, maxLength: 60 },
  )
  .map((parts) => {
    const bytes: number[] = []
    for (const part of parts)
      if ('noise' in part) bytes.push(...part.noise)
      else if ('run' in part) for (let n = 0; n < part.length; n++) bytes.push(part.run)
      else for (let n = 0; n < part.length; n++) bytes.push(bytes[bytes.length - part.back] ?? 7)
    return Uint8Array.from(bytes)
  })

describe('packed memory', () => {
  it('is unpacked to what it was, and nothing else of the memory is touched', () => {
    fc.assert(
      fc.property(memory, fc.nat(300), (bytes, from) => {
        const made = Buffer.from(unpacked(bytes, from))
        expect(made.subarray(from, from + bytes.length).equals(bytes)).toBe(true)
        expect(made.subarray(0, from).some((byte) => byte !== 0)).toBe(false)
        expect(made.subarray(from + bytes.length).some((byte) => byte !== 0)).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  it.each([0, 1, 4, 5, 12, 13, 15, 16, 270, 271, 65_535, 65_536, 70_000])('of %d bytes is as well', (length) => {
    const noise = Uint8Array.from({ length }, (_, n) => Math.imul(n + 1, 2654435761) >>> 24)
    for (const bytes of [noise, new Uint8Array(length).fill(9)])
      expect(
        Buffer.from(unpacked(bytes, 16))
          .subarray(16, 16 + length)
          .equals(bytes),
      ).toBe(true)
  })

  it('is smaller where something repeats, and hardly larger where nothing does', () => {
    expect(packed(new Uint8Array(100_000)).length).toBeLessThan(500)
    const noise = Uint8Array.from({ length: 10_000 }, (_, n) => Math.imul(n ^ (n << 7), 2654435761) >>> 13)
    expect(packed(noise).length).toBeLessThanOrEqual(10_000 + 40 + 16)
  })
})

describe('packSnapshot()', () => {
  const image = Uint8Array.from({ length: 400_000 }, (_, n) => (n % 97 === 0 ? n >> 8 : n % 5))
  const segments = [
    [0x41, ...signedLeb128(1024), 0x0b, ...leb128(300_000)],
    [0x41, ...signedLeb128(1024 + 300_000), 0x0b, ...leb128(100_000)],
  ]
  const data = Buffer.concat([
    Buffer.from([2, 0, ...(segments[0] ?? [])]),
    image.subarray(0, 300_000),
    Buffer.from([0, ...(segments[1] ?? [])]),
    image.subarray(300_000),
  ])
  /** As componentize-qjs writes it: an imported function, one of its own, a memory, exports, segments. */
  const main = (...more: readonly Uint8Array[]): Uint8Array =>
    moduleOf(
      section(1, [2, 0x60, 0, 0, 0x60, 0, 1, 0x7f]),
      section(2, [1, 1, 0x61, 1, 0x62, 0, 0]),
      section(3, [1, 1]),
      section(5, [1, 0, 7]),
      section(7, [2, 1, 0x6d, 2, 0, 1, 0x66, 0, 1]),
      ...more,
      section(10, [1, 4, 0, 0x41, 42, 0x0b]),
      section(0, [1, 0x78]),
      section(11, data),
    )
  const moduleIn = (component: Uint8Array): Uint8Array => sectionsOf(component)[0]?.content ?? new Uint8Array()

  it('leaves the memory, the functions and the custom sections as they were', () => {
    const component = packSnapshot(componentOf(main()))
    expect(component.length).toBeLessThan(100_000)
    const module = new wasm.Module(moduleIn(component))
    const { exports } = new wasm.Instance(module, { a: { b: () => {} } })
    expect(exports.f()).toBe(42)
    expect(
      Buffer.from(exports.m.buffer)
        .subarray(1024, 1024 + image.length)
        .equals(image),
    ).toBe(true)
    expect(exports.m.buffer.byteLength).toBe(7 * PAGE)
    expect(wasm.Module.customSections(module, 'x')).toHaveLength(1)
  })

  it.each([
    ['with a start function', main(section(8, [1]))],
    ['with a bounded memory', moduleOf(section(5, [1, 1, 7, 9]), section(11, data))],
    [
      'with a passive segment',
      moduleOf(
        section(5, [1, 0, 7]),
        section(11, Buffer.concat([Buffer.from([1, 1, ...leb128(image.length)]), image])),
      ),
    ],
    [
      'with a place that is no constant',
      moduleOf(
        section(5, [1, 0, 7]),
        section(11, Buffer.concat([Buffer.from([1, 0, 0x23, 0, 0x0b, ...leb128(image.length)]), image])),
      ),
    ],
    ['without a memory', moduleOf(section(11, data))],
    ['with little data', moduleOf(section(5, [1, 0, 7]), section(11, [1, 0, 0x41, 0, 0x0b, 1, 5]))],
  ])('leaves a module as it is %s', (_what, module) => {
    const component = componentOf(module)
    expect(Buffer.from(packSnapshot(component)).equals(component)).toBe(true)
  })
})
