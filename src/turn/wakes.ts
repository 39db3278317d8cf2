/** How long the first noted record waits for company (seed tool-api, contract 3.4). */
export const WAKE_WINDOW_MS = 5

/**
 * When tools' later records start an activation (contract 3.4), as data.
 *
 * `quiet`    nothing is noted.
 * `gathering`  the window is open, until `at` on the monotonic clock; later records only raise `noted`.
 * `due`      the window has passed; the next moment without an activation starts one.
 */
export type Wakes =
  | { readonly phase: 'quiet' }
  | { readonly phase: 'gathering'; readonly noted: number; readonly at: number }
  | { readonly phase: 'due'; readonly noted: number }

export const quiet: Wakes = { phase: 'quiet' }

/** A record that may wake was committed. */
export function note(wakes: Wakes, sequence: number, now: number): Wakes {
  if (wakes.phase === 'quiet') return { phase: 'gathering', noted: sequence, at: now + WAKE_WINDOW_MS }
  return { ...wakes, noted: Math.max(wakes.noted, sequence) }
}

/** The window's timer fired. */
export function elapse(wakes: Wakes): Wakes {
  return wakes.phase === 'gathering' ? { phase: 'due', noted: wakes.noted } : wakes
}

/** Whether an activation starts now, in a session without one; and what is left noted then. */
export function take(wakes: Wakes, marker: number): { readonly start: boolean; readonly wakes: Wakes } {
  if (wakes.phase !== 'due') return { start: false, wakes }
  return { start: wakes.noted > marker, wakes: quiet }
}
