// A component's export answers before QuickJS would run anything that waits for a promise. So guests get a Promise of
// ours, whose jobs the export runs itself: as ECMA-262 27.2 has it, step by step, since programs depend on the order.
import { enqueueJob } from './jobs.ts'

type Resolve = (value: unknown) => void
type Capability = { readonly promise: unknown; readonly resolve: Resolve; readonly reject: Resolve }
type Reaction = { readonly capability: Capability | undefined; readonly handler: unknown }
type Constructor = new (executor: (resolve: Resolve, reject: Resolve) => void) => unknown

const rejected = new Set<GuestPromise>()

/** Reasons of promises that failed while nobody waited for them; each is given once. */
export function takeUnhandled(): readonly unknown[] {
  const reasons = [...rejected].map((promise) => reasonOf(promise))
  rejected.clear()
  return reasons
}

let reasonOf: (promise: GuestPromise) => unknown

export class GuestPromise {
  #state: 'pending' | 'fulfilled' | 'rejected' = 'pending'
  #result: unknown
  #fulfillReactions: Reaction[] = []
  #rejectReactions: Reaction[] = []
  #isHandled = false

  static {
    reasonOf = (promise) => promise.#result
    Object.defineProperty(this, 'name', { value: 'Promise' })
    Object.defineProperty(this.prototype, Symbol.toStringTag, { value: 'Promise', configurable: true })
  }

  static get [Symbol.species](): unknown {
    return this
  }

