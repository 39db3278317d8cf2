import { now, subscribeDuration } from 'wasi:clocks/monotonic-clock'
import { runJobs } from './jobs.ts'
import { isLoading } from './phase.ts'

type Timer = { readonly id: number; readonly at: number; readonly every: number | undefined; readonly ring: () => void }

const timers = new Map<number, Timer>()
let lastId = 0

const NANOSECONDS = 1_000_000

/** Milliseconds of a clock that never goes back; where it began means nothing. */
export const monotonicMs = (): number => now() / NANOSECONDS

export function setTimer(ring: () => void, delay: unknown, isRepeated: boolean): number {
  if (isLoading())
    throw new Error(
      'Cannot set a timer while the module is loaded: nothing would be there to wait for it. Set it in run',
    )
  if (typeof ring !== 'function') throw new TypeError('Cannot set a timer: it needs a function')
  const ms = Math.min(Math.max(Number(delay) || 0, isRepeated ? 1 : 0), 2 ** 31 - 1)
  const id = ++lastId
  timers.set(id, { id, at: monotonicMs() + ms, every: isRepeated ? ms : undefined, ring })
  return id
}

export const clearTimer = (id: unknown): void => void timers.delete(id as number)

/**
 * Runs whatever there is to run until `isOver` says so, waiting for timers in between.
 *
 * @param onThrown hears what jobs and timers throw
 * @returns false when there is nothing left to run or to wait for, and it is not over
 */
export function runUntil(isOver: () => boolean, onThrown: (error: unknown) => void): boolean {
  for (;;) {
    runThrough(runJobs, onThrown)
    if (isOver()) return true
    const timer = earliest()
    if (timer === undefined) return false
    const left = timer.at - monotonicMs()
    if (left > 0) subscribeDuration(Math.ceil(left * NANOSECONDS)).block()
    timers.delete(timer.id)
    if (timer.every !== undefined) timers.set(timer.id, { ...timer, at: monotonicMs() + timer.every })
    runThrough(timer.ring, onThrown, false)
  }
}

/** What throws has taken nothing from the others: `again` goes on with them. */
function runThrough(work: () => void, onThrown: (error: unknown) => void, again = true): void {
  for (;;)
    try {
      return work()
    } catch (error) {
      onThrown(error)
      if (!again) return
    }
}

/** Of several that ring at one time, the one that was set first. */
function earliest(): Timer | undefined {
  let first: Timer | undefined
  for (const timer of timers.values())
    if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.id < first.id)) first = timer
  return first
}
