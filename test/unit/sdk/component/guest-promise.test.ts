import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GuestPromise, takeUnhandled } from '../../../../src/sdk/component/guest-promise.ts'
import { enqueueJob, runJobs } from '../../../../src/sdk/component/jobs.ts'

/** One step of a program over promises that earlier steps made; what it makes is the next of them. */
type Step =
  | { readonly do: 'resolve' | 'reject'; readonly with: number }
  | { readonly do: 'adopt' | 'thenable'; readonly of: number }
  | {
      readonly do: 'then' | 'catch' | 'finally'
      readonly of: number
      readonly gives: 'value' | 'throw' | 'promise' | 'none'
    }
  | { readonly do: 'all' | 'race' | 'any' | 'allSettled'; readonly these: readonly number[] }
  | { readonly do: 'later'; readonly settles: 'resolve' | 'reject'; readonly of: number }
  | { readonly do: 'await'; readonly of: number }

const index = fc.nat(30)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom('resolve', 'reject'), with: fc.nat(9) }),
  fc.record({ do: fc.constantFrom('adopt', 'thenable'), of: index }),
  fc.record({
    do: fc.constantFrom('then', 'catch', 'finally'),
    of: index,
    gives: fc.constantFrom('value', 'throw', 'promise', 'none'),
  }),
  fc.record({ do: fc.constantFrom('all', 'race', 'any', 'allSettled'), these: fc.array(index, { maxLength: 4 }) }),
  fc.record({ do: fc.constant('later'), settles: fc.constantFrom('resolve', 'reject'), of: index }),
  fc.record({ do: fc.constant('await'), of: index }),
) as fc.Arbitrary<Step>

type Kind = PromiseConstructor
const shown = (value: unknown): string =>
  value instanceof AggregateError
    ? `all failed ${JSON.stringify(value.errors)}`
    : (JSON.stringify(value) ?? 'undefined')

/** Runs a program, and notes what happens when. */
function start(steps: readonly Step[], kind: Kind): string[] {
  const log: string[] = []
  const made: Promise<unknown>[] = [kind.resolve('first')]
  const at = (one: number): Promise<unknown> => made[one % made.length] as Promise<unknown>
  const give = (gives: string, one: number, name: string) => (value?: unknown) => {
    log.push(`${name} ${shown(value)}`)
    if (gives === 'throw') throw name // oxlint-disable-line typescript/only-throw-error -- whatever it is
    return gives === 'promise' ? at(one + 1) : gives === 'value' ? name : undefined
  }
  for (const [number, one] of steps.entries()) {
    const promise = perform(one, number)
    made.push(promise)
    promise.then(
      (value) => log.push(`${number} fulfilled ${shown(value)}`),
      (reason: unknown) => log.push(`${number} rejected ${shown(reason)}`),
    )
  }
  return log

  function perform(one: Step, number: number): Promise<unknown> {
    switch (one.do) {
      case 'resolve':
        return kind.resolve(one.with)
      case 'reject':
        return kind.reject(one.with)
      case 'adopt':
        return new kind((resolve) => resolve(at(one.of)))
      case 'thenable':
        // oxlint-disable-next-line unicorn/no-thenable -- that is the case
        return kind.resolve({ then: (resolve: (value: unknown) => void) => resolve(at(one.of)) })
      case 'then': {
        const handler = give(one.gives, one.of, `then ${number}`)
        return at(one.of).then(handler, one.gives === 'none' ? undefined : handler)
      }
      case 'catch':
      case 'finally':
        return at(one.of)[one.do](give(one.gives, one.of, `${one.do} ${number}`))
      case 'later': {
        const { promise, ...settle } = kind.withResolvers<unknown>()
        at(one.of).then(settle[one.settles], settle[one.settles])
        return promise
      }
      case 'await':
        return kind.resolve(at(one.of)).then((value) => [value])
      default:
        return (kind[one.do] as (these: readonly unknown[]) => Promise<unknown>).call(kind, one.these.map(at))
    }
  }
}

describe('the promise of components', () => {
  it('does everything in the order in which the engine would', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const expected = start(steps, Promise)
        await new Promise((resolve) => setImmediate(resolve))
        const log = start(steps, GuestPromise as never)
        runJobs()
        takeUnhandled()
        expect(log).toEqual(expected)
      }),
      { numRuns: 400 },
    )
  })

  it('is a promise to whoever looks at it', () => {
    const promise = GuestPromise.resolve(1)
    expect(Object.prototype.toString.call(promise)).toBe('[object Promise]')
    expect(GuestPromise.name).toBe('Promise')
    expect(GuestPromise.resolve(promise)).toBe(promise)
    class Own extends GuestPromise {}
    expect(Own.resolve(1)).toBeInstanceOf(Own)
    expect((Own.resolve(1) as GuestPromise).then(() => {})).toBeInstanceOf(Own)
    expect(() => new GuestPromise(1 as never)).toThrow(TypeError)
    expect(() => (GuestPromise.resolve as () => void).call(undefined)).toThrow(TypeError)
  })

  it('fails when it is resolved with itself', () => {
    const { promise, resolve } = GuestPromise.withResolvers()
    resolve(promise)
    let reason: unknown
    ;(promise as GuestPromise).catch((error: unknown) => (reason = error))
    runJobs()
    expect(reason).toBeInstanceOf(TypeError)
  })

  it('tells once of a failure that nobody waits for', () => {
    GuestPromise.reject('lost')
    const caught = GuestPromise.reject('caught') as GuestPromise
    caught.catch(() => {})
    runJobs()
    expect(takeUnhandled()).toEqual(['lost'])
    expect(takeUnhandled()).toEqual([])
  })

  it('runs what jobs ask for, also after one that threw, and many of them', () => {
    const ran: number[] = []
    enqueueJob(() => {
      throw new Error('first')
    })
    for (let n = 0; n < 5000; n++) enqueueJob(() => enqueueJob(() => ran.push(n)))
    expect(runJobs).toThrow('first')
    runJobs()
    expect(ran).toEqual(Array.from({ length: 5000 }, (_, n) => n))
  })
})
