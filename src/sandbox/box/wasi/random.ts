import { randomBytes } from 'node:crypto'
import type * as Insecure from '@bytecodealliance/preview2-shim/interfaces/wasi-random-insecure'
import type * as InsecureSeed from '@bytecodealliance/preview2-shim/interfaces/wasi-random-insecure-seed'
import type * as Random from '@bytecodealliance/preview2-shim/interfaces/wasi-random-random'
import type { CurrentInvocation } from './invocation.ts'

const MOST_BYTES = 64n * 1024n

/** @throws Error, a trap: the interface has no way to give fewer bytes, and no error (F10) */
function bytes(count: bigint): Uint8Array {
  if (count > MOST_BYTES) throw new Error(`${count} random bytes at once, the limit is ${MOST_BYTES}`)
  return randomBytes(Number(count))
}

const u64 = (): bigint => randomBytes(8).readBigUInt64LE()

/** The insecure functions are as good as the others: there is nothing to gain by worse ones. */
export function createRandom(current: CurrentInvocation) {
  const getBytes = (count: bigint): Uint8Array => {
    current.get()
    return bytes(count)
  }
  const getU64 = (): bigint => {
    current.get()
    return u64()
  }
  return {
    random: { getRandomBytes: getBytes, getRandomU64: getU64 } satisfies typeof Random,
    insecure: { getInsecureRandomBytes: getBytes, getInsecureRandomU64: getU64 } satisfies typeof Insecure,
    insecureSeed: {
      insecureSeed: () => (current.get().insecureSeed ??= [u64(), u64()]),
    } satisfies typeof InsecureSeed,
  }
}
