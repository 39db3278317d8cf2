import { describe, expect, it, vi } from 'vitest'
import { Budget } from '../../../src/dispatch/budget.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { ModelCaller } from '../../../src/turn/model-caller.ts'
import { localTenant } from '../../../src/kernel/ids.ts'
import type { LiveFrame } from '../../../src/journal/session-log.ts'
import type { ModelProvider } from '../../../src/model/model-provider.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import type { HandCall } from '../../support/hand-binding.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

const question = '{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}'

/** A provider that is asked and never answers; it says a word first. */
function silentProvider(): ModelProvider & { calls: number; aborted: number } {
  const provider = {
    id: 'scripted',
    mediaInputs: [],
    calls: 0,
    aborted: 0,
    checkModel: () => undefined,
    call({ signal, onFrame }: Parameters<ModelProvider['call']>[0]): Promise<never> {
      provider.calls++
      onFrame({ type: 'assistant_delta', index: 0, text: 'well' })
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          provider.aborted++
          reject(signal.reason as Error)
        })
      })
    },
  }
  return provider
}

type Stop = (harness: Harness, call: HandCall) => Promise<unknown>

describe('the model call of a tool', () => {
  it.each<[string, Stop, { deadlineMs?: number }, string]>([
    ['finish', (_harness, { services }) => services.finish(undefined), {}, 'ok'],
    ['a cancellation', (harness, { call }) => harness.cancel(call.session), {}, 'cancelled'],
    ['its deadline', (_harness, { cancelled }) => cancelled, { deadlineMs: 50 }, 'timeout'],
  ])('is aborted by %s, recorded as ambiguous, and not sent again', async (_what, stop, options, status) => {
    const provider = silentProvider()
    await using harness = open({ provider })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const frames: LiveFrame[] = []
    await harness.sessions.use(localTenant, id, async ({ log }) => {
      log.follow({ records: () => undefined, live: (frame) => frames.push(frame) })
    })
    const answer = harness.call(id, 't', {}, options)
    const hand = await harness.binding.next()
    const asked = hand.services.model(question)
    const failed = expect(asked).rejects.toMatchObject({ name: 'ToolFailure', code: 'unknown' })
    await vi.waitFor(() => expect(provider.calls).toBe(1))
    await stop(harness, hand)
    await failed
    expect((await answer).outcome).toMatchObject({ status })
    const records = await harness.records(id)
    expect(records.find((record) => record.event_type === 'model_call_failed')).toMatchObject({
      data: { code: 'unknown', ambiguous: true },
      origin: { kind: 'tool', sequence: 5 },
    })
    await vi.waitFor(async () => expectSoundJournal(await harness.records(id)))
    expect([provider.calls, provider.aborted]).toEqual([1, 1])
    // Nobody's conversation: no word of it is shown (contract A18).
    expect(frames).toEqual([])
    await expect((async () => hand.services.model(question))()).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('keeps its session in memory until its end is on record', async () => {
    const provider = silentProvider()
    let isBroken = false
    await using harness = open({ provider, fault: () => (isBroken ? 'disk full' : undefined) })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    const asked = services.model(question).catch(() => undefined)
    await vi.waitFor(() => expect(provider.calls).toBe(1))
    const finished = services.finish(undefined)
    isBroken = true
    await finished.catch(() => undefined)
    harness.sessions.letGo(0)
    expect(harness.sessions.all).toHaveLength(1)
    isBroken = false
    // The refused end has aborted what was asked; the call is open and may ask again.
    const again = services.model(question).catch(() => undefined)
    await vi.waitFor(() => expect(provider.calls).toBe(2))
    await harness.cancel(id)
    await again
    await Promise.all([asked, answer])
    await vi.waitFor(() => {
      harness.sessions.letGo(0)
      expect(harness.sessions.all).toHaveLength(0)
    }, 3000)
    expectSoundJournal(await harness.records(id))
  })

  it('is not sent when it is stopped while its start is written, and that is certain', async () => {
    const provider = silentProvider()
    await using harness = open({ provider })
    const id = await harness.create()
    const stop = new AbortController()
    const access = { provider, name: 'm', apiKey: 'k', settings: null }
    await harness.sessions.use(localTenant, id, async ({ log }) => {
      log.follow({ records: () => stop.abort(), live: () => undefined })
      const models = new ModelCaller(log, () => Promise.resolve(access), defaultLimits, 0)
      const request = { messages: [] }
      const transcript = { throughSequence: 0, keep: 0 }
      const caller = { budget: new Budget(defaultLimits), signal: stop.signal, transcript }
      await expect(models.call(request, caller)).rejects.toMatchObject({ code: 'cancelled', ambiguous: false })
    })
    expect(provider.calls).toBe(0)
    expect((await harness.records(id)).at(-1)).toMatchObject({
      event_type: 'model_call_failed',
      data: { code: 'cancelled', ambiguous: false },
    })
  })
})
