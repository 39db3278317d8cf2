import { describe, expect, test } from 'vitest'
import { KeyedQueue } from '../../../src/sandbox/admission/keyed-queue.ts'
import { Limiter } from '../../../src/sandbox/admission/limiter.ts'
import { SingleFlight } from '../../../src/sandbox/admission/single-flight.ts'

const full = () => new Error('full')

/** Work that goes on until it is told to end. */
function held() {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { work: () => promise, end: resolve, fail: reject }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('Limiter', () => {
  test('lets so many in, so many wait in order, and turns the rest away at once', async () => {
    const limiter = new Limiter(2, 2)
    const order: number[] = []
    const holds = Array.from({ length: 4 }, held)
    const runs = holds.map((hold, i) =>
      limiter.run(async () => {
        order.push(i)
        await hold.work()
      }, full),
    )
    await turn()
    expect(order).toEqual([0, 1])
    await expect(limiter.run(() => Promise.resolve(), full)).rejects.toThrow('full')
    holds[1]!.end()
    await turn()
    expect(order).toEqual([0, 1, 2])
    holds[2]!.fail(new Error('broken'))
    await expect(runs[2]).rejects.toThrow('broken')
    await turn()
    expect(order).toEqual([0, 1, 2, 3])
    holds[0]!.end()
    holds[3]!.end()
    await Promise.all([runs[0], runs[1], runs[3]])
  })

  test('gives a place to who waited, not to who comes in the moment in which it becomes free', async () => {
    const limiter = new Limiter(1, 5)
    const order: string[] = []
    const first = held()
    const run = limiter.run(first.work, full)
    const waiting = limiter.run(() => Promise.resolve(order.push('waited')), full)
    first.end()
    await run
    const late = limiter.run(() => Promise.resolve(order.push('late')), full)
    await Promise.all([waiting, late])
    expect(order).toEqual(['waited', 'late'])
  })
})

describe('KeyedQueue', () => {
  test('does the work of one key in order and that of others beside it, whatever fails', async () => {
    const queue = new KeyedQueue()
    const order: string[] = []
    const hold = held()
    const first = queue.run('a', async () => {
      await hold.work()
      order.push('a1')
    })
    const second = queue.run('a', () => Promise.resolve(order.push('a2')))
    await queue.run('b', () => Promise.resolve(order.push('b1')))
    hold.fail(new Error('broken'))
    await expect(first).rejects.toThrow('broken')
    await second
    expect(order).toEqual(['b1', 'a2'])
  })
})

describe('SingleFlight', () => {
  test('joins those who ask meanwhile, gives all the same end, and begins anew after it', async () => {
    const flights = new SingleFlight<number>()
    let started = 0
    const hold = held()
    const fly = () =>
      flights.run('a', async () => {
        const mine = ++started
        await hold.work()
        return mine
      })
    const joined = [fly(), fly(), fly()]
    const idle = flights.idle()
    hold.end()
    expect(await Promise.all(joined)).toEqual([1, 1, 1])
    await idle
    expect(await fly()).toBe(2)
    const broken = () => flights.run('b', () => Promise.reject(new Error('broken')))
    for (const end of await Promise.allSettled([broken(), broken()])) expect(end.status).toBe('rejected')
  })
})
