import { expect, it } from 'vitest'
import { Waiting } from '../../../src/sandbox/supervisor/waiting.ts'

const call = (length: number) => ({ invoke: { length } })

it('add() refuses what is over the number or the bytes, and finds room again after delete()', () => {
  const waiting = new Waiting({ calls: 2, bytes: 100 })
  const [small, large, third] = [call(10), call(80), call(1)]
  expect(waiting.add(small)).toBe(true)
  expect(waiting.add(call(91))).toBe(false)
  expect(waiting.add(large)).toBe(true)
  expect(waiting.add(third)).toBe(false)
  waiting.delete(large)
  waiting.delete(large)
  expect(waiting.add(third)).toBe(true)
})

it('add() takes one alone, whatever its size', () => {
  const waiting = new Waiting({ calls: 1, bytes: 10 })
  expect(waiting.add(call(1000))).toBe(true)
})
