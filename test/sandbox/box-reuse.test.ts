import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ended, type Lab, openLab, scripted, until } from './lab.ts'

let lab: Lab
beforeAll(async () => {
  lab = await openLab({ warmBoxes: 2 })
})
afterAll(async () => {
  await lab?.[Symbol.asyncDispose]()
})

const pidOf = ({ end }: Ended): string => (end.type === 'returned' ? end.text : `${end.type}: ${JSON.stringify(end)}`)

const READY = new Set(['starting', 'warm', 'idle'])

/** Finishes, goes on for `input` milliseconds, returns the process it ran in. */
const FINISHES = scripted(`
  imports['brain:tool/host'].finish('{}')
  const until = performance.now() + Number(invocation.inputJson)
  while (performance.now() < until);
  return String(performance.timeOrigin)`)

describe('a box of one key', () => {
  it('serves the call that comes right after the finish of the one before', async () => {
    const id = lab.plant(FINISHES)
    await lab.call(id, { input: '0' })
    const ends: Promise<Ended>[] = []
    for (let call = 0; call < 20; call++) {
      await new Promise<void>((resolve) => {
        const services = async (): Promise<string> => {
          // After the answer has left: the box is busy then, its call is finished.
          setImmediate(resolve)
          return '1'
        }
        ends.push(lab.call(id, { input: '1', services }))
      })
    }
    expect(new Set((await Promise.all(ends)).map(pidOf)).size).toBe(1)
  })

  it('is not waited for when its guest goes on after finish', async () => {
    const id = lab.plant(`${FINISHES}// another`)
    const finished = Promise.withResolvers<void>()
    const long = lab.call(id, {
      input: '2000',
      services: async () => {
        setImmediate(finished.resolve)
        return '1'
      },
    })
    await finished.promise
    const short = lab.call(id, { input: '0' })
    const first = await Promise.race([long.then(() => 'long'), short.then(() => 'short')])
    expect(first).toBe('short')
    expect(pidOf(await short)).not.toBe(pidOf(await long))
  })

  it('that was used last is used first', async () => {
    const id = lab.plant(scripted(`imports['brain:tool/host'].emit('x', '1'); return String(performance.timeOrigin)`))
    const together = Promise.withResolvers<string>()
    let began = 0
    const services = (): Promise<string> => {
      if (++began === 3) together.resolve('1')
      return together.promise
    }
    const parallel = await Promise.all([1, 2, 3].map(() => lab.call(id, { services })))
    expect(new Set(parallel.map(pidOf)).size).toBe(3)
    const pids = new Set<string>()
    for (let call = 0; call < 6; call++) {
      // One that is still being made ready is not waited for while another is idle.
      await until(async () => (await lab.sandbox.status()).boxes.every(({ state }) => READY.has(state)), 'ready boxes')
      pids.add(pidOf(await lab.call(id)))
    }
    expect(pids.size).toBe(1)
  })

  it('is shared, for a while, where more boxes are busy than there are processors', async () => {
    const script = `imports['brain:tool/host'].emit('x', '1'); return String(performance.timeOrigin)`
    const id = lab.plant(scripted(`${script} // crowded`))
    /** Calls that have begun, each with a function that lets it end. */
    const begin = async (component: typeof id, key: string) => {
      const begun = Promise.withResolvers<void>()
      const held = Promise.withResolvers<string>()
      const services = (): Promise<string> => {
        begun.resolve()
        return held.promise
      }
      const ended = lab.call(component, { key, services })
      await Promise.race([begun.promise, ended])
      return { ended, end: () => held.resolve('1') }
    }
    const call = (services: () => Promise<string>) => lab.call(id, { key: 'shared', services }).then(pidOf)
    const ready = () => Promise.resolve('1')

    // Two calls at once have a box each; both boxes are idle afterwards.
    const both = [await begin(id, 'shared'), await begin(id, 'shared')]
    for (const { end } of both) end()
    const boxes = new Set((await Promise.all(both.map(({ ended }) => ended))).map(pidOf))
    expect(boxes.size).toBe(2)

    const crowd = await Promise.all(
      Array.from({ length: availableParallelism() }, (_, n) =>
        begin(lab.plant(scripted(`${script} // ${n}`)), `crowd ${n}`),
      ),
    )
    const first = await begin(id, 'shared')
    const second = call(ready)
    first.end()
    expect(await second).toBe(pidOf(await first.ended))

    const long = await begin(id, 'shared')
    const other = await call(ready)
    long.end()
    expect(new Set([other, pidOf(await long.ended)])).toEqual(boxes)
    for (const { end } of crowd) end()
    await Promise.all(crowd.map(({ ended }) => ended))
  })
})
