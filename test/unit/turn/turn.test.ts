import { describe, expect, it } from 'vitest'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import type { Json } from '../../../src/kernel/json.ts'
import type { Message } from '../../../src/contract/message.ts'
import { dataOf, type JournalRecord } from '../../../src/journal/record.ts'
import { OBSERVATION_PREFIX } from '../../../src/turn/loops/builtin/observations.ts'
import { openHarness, toolNamed, type Harness } from '../../support/session-harness.ts'

const use = (name: string, input: Json = {}) => ({ tool_calls: [{ name, input }] })
const finishWith =
  (value: unknown): Harness['binding']['script'] =>
  async ({ services }) => {
    await services.finish(JSON.stringify({ status: 'ok', value }))
    return { type: 'result', text: '' }
  }
const transcriptOf = async (harness: Harness, id: SessionId): Promise<readonly Message[]> =>
  (await harness.service.transcript(localTenant, id)).messages

/** Resolves with the next record that `wanted` accepts. */
async function recordWhere(
  harness: Harness,
  id: SessionId,
  wanted: (record: JournalRecord) => boolean,
): Promise<JournalRecord> {
  const stop = new AbortController()
  for await (const item of await harness.feed.follow(localTenant, id, 0, stop.signal))
    if (item.type === 'record' && wanted(item.record)) return item.record
  throw new Error('the stream ended before such a record')
}

