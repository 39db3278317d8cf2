// Long attacks on the real thing, a slice of each in `npm test`, in full in `npm run soak`. They run side by side.
import { describe, expect, it } from 'vitest'
import { seededRandom, soakOr } from '../support/soak.ts'
import { raceFiles } from './file-races.ts'

const SLICE_MS = 30_000

describe.concurrent('for a while', () => {
  it('two guests that race on the same paths reach nothing outside', { timeout: 1_200_000 }, async () => {
    const { mine, foreign, swaps, outside } = await raceFiles(soakOr(600_000, SLICE_MS), seededRandom('file-races'))
    process.stdout.write(`file-races: ${swaps} swaps, ${mine} reads of the right file\n`)
    expect({ foreign, outside }).toEqual({ foreign: 0, outside: 'as it was' })
    // The control: both were at it.
    expect(Math.min(mine, swaps)).toBeGreaterThan(100)
  })
})
