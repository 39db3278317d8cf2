import { describe, expect, it } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import type { ToolFailure } from '../../../src/contract/tool-failure.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { Requests, type ClaimInHand } from '../../../src/session/requests.ts'

const claim = { scope: 'local:x', key: 'k', digest: 'd' }

function open() {
  const journal = openMemoryJournal({ limits: defaultLimits })
  const encodeError = (error: BrainError | ToolFailure) => ({ status: 400, body: JSON.stringify({ code: error.code }) })
  const fresh = (): Requests => new Requests({ journal, encodeError })
  let runs = 0
  const work = (requests: Requests, result: () => Promise<string>) => ({
    run: async (inHand: ClaimInHand) => {
      runs++
      await requests.claim(inHand)
      return { answer: { status: 200, body: await result() } }
    },
  })
  return { journal, fresh, work, runs: () => runs }
}

describe('Requests', () => {
  it('R2 answers twenty concurrent requests of one key from one run', async () => {
    const { fresh, work, runs } = open()
    const requests = fresh()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        requests.run(
          claim,
          work(requests, async () => 'one'),
        ),
      ),
    )
    expect(new Set(answers.map((answer) => answer.body))).toEqual(new Set(['one']))
    expect(runs()).toBe(1)
  })

  it('R2 answers again after a restart', async () => {
    const { fresh, work, runs } = open()
    const before = fresh()
    await before.run(
      claim,
      work(before, async () => 'one'),
    )
    const after = fresh()
    expect(
      await after.run(
        claim,
        work(after, async () => 'two'),
      ),
    ).toMatchObject({ status: 200, body: 'one' })
    expect(runs()).toBe(2) // the second run stopped at the taken key
  })

  it('R3 refuses another digest, while the first request runs and after it', async () => {
    const { fresh, work } = open()
    const requests = fresh()
    const gate = Promise.withResolvers<string>()
    const first = requests.run(
      claim,
      work(requests, () => gate.promise),
    )
    const other = { ...claim, digest: 'other' }
    await expect(
      requests.run(
        other,
        work(requests, async () => 'x'),
      ),
    ).rejects.toMatchObject({ code: 'conflict' })
    gate.resolve('one')
    await first
    await expect(
      requests.run(
        other,
        work(requests, async () => 'x'),
      ),
    ).rejects.toMatchObject({ code: 'conflict' })
  })

  it('R4 calls a claim without an answer ambiguous, and runs nothing', async () => {
    const { journal, fresh } = open()
    await journal.claim(claim)
    const requests = fresh()
    let wasRun = false
    const work = {
      run: async (inHand: ClaimInHand) => {
        await requests.claim(inHand)
        wasRun = true
        return { answer: { status: 200, body: '' } }
      },
    }
    await expect(requests.run(claim, work)).rejects.toMatchObject({ code: 'ambiguous' })
    expect(wasRun).toBe(false)
  })

  it('R5 leaves the key free after a refusal before the claim, and after a retryable failure', async () => {
    const { fresh, work } = open()
    const requests = fresh()
    const refuse = { run: () => Promise.reject(new BrainError('invalid_request', 'no')) }
    await expect(requests.run(claim, refuse)).rejects.toMatchObject({ code: 'invalid_request' })
    const fail = work(requests, () => Promise.reject(new BrainError('overloaded', 'later')))
    await expect(requests.run(claim, fail)).rejects.toMatchObject({ code: 'overloaded' })
    expect(
      await requests.run(
        { ...claim, digest: 'corrected' },
        work(requests, async () => 'ok'),
      ),
    ).toMatchObject({ body: 'ok' })
  })

  it('R1 keeps the key of work that is done when only its answer cannot be written for a while', async () => {
    let isBroken = false
    const journal = openMemoryJournal({ limits: defaultLimits, fault: () => (isBroken ? 'disk full' : undefined) })
    const requests = new Requests({ journal, encodeError: () => ({ status: 500, body: '' }) })
    let runs = 0
    const work = {
      run: async (inHand: ClaimInHand) => {
        await requests.claim(inHand)
        runs++
        isBroken = true
        setTimeout(() => (isBroken = false), 50)
        return { answer: { status: 200, body: 'done' } }
      },
    }
    expect(await requests.run(claim, work)).toMatchObject({ body: 'done' })
    expect(await requests.run(claim, work)).toMatchObject({ body: 'done' })
    expect(runs).toBe(1)
  })

  it('replays a failure that is final', async () => {
    const { fresh, work } = open()
    const requests = fresh()
    const fail = work(requests, () => Promise.reject(new BrainError('conflict', 'no')))
    await expect(requests.run(claim, fail)).rejects.toMatchObject({ code: 'conflict' })
    expect(
      await requests.run(
        claim,
        work(requests, async () => 'ok'),
      ),
    ).toMatchObject({ status: 400, body: '{"code":"conflict"}' })
  })
})
