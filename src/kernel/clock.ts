/** Time as the rooms see it: the wall for what is written down, the monotonic clock for what is waited for. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds that never go back, from an arbitrary origin. */
  monotonic(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
