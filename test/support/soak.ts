/** How long a long test goes on: a slice in `npm test`, in full in `npm run soak` (BRAIN_SOAK=1). */
export const soakOr = (full: number, slice: number): number => (process.env['BRAIN_SOAK'] === '1' ? full : slice)

/** A random generator whose seed is printed, and can be given again in BRAIN_TEST_SEED (mulberry32). */
export function seededRandom(name: string): () => number {
  const seed = Number(process.env['BRAIN_TEST_SEED'] ?? Date.now() % 2 ** 31)
  process.stdout.write(`${name}: seed ${seed}\n`)
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