  constructor(executor: (resolve: Resolve, reject: Resolve) => void) {
    if (typeof executor !== 'function') throw new TypeError('Promise resolver is not a function')
    const { resolve, reject } = this.#resolvers()
    try {
      executor(resolve, reject)
    } catch (error) {
      reject(error)
    }
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  then(onFulfilled?: unknown, onRejected?: unknown): unknown {
    const capability = capabilityOf(speciesOf(this))
    const onValue: Reaction = { capability, handler: onFulfilled }
    const onReason: Reaction = { capability, handler: onRejected }
    if (this.#state === 'pending') {
      this.#fulfillReactions.push(onValue)
      this.#rejectReactions.push(onReason)
    } else if (this.#state === 'fulfilled') react(onValue, 'fulfilled', this.#result)
    else {
      rejected.delete(this)
      react(onReason, 'rejected', this.#result)
    }
    this.#isHandled = true
    return capability.promise
  }

  catch(onRejected?: unknown): unknown {
    return this.then(undefined, onRejected)
  }

  finally(onFinally?: unknown): unknown {
    if (typeof onFinally !== 'function') return this.then(onFinally, onFinally)
    const species = speciesOf(this)
    const settle = onFinally as () => unknown
    const after = (then: () => unknown): unknown => thenOf(resolvedBy(species, settle()), then)
    return this.then(
      (value: unknown) => after(() => value),
      (reason: unknown) =>
        after(() => {
          throw reason
        }),
    )
  }

  static resolve(value?: unknown): unknown {
    return resolvedBy(constructorOf(this), value)
  }

  static reject(reason?: unknown): unknown {
    const { promise, reject } = capabilityOf(constructorOf(this))
    reject(reason)
    return promise
  }

  static withResolvers(): Capability {
    return capabilityOf(constructorOf(this))
  }

  static try(work: (...args: unknown[]) => unknown, ...args: unknown[]): unknown {
    const { promise, resolve, reject } = capabilityOf(constructorOf(this))
    try {
      resolve(work(...args))
    } catch (error) {
      reject(error)
    }
    return promise
  }

  static all(values: Iterable<unknown>): unknown {
    return combined(this, values, (all, index, { resolve, reject }) => [
      once((value) => all.set(index, value, resolve)),
      reject,
    ])
  }

  static allSettled(values: Iterable<unknown>): unknown {
    return combined(this, values, (all, index, { resolve }) => {
      const settle = once((outcome) => all.set(index, outcome, resolve))
      return [(value) => settle({ status: 'fulfilled', value }), (reason) => settle({ status: 'rejected', reason })]
    })
  }

  static any(values: Iterable<unknown>): unknown {
    const fail = (reject: Resolve) => (errors: unknown) =>
      reject(new AggregateError(errors as unknown[], 'All promises were rejected'))
    return combined(
      this,
      values,
      (all, index, { resolve, reject }) => [resolve, once((reason) => all.set(index, reason, fail(reject)))],
      ({ reject }) => fail(reject),
    )
  }

  static race(values: Iterable<unknown>): unknown {
    return combined(
      this,
      values,
      (_all, _index, { resolve, reject }) => [resolve, reject],
      () => () => {},
    )
  }

  #resolvers(): { resolve: Resolve; reject: Resolve } {
    let isResolved = false
    const reject: Resolve = (reason) => {
      if (isResolved) return
      isResolved = true
      this.#settle('rejected', reason)
    }
    const resolve: Resolve = (value) => {
      if (isResolved) return
      isResolved = true
      this.#resolve(value)
    }
    return { resolve, reject }
  }

  #resolve(value: unknown): void {
    if (value === this) return this.#settle('rejected', new TypeError('A promise cannot be resolved with itself'))
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function')
      return this.#settle('fulfilled', value)
    let then: unknown
    try {
      ;({ then } = value as { then?: unknown })
    } catch (error) {
      return this.#settle('rejected', error)
    }
    if (typeof then !== 'function') return this.#settle('fulfilled', value)
    enqueueJob(() => {
      const { resolve, reject } = this.#resolvers()
      try {
        Reflect.apply(then, value, [resolve, reject])
      } catch (error) {
        reject(error)
      }
    })
  }

  #settle(state: 'fulfilled' | 'rejected', result: unknown): void {
    const reactions = state === 'fulfilled' ? this.#fulfillReactions : this.#rejectReactions
    this.#state = state
    this.#result = result
    this.#fulfillReactions = []
    this.#rejectReactions = []
    if (state === 'rejected' && !this.#isHandled) rejected.add(this)
    for (const reaction of reactions) react(reaction, state, result)
  }
}

function react({ capability, handler }: Reaction, state: 'fulfilled' | 'rejected', result: unknown): void {
  enqueueJob(() => {
    let value = result
    try {
      if (typeof handler === 'function') value = (handler as (result: unknown) => unknown)(result)
      else if (state === 'rejected') return capability?.reject(result)
    } catch (error) {
      return capability?.reject(error)
    }
    capability?.resolve(value)
  })
}

function capabilityOf(species: Constructor): Capability {
  let resolve: unknown
  let reject: unknown
  const promise = new species((onValue, onReason) => {
    if (resolve !== undefined || reject !== undefined) throw new TypeError('The executor was called twice')
    resolve = onValue
    reject = onReason
  })
  if (typeof resolve !== 'function' || typeof reject !== 'function')
    throw new TypeError('Promise resolve or reject function is not callable')
  return { promise, resolve: resolve as Resolve, reject: reject as Resolve }
}

function constructorOf(value: unknown): Constructor {
  if (typeof value !== 'function') throw new TypeError('A method of Promise was called on something else')
  return value as Constructor
}

function speciesOf(promise: object): Constructor {
  const { constructor } = promise as { constructor: { [Symbol.species]?: unknown } | undefined }
  if (constructor === undefined) return GuestPromise as Constructor
  return constructorOf(constructor[Symbol.species] ?? GuestPromise)
}

function resolvedBy(species: Constructor, value: unknown): unknown {
  if (value instanceof GuestPromise && (value as { constructor: unknown }).constructor === species) return value
  const { promise, resolve } = capabilityOf(species)
  resolve(value)
  return promise
}

const thenOf = (promise: unknown, ...handlers: unknown[]): unknown =>
  (promise as { then(...handlers: unknown[]): unknown }).then(...handlers)

function once(tell: Resolve): Resolve {
  let isCalled = false
  return (value) => {
    if (isCalled) return
    isCalled = true
    tell(value)
  }
}

/** What comes of several promises, in their order; `done` hears of it when none is missing. */
class Gathered {
  readonly values: unknown[] = []
  left = 1

  set(index: number, value: unknown, done: Resolve): void {
    this.values[index] = value
    if (--this.left === 0) done(this.values)
  }
}

type Handlers = (all: Gathered, index: number, capability: Capability) => readonly [Resolve, Resolve]

function combined(
  species: unknown,
  values: Iterable<unknown>,
  handlers: Handlers,
  whenNoneIsLeft = ({ resolve }: Capability): Resolve => resolve,
): unknown {
  const constructor = constructorOf(species)
  const capability = capabilityOf(constructor)
  const all = new Gathered()
  try {
    const { resolve } = constructor as unknown as { resolve: unknown }
    if (typeof resolve !== 'function') throw new TypeError('Promise resolve is not a function')
    let index = 0
    for (const value of values) {
      all.values.push(undefined)
      all.left++
      thenOf(Reflect.apply(resolve, constructor, [value]), ...handlers(all, index++, capability))
    }
    if (--all.left === 0) whenNoneIsLeft(capability)(all.values)
  } catch (error) {
    capability.reject(error)
  }
  return capability.promise
}