describe('a turn of the built-in loop', () => {
  it('answers without tools, in the order of the contract', async () => {
    await using harness = openHarness()
    const id = await harness.create({ script: [{ text: 'hello' }], system: 'be kind' })
    await harness.send(id, 'hi')
    expect((await harness.kinds(id)).slice(4)).toEqual([
      'session_resumed',
      'turn_started',
      'activation_started',
      'transcript_delta',
      'model_call_started',
      'model_call_ended',
      'transcript_delta',
      'output_emitted',
      'activation_ended',
      'turn_ended',
    ])
    const records = await harness.records(id)
    const started = records.find((record) => record.event_type === 'model_call_started')
    expect(started?.data).toMatchObject({ system: 'be kind', messages: 1, context: { delta: { keep: 1, append: [] } } })
    const output = records.find((record) => record.event_type === 'output_emitted')
    expect(output?.data).toMatchObject({ type: 'assistant_message' })
    expect(output?.origin?.kind).toBe('agentloop')
    expect(await transcriptOf(harness, id)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'hello' }] },
    ])
  })

  it('lists results in call order with their own ids, one failure and one unknown tool among them', async () => {
    await using harness = openHarness()
    const script = [
      { tool_calls: ['a', 'b', 'nowhere', 'c'].map((name) => ({ name, input: { name } })) },
      { text: 'all seen' },
    ]
    const id = await harness.create({ tools: ['a', 'b', 'c'].map((name) => toolNamed(name)), script })
    harness.binding.script = async ({ call, services }) => {
      // The first call ends last.
      await new Promise((resolve) => setTimeout(resolve, call.tool === 'a' ? 30 : 1))
      if (call.tool === 'b') return { type: 'failure', error: { code: 'tool_error', message: 'broke' } }
      await services.finish(JSON.stringify({ status: 'ok', value: call.tool }))
      return { type: 'result', text: '' }
    }
    await harness.send(id, 'go')
    const [, asked, results] = await transcriptOf(harness, id)
    const ids = asked?.content.map((block) => (block.type === 'tool_use' ? block.id : ''))
    expect(results?.content).toMatchObject([
      { tool_use_id: ids?.[0], content: 'a', is_error: false },
      { tool_use_id: ids?.[1], content: { code: 'tool_error' }, is_error: true },
      { tool_use_id: ids?.[2], content: { code: 'unknown_tool' }, is_error: true },
      { tool_use_id: ids?.[3], content: 'c', is_error: false },
    ])
    const ends = (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_call_ended') ?? [])
    expect(ends.at(-1)?.sequence).toBe(Math.min(...ends.map((end) => end.sequence)))
  })

  it('runs thirty calls at once', async () => {
    await using harness = openHarness()
    const calls = Array.from({ length: 30 }, (_, i) => ({ name: 't', input: { i } }))
    const id = await harness.create({
      tools: [toolNamed('t')],
      script: [{ text: 'working', tool_calls: calls }, { text: 'ok' }],
    })
    harness.binding.script = async ({ call, services }) => {
      await services.finish(`{"status":"ok","value":${call.input}}`)
      return { type: 'result', text: '' }
    }
    await harness.send(id, 'go')
    const results = (await transcriptOf(harness, id))[2]?.content
    expect(results?.map((block) => block.type === 'tool_result' && block.content)).toEqual(
      calls.map(({ input }) => input),
    )
  })

  it('shows the content text to the model in place of the output', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    harness.binding.script = async ({ services }) => {
      await services.finish('{"status":"ok","value":{"big":1},"content":"one line"}')
      return { type: 'result', text: '' }
    }
    await harness.send(id, 'go')
    expect((await transcriptOf(harness, id))[2]?.content[0]).toMatchObject({ content: 'one line' })
    const result = (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_result_emitted') ?? [])
    expect(result[0]?.result).toMatchObject({ output: { big: 1 }, content: 'one line' })
  })

  it('is not started again by the results that its calls brought', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    harness.binding.script = finishWith(1)
    await harness.send(id, 'go')
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect((await harness.kinds(id)).filter((kind) => kind === 'turn_started')).toHaveLength(1)
  })

  it('is woken by a result that comes after the turn, and shows it as data', async () => {
    await using harness = openHarness()
    const id = await harness.create({
      tools: [toolNamed('t')],
      script: [use('t'), { text: 'waiting' }, { text: 'got it' }],
    })
    const sent = harness.send(id, 'go')
    const hand = await harness.binding.next()
    await hand.services.returned(undefined)
    await sent
    await hand.services.finish('{"status":"ok","value":{"late":true}}')
    await recordWhere(
      harness,
      id,
      (record) => JSON.stringify(record.data).includes('got it') && record.event_type === 'output_emitted',
    )
    const messages = await transcriptOf(harness, id)
    const last = messages.at(-2)?.content[0]
    expect(last).toMatchObject({ type: 'text' })
    expect(last?.type === 'text' && last.text.startsWith(OBSERVATION_PREFIX) && last.text).toContain('"late":true')
    const turns = (await harness.records(id)).filter((record) => record.event_type === 'turn_started')
    expect(turns[1]?.data).toEqual({ trigger: 'events' })
  })

  it('passes over the records of direct calls, and they wake nobody', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    harness.binding.script = finishWith('private')
    await harness.call(id, 't', {})
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(await harness.kinds(id)).not.toContain('turn_started')
    await harness.send(id, 'hi')
    expect(JSON.stringify(await transcriptOf(harness, id))).not.toContain('private')
  })

  it('fails with the failure of the model, and the next turn works', async () => {
    await using harness = openHarness()
    const id = await harness.create({
      script: [{ error: { code: 'model_provider_failed', message: 'down' } }, { text: 'back' }],
    })
    await harness.send(id, 'one')
    const kinds = await harness.kinds(id)
    expect(kinds.slice(-3)).toEqual(['model_call_failed', 'activation_failed', 'turn_failed'])
    await harness.send(id, 'two')
    expect((await transcriptOf(harness, id)).at(-1)?.content[0]).toMatchObject({ text: 'back' })
  })

  it('answers every open use before new text when a turn was cancelled', async () => {
    await using harness = openHarness()
    const script = [
      {
        tool_calls: [
          { name: 'slow', input: {} },
          { name: 'quick', input: {} },
        ],
      },
      { text: 'fine' },
    ]
    const id = await harness.create({ tools: [toolNamed('slow'), toolNamed('quick')], script })
    harness.binding.script = async (hand) => (hand.call.tool === 'quick' ? finishWith('q')?.(hand) : undefined)
    const sent = harness.send(id, 'go')
    await recordWhere(harness, id, (record) => record.event_type === 'tool_call_ended')
    await harness.cancel(id)
    await sent
    expect((await harness.records(id)).at(-1)?.data).toMatchObject({ code: 'cancelled' })
    await harness.send(id, 'again')
    const messages = await transcriptOf(harness, id)
    expect(messages.map((message) => message.role)).toEqual(['user', 'assistant', 'user', 'user', 'assistant'])
    expect(messages[2]?.content).toMatchObject([
      { type: 'tool_result', content: { code: 'cancelled' }, is_error: true },
      { type: 'tool_result', content: 'q', is_error: false },
    ])
    expect(messages[3]?.content).toEqual([{ type: 'text', text: 'again' }])
  })

  it('waits for the running turn when messages are sent at once', async () => {
    await using harness = openHarness()
    const id = await harness.create({ script: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] })
    await Promise.all([harness.send(id, '1'), harness.send(id, '2'), harness.send(id, '3')])
    const texts = (await transcriptOf(harness, id)).map(({ content: [block] }) => block?.type === 'text' && block.text)
    expect(texts).toEqual(['1', 'a', '2', 'b', '3', 'c'])
  })

  it('stops at the model call limit of its activation', async () => {
    await using harness = openHarness({ limits: { modelCalls: 3 } })
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t')] })
    harness.binding.script = finishWith(1)
    await harness.send(id, 'go')
    expect((await harness.records(id)).at(-1)?.data).toMatchObject({ code: 'model_call_limit' })
    expect((await harness.kinds(id)).filter((kind) => kind === 'model_call_started')).toHaveLength(3)
  })
})
