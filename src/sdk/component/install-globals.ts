// Evaluated before anything else of a component: what QuickJS has and what would not work in an export. What it lacks of
// the web's globals is put in by the build, as far as a tool uses it (component-globals.ts).
import { monotonicMs } from './event-loop.ts'
import { installPromise } from './install-promise.ts'
import { whenFirstJob } from './jobs.ts'
import { reseedMathRandom } from './random.ts'

/** What was measured while the component was built has nothing to do with the clock of a call. */
function restartPerformance(): void {
  const began = monotonicMs()
  const measured = { now: () => monotonicMs() - began, timeOrigin: Date.now() }
  Object.defineProperty(globalThis, 'performance', { value: measured, configurable: true, writable: true })
}

/** The call of the instance begins. */
export function refreshGlobals(): void {
  whenFirstJob(undefined)
  restartPerformance()
  reseedMathRandom()
}

installPromise()
