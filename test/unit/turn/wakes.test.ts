import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elapse, note, quiet, take, WAKE_WINDOW_MS, type Wakes } from '../../../src/turn/wakes.ts'

describe('wakes', () => {
  it('fix the window at the first note; later notes only raise the sequence', () => {
    const first = note(quiet, 7, 100)
    expect(first).toEqual({ phase: 'gathering', noted: 7, at: 100 + WAKE_WINDOW_MS })
    expect(note(first, 9, 103)).toEqual({ phase: 'gathering', noted: 9, at: 100 + WAKE_WINDOW_MS })
  })

  it('start nothing before the window has passed', () => {
    expect(take(note(quiet, 7, 0), 0).start).toBe(false)
    expect(take(elapse(note(quiet, 7, 0)), 0)).toEqual({ start: true, wakes: quiet })
  })

  it('drop a note that the marker has passed', () => {
    expect(take(elapse(note(quiet, 7, 0)), 7)).toEqual({ start: false, wakes: quiet })
  })

  it('start exactly once for any run of notes before a window ends, and never for less than the newest', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1 }), fc.nat(1000), (sequences, marker) => {
        const noted = sequences.reduce<Wakes>((wakes, sequence, at) => note(wakes, sequence, at), quiet)
        const first = take(elapse(noted), marker)
        expect(first.start).toBe(Math.max(...sequences) > marker)
        expect(take(elapse(first.wakes), marker).start).toBe(false)
      }),
    )
  })
})
