/** setTimeout counts in 32 bits: what is longer would fire at once. */
const LONGEST_MS = 2 ** 31 - 1

/** A timer of any length, which never fires early. */
export type LongTimeout = { clear(): void }

/** Calls `ring` once, after `ms` milliseconds of the monotonic clock or a little later. */
export function setLongTimeout(ring: () => void, ms: number): LongTimeout {
  const at = performance.now() + ms
  let timer: NodeJS.Timeout | undefined
  const arm = (): void => {
    const left = at - performance.now()
    if (left <= 0) ring()
    else timer = setTimeout(arm, Math.min(Math.ceil(left), LONGEST_MS))
  }
  timer = setTimeout(arm, Math.min(Math.max(Math.ceil(ms), 0), LONGEST_MS))
  return { clear: () => clearTimeout(timer) }
}
