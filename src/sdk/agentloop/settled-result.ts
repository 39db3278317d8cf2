import { installPromise } from '../component/install-promise.ts'
import { runJobs, whenFirstJob } from '../component/jobs.ts'

installPromise()

const UNSETTLED =
  'Cannot run the agentloop: its handler waits for a promise that nothing will settle. A loop has no timers; and its ' +
  'build must lower async functions, as examples-typescript/build.mjs does'

/**
 * What a handler gave, waited for where it is a promise: everything it can wait for has happened already, and is run here.
 *
 * @throws what it failed with; Error when nothing is left to run and it is not settled
 */
export function settledResult(work: () => unknown): unknown {
  whenFirstJob(undefined)
  const given = work()
  if (!isThenable(given)) return given
  let settled: { readonly value: unknown } | { readonly reason: unknown } | undefined
  given.then(
    (value) => (settled = { value }),
    (reason) => (settled = { reason }),
  )
  runAllJobs()
  if (settled === undefined) throw new Error(UNSETTLED)
  if ('reason' in settled) throw settled.reason
  return settled.value
}

/** What a job of its own throws, nobody hears of: the others are run all the same. */
function runAllJobs(): void {
  for (;;)
    try {
      return runJobs()
    } catch {
      // Go on with what is left.
    }
}

type Thenable = { then(onValue: (value: unknown) => void, onReason: (reason: unknown) => void): unknown }

const isThenable = (value: unknown): value is Thenable =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
