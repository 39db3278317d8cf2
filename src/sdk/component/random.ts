import { getRandomBytes } from 'wasi:random/random'
import { isLoading } from './phase.ts'

/** The Web Cryptography API has the same bound. */
const MOST_BYTES = 65_536

const INTEGERS = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
]

/** `crypto`, as much of it as is about randomness. */
export const guestCrypto = Object.freeze({
  getRandomValues<Target extends ArrayBufferView>(target: Target): Target {
    if (!INTEGERS.some((type) => target instanceof type))
      throw new DOMException('Cannot get random values: they need an array of integers', 'TypeMismatchError')
    if (target.byteLength > MOST_BYTES)
      throw new DOMException(`Cannot get random values: ${MOST_BYTES} bytes are allowed at once`, 'QuotaExceededError')
    new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(randomBytes(target.byteLength))
    return target
  },

  randomUUID(): string {
    const bytes = Uint8Array.from(randomBytes(16), (byte, index) => {
      if (index === 6) return (byte & 0x0f) | 0x40
      return index === 8 ? (byte & 0x3f) | 0x80 : byte
    })
    const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
    return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  },
})

function randomBytes(length: number): ArrayLike<number> {
  if (isLoading())
    throw new Error(
      'Cannot get random values while the module is loaded: every call would have the same. Get them in run',
    )
  return getRandomBytes(length)
}

/** Of 32 bits each: enough for 512 numbers. */
const BATCH = 1024

/** QuickJS would go on from the state that the component was built with, the same in every call. */
export function reseedMathRandom(): void {
  const batch = new Uint32Array(BATCH)
  let used = BATCH
  const bits = (): number => batch[used++] ?? 0
  Math.random = () => {
    if (used >= BATCH) {
      guestCrypto.getRandomValues(batch)
      used = 0
    }
    return ((bits() >>> 5) * 2 ** 26 + (bits() >>> 6)) / 2 ** 53
  }
}
