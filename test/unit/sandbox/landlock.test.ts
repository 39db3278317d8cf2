import { describe, expect, it } from 'vitest'
import { rulesetAttributes } from '../../../src/sandbox/launch/landlock.ts'

const FILES_1 = 0x1fffn
const RENAME = 0x2000n
const TRUNCATE = 0x4000n
const DEVICES = 0x8000n
const TCP = 0x3n
const SCOPES = 0x3n

/** From the kernel's documentation: the size that an ABI reads, and the rights that it knows. */
const BY_ABI: readonly (readonly [
  abi: number,
  bytes: number,
  files: bigint,
  net: bigint | undefined,
  scopes: bigint | undefined,
])[] = [
  [1, 8, FILES_1, undefined, undefined],
  [2, 8, FILES_1 | RENAME, undefined, undefined],
  [3, 8, FILES_1 | RENAME | TRUNCATE, undefined, undefined],
  [4, 16, FILES_1 | RENAME | TRUNCATE, TCP, undefined],
  [5, 16, FILES_1 | RENAME | TRUNCATE | DEVICES, TCP, undefined],
  [6, 24, FILES_1 | RENAME | TRUNCATE | DEVICES, TCP, SCOPES],
  [7, 24, FILES_1 | RENAME | TRUNCATE | DEVICES, TCP, SCOPES],
  [8, 24, FILES_1 | RENAME | TRUNCATE | DEVICES, TCP, SCOPES],
]

describe('rulesetAttributes()', () => {
  it.for(BY_ABI)('of ABI %i handles all that it knows and nothing that it does not', ([abi, bytes, ...rights]) => {
    const attributes = rulesetAttributes(abi)
    expect(attributes.length).toBe(bytes)
    const words = Array.from({ length: bytes / 8 }, (_, i) => attributes.readBigUInt64LE(8 * i))
    expect(words).toEqual(rights.filter((right) => right !== undefined))
  })
})
