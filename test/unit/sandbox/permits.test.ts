import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Permits } from '../../../src/sandbox/supervisor/permits.ts'

type Item = { readonly owner: string; readonly n: number }

describe('Permits', () => {
  it('`enter()` lets at most `total` run, and at most `perOwner` of one owner', () => {
    const permits = new Permits<Item>(3, 2)
    const owners = ['a', 'a', 'a', 'b', 'b']
    expect(owners.map((owner, n) => permits.enter({ owner, n }))).toEqual([true, true, false, true, false])
    expect([permits.running, permits.waiting]).toEqual([3, 2])
  })

  it('`leave()` serves an owner in order, and owners in turn', () => {
    const permits = new Permits<Item>(1, 1)
    const first = { owner: 'a', n: 0 }
    permits.enter(first)
    const waiting = ['a', 'a', 'b', 'b', 'c'].map((owner, i) => ({ owner, n: i + 1 }))
    for (const item of waiting) expect(permits.enter(item)).toBe(false)
    const order: string[] = []
    for (let item: Item | undefined = first; item !== undefined;) {
      item = permits.leave(item)
      if (item !== undefined) order.push(`${item.owner}${item.n}`)
    }
    expect(order).toEqual(['b3', 'c5', 'a1', 'b4', 'a2'])
  })

  it('an owner at its own bound does not hold up the others', () => {
    const permits = new Permits<Item>(2, 1)
    const a = { owner: 'a', n: 1 }
    permits.enter(a)
    expect(permits.enter({ owner: 'a', n: 2 })).toBe(false)
    expect(permits.enter({ owner: 'b', n: 3 })).toBe(true)
    expect(permits.leave(a)).toEqual({ owner: 'a', n: 2 })
  })

  it('keeps its bounds, loses nobody and is never idle while somebody may run, whatever happens', () => {
    const step = fc.record({
      what: fc.constantFrom('enter', 'leave', 'abandon'),
      owner: fc.constantFrom('a', 'b', 'c'),
      pick: fc.nat(),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 60 }),
        (total, perOwner, steps) => {
          const permits = new Permits<Item>(total, perOwner)
          const running: Item[] = []
          const waiting: Item[] = []
          steps.forEach(({ what, owner, pick }, n) => {
            if (what === 'enter') {
              const item = { owner, n }
              if (permits.enter(item)) running.push(item)
              else waiting.push(item)
            } else if (what === 'leave' && running.length > 0) {
              const [item] = running.splice(pick % running.length, 1)
              const next = permits.leave(item!)
              if (next !== undefined) {
                const earliest = waiting.find((other) => other.owner === next.owner)
                expect(next).toBe(earliest)
                waiting.splice(waiting.indexOf(next), 1)
                running.push(next)
              }
            } else if (what === 'abandon' && waiting.length > 0) {
              const [item] = waiting.splice(pick % waiting.length, 1)
              expect(permits.abandon(item!)).toBe(true)
              expect(permits.abandon(item!)).toBe(false)
            }
            const of = (name: string) => running.filter((item) => item.owner === name).length
            expect(permits.running).toBe(running.length)
            expect(permits.waiting).toBe(waiting.length)
            expect(running.length).toBeLessThanOrEqual(total)
            for (const name of ['a', 'b', 'c']) expect(of(name)).toBeLessThanOrEqual(perOwner)
            if (running.length < total) for (const item of waiting) expect(of(item.owner)).toBe(perOwner)
          })
        },
      ),
    )
  })
})
