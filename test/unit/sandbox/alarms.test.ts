import { describe, expect, it, vi } from 'vitest'
import { Alarms } from '../../../src/sandbox/supervisor/alarms.ts'

function withClock() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const rung: string[] = []
  return { rung, alarms: new Alarms<string>((subject) => rung.push(`${subject}@${performance.now()}`)) }
}

describe('Alarms', () => {
  it('rings each at its time, once, whatever the order in which they were set', () => {
    const { rung, alarms } = withClock()
    alarms.set('late', 300)
    alarms.set('early', 100)
    alarms.set('middle', 200)
    vi.advanceTimersByTime(1000)
    expect(rung).toEqual(['early@100', 'middle@200', 'late@300'])
    vi.useRealTimers()
  })

  it('does not ring what was cleared, and rings what was moved at its new time only', () => {
    const { rung, alarms } = withClock()
    alarms.set('gone', 100)
    alarms.set('moved', 100)
    alarms.clear('gone')
    alarms.set('moved', 400)
    vi.advanceTimersByTime(1000)
    expect(rung).toEqual(['moved@400'])
    vi.useRealTimers()
  })

  it('keeps one timer, however many alarms are set and cleared', () => {
    const { alarms } = withClock()
    for (let i = 0; i < 1000; i++) {
      alarms.set(`call ${i}`, 120_000 + i)
      alarms.clear(`call ${i}`)
    }
    expect(vi.getTimerCount()).toBe(1)
    vi.useRealTimers()
  })

  it('waits longer than a 32-bit timer can', () => {
    const { rung, alarms } = withClock()
    alarms.set('far', 2 ** 31 + 1000)
    vi.advanceTimersByTime(2 ** 31)
    expect(rung).toEqual([])
    vi.advanceTimersByTime(1001)
    expect(rung).toHaveLength(1)
    vi.useRealTimers()
  })
})
