import { GuestPromise } from './guest-promise.ts'
import { enqueueJob, runJobs, whenFirstJob } from './jobs.ts'

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

const define = (target: object, name: string, value: unknown): void =>
  void Object.defineProperty(target, name, { value, configurable: true, writable: true })

/** Gives a component promises whose jobs its export can run. The engine's own are run while the module is loaded only. */
export function installPromise(): void {
  define(globalThis, 'Promise', GuestPromise)
  define(globalThis, 'queueMicrotask', (job: () => void) => enqueueJob(() => job()))
  define(Array, 'fromAsync', fromAsync)
  // Its promises would be the engine's.
  Reflect.deleteProperty(globalThis, 'AsyncDisposableStack')
  // Until a call begins, ours are run as a job of the engine.
  whenFirstJob(() => void EnginePromise.resolve().then(runJobs))
}
