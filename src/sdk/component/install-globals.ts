// Evaluated before anything else of a component: what QuickJS has and what would not work in an export. What it lacks of
// the web's globals is put in by the build, as far as a tool uses it (component-globals.ts).
import { monotonicMs } from './event-loop.ts'
import { GuestPromise } from './guest-promise.ts'
import { enqueueJob, runJobs, whenFirstJob } from './jobs.ts'
import { reseedMathRandom } from './random.ts'

const EnginePromise = Promise

/** Makes an array of what an iterator or an array-like gives, as Array.fromAsync does. */
async function fromAsync(source: AsyncIterable<unknown> | Iterable<unknown> | ArrayLike<unknown>, map?: unknown) {
  const change = map as ((value: unknown, index: number) => unknown) | undefined
  const isIterable = Symbol.asyncIterator in source || Symbol.iterator in source
  const made: unknown[] = []
  for await (const value of isIterable ? source : Array.from(source as ArrayLike<unknown>))
    made.push(change === undefined ? value : await change(value, made.length))
  return made
}

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

const define = (target: object, name: string, value: unknown): void =>
  void Object.defineProperty(target, name, { value, configurable: true, writable: true })

define(globalThis, 'Promise', GuestPromise)
define(globalThis, 'queueMicrotask', (job: () => void) => enqueueJob(() => job()))
define(Array, 'fromAsync', fromAsync)
// Its promises would be the engine's.
Reflect.deleteProperty(globalThis, 'AsyncDisposableStack')

// While the module is loaded, the engine runs its own jobs: so do ours, as one of them.
whenFirstJob(() => void EnginePromise.resolve().then(runJobs))
