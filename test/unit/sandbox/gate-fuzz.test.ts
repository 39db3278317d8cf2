import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { gate } from '../../../src/sandbox/admission/gate.ts'
import {
  COMPONENT_PREAMBLE,
  component,
  custom,
  list,
  MODULE_PREAMBLE,
  section,
  toBuffer,
  toolComponent,
} from '../../fixtures/wasm-builder.ts'

const LIMITS = { coreInstances: 256 }
const SLICE_MS = 2500

/** An answer or a refusal of its own; anything else is a defect. */
function judges(bytes: Uint8Array): boolean {
  try {
    gate(bytes, LIMITS)
    return true
  } catch (error) {
    if (error instanceof BrainError && error.code === 'invalid_request') return false
    throw error
  }
}

const seeds = [
  toolComponent(),
  toolComponent({ coreImport: ['env', 'give'], moreExports: ['init'], after: [custom('brain:tool-metadata', '{}')] }),
  component(
    section(4, toolComponent()),
    section(5, list([[0, 0, 0]])),
    section(6, list([[4, 2, 0, 0]])),
    section(4, component(section(4, toolComponent()))),
  ),
].map(toBuffer)

const mutation = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), at: fc.nat(), value: fc.nat(255) }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), value: fc.nat(64) }),
  fc.record({ kind: fc.constant('insert' as const), at: fc.nat(), value: fc.nat(255) }),
  fc.record({ kind: fc.constant('copy' as const), at: fc.nat(), value: fc.nat() }),
)

function mutate(seed: Buffer, changes: readonly { kind: string; at: number; value: number }[]): Buffer {
  let bytes = Buffer.from(seed)
  for (const { kind, at: place, value } of changes) {
    const at = bytes.length === 0 ? 0 : place % bytes.length
    if (kind === 'set') bytes[at] = value
    else if (kind === 'cut') bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + value)])
    else if (kind === 'insert') bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from([value]), bytes.subarray(at)])
    else bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(value % (bytes.length + 1))])
  }
  return bytes
}

test('gate() answers or refuses whatever the bytes are', () => {
  const heads = [[], COMPONENT_PREAMBLE, MODULE_PREAMBLE, [...COMPONENT_PREAMBLE, 1, 0x7f, ...MODULE_PREAMBLE]]
  const bytes = fc
    .tuple(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 400 }))
    .map(([head, tail]) => Buffer.concat([Buffer.from(head), tail]))
  fc.assert(
    fc.property(bytes, (input) => {
      judges(input)
    }),
    { numRuns: 1_000_000, interruptAfterTimeLimit: SLICE_MS },
  )
})

test('gate() answers or refuses every mutation of a component', () => {
  let survivors = 0
  let runs = 0
  fc.assert(
    fc.property(fc.constantFrom(...seeds), fc.array(mutation, { minLength: 1, maxLength: 6 }), (seed, changes) => {
      runs++
      if (judges(mutate(seed, changes))) survivors++
    }),
    { numRuns: 1_000_000, interruptAfterTimeLimit: SLICE_MS },
  )
  // Both happen, else the mutations would test nothing.
  expect(survivors).toBeGreaterThan(0)
  expect(survivors).toBeLessThan(runs)
})
