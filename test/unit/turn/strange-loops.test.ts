import { expect, it, vi } from 'vitest'
import type { SessionId } from '../../../src/kernel/ids.ts'
import type { ModelProvider } from '../../../src/model/model-provider.ts'
import { scriptedProvider } from '../../../src/model/scripted/scripted-provider.ts'
import type { Agentloop, LoopHost, TurnInput } from '../../../src/turn/agentloop.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

const loopThat = (act: (host: LoopHost, input: TurnInput) => Promise<void>): Agentloop => ({
  async run(input, host) {
    await act(host, input)
    return {}
  },
})

const invoke = (id = 'c1') => ({ call_id: id, name: 't', environment: 'box', input: {} })
const messages = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] as const

/** Leaves a request unanswered and is gone, as a box is that dies in the middle of one. */
const lostIn = (request: (host: LoopHost) => Promise<unknown>): Agentloop =>
  loopThat(async (host) => {
    request(host).catch(() => undefined)
    throw new Error('the box is lost')
  })

const dataOf = async (harness: Harness, id: SessionId, kind: string): Promise<unknown[]> =>
  (await harness.records(id)).filter((record) => record.event_type === kind).map((record) => record.data)

it('a loop that wakes itself for ever lets the next message in', async () => {
  const loop = loopThat(async (host) => {
    await host.dispatch([invoke()])
  })
  await using harness = open({ loop })
  harness.binding.script = async ({ services }) => {
    await services.finish('{"status":"ok","value":1}')
    return { type: 'result', text: '' }
  }
  const id = await harness.create({ tools: [toolNamed('t')] })
  await harness.send(id, 'one')
  await vi.waitFor(async () => expect(await dataOf(harness, id, 'turn_started')).toContainEqual({ trigger: 'events' }))
  await harness.send(id, 'two')
  expect(await dataOf(harness, id, 'turn_started')).toContainEqual({ input: { message: 'two' } })
  await harness.end(id)
  expectSoundJournal(await harness.records(id))
})

it('a loop that is lost while its calls are recorded leaves none that is made', async () => {
  await using harness = open({ loop: lostIn((host) => host.dispatch([invoke()])) })
  const id = await harness.create({ tools: [toolNamed('t')] })
  await harness.send(id, 'go')
  expect(harness.binding.calls).toEqual([])
  expect(await dataOf(harness, id, 'tool_call_ended')).toMatchObject([{ outcome: { status: 'cancelled' } }])
  expect((await harness.kinds(id)).at(-1)).toBe('turn_failed')
  expectSoundJournal(await harness.records(id))
})

it('a loop that is lost while the model answers leaves no request that goes on', async () => {
  const asked = Promise.withResolvers<AbortSignal>()
  const provider: ModelProvider = {
    ...scriptedProvider([]),
    call: ({ signal }) => {
      asked.resolve(signal)
      return new Promise(() => {})
    },
  }
  const loop = loopThat(async (host) => {
    host.model({ messages }).catch(() => undefined)
    await asked.promise
    throw new Error('the box is lost')
  })
  await using harness = open({ loop, provider })
  const id = await harness.create()
  await harness.send(id, 'go')
  expect((await asked.promise).aborted).toBe(true)
  await vi.waitFor(async () =>
    expect(await dataOf(harness, id, 'model_call_failed')).toMatchObject([{ code: 'unknown', ambiguous: true }]),
  )
  expectSoundJournal(await harness.records(id))
})

it('a loop that is lost before the model was asked has not asked it', async () => {
  const call = vi.fn<ModelProvider['call']>()
  const provider: ModelProvider = { ...scriptedProvider([]), call }
  await using harness = open({ loop: lostIn((host) => host.model({ messages })), provider })
  const id = await harness.create()
  await harness.send(id, 'go')
  await vi.waitFor(async () =>
    expect(await dataOf(harness, id, 'model_call_failed')).toMatchObject([{ code: 'cancelled', ambiguous: false }]),
  )
  expect(call).not.toHaveBeenCalled()
  expectSoundJournal(await harness.records(id))
})

const long = 'x'.repeat(2000)

it.each([
  ['system prompt', { system: long }],
  ['tools', { tools: [{ name: 't', description: long, input_schema: {} }] }],
  ['response format', { response_format: { long } }],
  ['options', { options: { long } }],
])('what a loop says to the model is charged to what it may record: its %s', async (_what, request) => {
  const refused = vi.fn<(error: unknown) => void>()
  const loop = loopThat((host) => host.model({ messages, ...request }).then(() => undefined, refused))
  await using harness = open({ loop, limits: { activationBytes: 2000 } })
  const id = await harness.create({ tools: [toolNamed('t')] })
  await harness.send(id, 'go')
  expect(refused).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'output_limit' }))
  expect(await dataOf(harness, id, 'model_call_started')).toEqual([])
})

it('each call of a dispatch is charged with the records that come of it', async () => {
  const refused = vi.fn<(error: unknown) => void>()
  const calls = Array.from({ length: 10 }, (_, n) => invoke(`c${n}`))
  const loop = loopThat((host) => host.dispatch(calls).then(() => undefined, refused))
  await using harness = open({ loop, limits: { activationBytes: 5000 } })
  const id = await harness.create({ tools: [toolNamed('t')] })
  await harness.send(id, 'go')
  expect(refused).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'output_limit' }))
  expect(await dataOf(harness, id, 'tool_call_started')).toEqual([])
})
