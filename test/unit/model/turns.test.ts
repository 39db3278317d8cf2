import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import type { Json } from '../../../src/kernel/json.ts'
import { defaultLimits, type Limits } from '../../../src/contract/limits.ts'
import { dataOf, type JournalRecord } from '../../../src/journal/record.ts'
import type { FeedItem } from '../../../src/session/event-feed.ts'
import { remoteProvider } from '../../../src/model/remote/remote-provider.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import {
  hangAfter,
  messagesAnswer,
  ModelServer,
  refusal,
  responsesAnswer,
  stream,
  textBlock,
} from '../../support/model-server.ts'
import { openHarness, toolNamed, type Harness } from '../../support/session-harness.ts'

let fake: ModelServer
beforeAll(async () => {
  fake = await ModelServer.open()
})
afterAll(() => fake[Symbol.asyncDispose]())

const KEY = 'sk-secret-of-the-session'

function harnessWith(limits: Partial<Limits> = {}): Harness {
  const common = { baseUrl: fake.url, namespacedModel: false, models: [] }
  const all = { ...defaultLimits, ...limits }
  const providers = [
    remoteProvider({ ...common, name: 'openai', dialect: 'openai_responses', supportsResponseFormat: true }, all),
    remoteProvider({ ...common, name: 'anthropic', dialect: 'anthropic_messages', supportsResponseFormat: false }, all),
    remoteProvider({ ...common, name: 'chat', dialect: 'openai_chat', supportsResponseFormat: true }, all),
    remoteProvider(
      {
        ...common,
        name: 'gateway',
        dialect: 'openai_responses',
        namespacedModel: true,
        supportsResponseFormat: true,
        models: [{ id: 'acme/plain', structured_output: false }],
      },
      all,
    ),
  ]
  return openHarness({ limits, providers })
}

const openai = { model: { provider: 'openai', name: 'gpt', api_key: KEY } }
const say = (text: string) => stream(responsesAnswer(text))
const callsOf = (...calls: readonly { id?: string; name: string; arguments?: string }[]) =>
  stream(responsesAnswer('', calls))
const dataOfAll = (records: readonly JournalRecord[], kind: Parameters<typeof dataOf>[1]): any[] =>
  records.flatMap((record) => dataOf(record, kind) ?? [])

/** Executes every call at once: answers its input, or fails when told. */
const echo: Harness['binding']['script'] = async ({ call, services }) => {
  const input = JSON.parse(call.input) as { fail?: boolean; ms?: number }
  await new Promise((resolve) => setTimeout(resolve, input.ms ?? 0))
  if (input.fail === true) return { type: 'failure', error: { code: 'tool_error', message: 'broke' } }
  await services.finish(JSON.stringify({ status: 'ok', value: input }))
  return { type: 'result', text: '' }
}

/** Everything that a reader of the session's stream is shown. */
function follow(harness: Harness, id: SessionId): { items: FeedItem[]; stop: () => void } {
  const stop = new AbortController()
  const items: FeedItem[] = []
  void (async () => {
    for await (const item of await harness.feed.follow(localTenant, id, 0, stop.signal)) items.push(item)
  })()
  return { items, stop: () => stop.abort() }
}

describe('a turn with a provider over HTTP', () => {
  it('streams live only, and journals the answer with its usage', async () => {
    await using harness = harnessWith()
    const id = await harness.create({ ...openai, system: 'be kind', response_format: { type: 'json_object' } })
    const usage = { input_tokens: 12, output_tokens: 3 }
    const events = responsesAnswer('hello').map((event: any) =>
      event.type === 'response.completed' ? { ...event, response: { usage } } : event,
    )
    fake.says(stream(events))
    const reader = follow(harness, id)
    await harness.send(id, 'hi')
    const records = await harness.records(id)
    await expect.poll(() => reader.items.filter(({ type }) => type === 'record')).toHaveLength(records.length)
    reader.stop()
    const [started] = records.filter(({ event_type: kind }) => kind === 'model_call_started')
    const live = reader.items.flatMap((item) => (item.type === 'live' ? [item.frame] : []))
    expect(live.map(({ type }) => type)).toEqual(['model_request', 'assistant_delta', 'model_usage', 'model_output'])
    for (const { data } of live) expect(data).toMatchObject({ model_call_sequence: started?.sequence })
    expect(dataOfAll(records, 'model_call_ended')).toEqual([
      {
        sequence: started?.sequence,
        result: {
          message: { role: 'assistant', content: [{ type: 'text', text: 'hello' }] },
          stop_reason: 'end_turn',
          usage: { total_input_tokens: 12, input_tokens: 12, output_tokens: 3 },
        },
      },
    ])
    expect(fake.asked[0]!.body).toMatchObject({ instructions: 'be kind', text: { format: { type: 'json_object' } } })
    expectSoundJournal(records)
  })

  it('brings native blocks back with the next request, also in a later turn', async () => {
    await using harness = harnessWith()
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'SIGNED' }
    fake.says(
      stream(messagesAnswer([{ block: thinking }, textBlock('one')])),
      stream(messagesAnswer([textBlock('two')])),
    )
    const id = await harness.create({ model: { provider: 'anthropic', name: 'claude', api_key: KEY } })
    await harness.send(id, 'first')
    await harness.send(id, 'second')
    expect(fake.asked[1]!.body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'first' }] },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'one' }] },
      { role: 'user', content: [{ type: 'text', text: 'second' }] },
    ])
  })

  it('lists the results of parallel calls in call order, each once, in one message (cases D-28)', async () => {
    await using harness = harnessWith()
    harness.binding.script = echo
    const written = [{ ms: 30 }, { ms: 15, fail: true }, { ms: 1 }]
    fake.says(
      stream(
        responsesAnswer('wait', [
          ...written.map((input, n) => ({ id: `c${n}`, name: 't', arguments: JSON.stringify(input) })),
          { id: 'c3', name: 'nobody', arguments: '{}' },
        ]),
      ),
      say('done'),
    )
    const id = await harness.create({ ...openai, tools: [toolNamed('t')] })
    await harness.send(id, 'go')
    const [, second] = fake.asked
    const outputs = second!.body.input.filter((item: any) => item.type === 'function_call_output')
    expect(outputs.map((item: any) => [item.call_id, JSON.parse(item.output)])).toEqual([
      ['c0', written[0]],
      ['c1', { code: 'tool_error', message: 'broke' }],
      ['c2', written[2]],
      ['c3', { code: 'unknown_tool', message: expect.any(String) }],
    ])
    expect(second!.body.input.slice(-4)).toEqual(outputs)
    const ended = dataOfAll(await harness.records(id), 'tool_call_ended').map(({ sequence }) => sequence)
    expect(ended).toEqual(ended.toSorted((a, b) => b - a))
  })

  it('gives the model an error with everything that the tool said of it, or its content in place of that', async () => {
    await using harness = harnessWith()
    const error = { code: 'no_seat', message: 'sold out', retryable: true, details: { row: [1, 2] } }
    harness.binding.script = async ({ call, services }) => {
      const content = call.input.includes('short') ? { content: 'no luck' } : {}
      await services.finish(JSON.stringify({ status: 'error', error, ...content }))
      return { type: 'result', text: '' }
    }
    fake.says(
      callsOf({ id: 'a', name: 't', arguments: '{}' }, { id: 'b', name: 't', arguments: '{"how":"short"}' }),
      say('done'),
    )
    const id = await harness.create({ ...openai, tools: [toolNamed('t')] })
    await harness.send(id, 'go')
    const [plain, short] = fake.asked[1]!.body.input.slice(-2)
    expect(JSON.parse(plain.output)).toEqual(error)
    expect(short.output).toBe('no luck')
    const ends = dataOfAll(await harness.records(id), 'tool_call_ended')
    for (const { outcome } of ends) expect(outcome).toMatchObject({ status: 'error', error })
  })

  it('runs thirty calls of one answer, with repeated and empty ids', async () => {
    await using harness = harnessWith()
    harness.binding.script = echo
    const calls = Array.from({ length: 30 }, (_, n) => ({
      id: ['', 'same', `c${n}`][n % 3]!,
      name: 't',
      arguments: `{"n":${n}}`,
    }))
    fake.says(callsOf(...calls), say('done'))
    const id = await harness.create({ ...openai, tools: [toolNamed('t')] })
    await harness.send(id, 'go')
    const { input } = fake.asked[1]!.body
    const asked = input.filter((item: any) => item.type === 'function_call').map((item: any) => item.call_id)
    const told = input.filter((item: any) => item.type === 'function_call_output')
    expect(new Set(asked).size).toBe(30)
    expect(told.map((item: any) => item.call_id)).toEqual(asked)
    expect(told.map((item: any) => JSON.parse(item.output).n)).toEqual(calls.map((_, n) => n))
  })

  it('takes missing arguments for {}, and tells the model which member it left out (cases D-29)', async () => {
    await using harness = harnessWith()
    harness.binding.script = echo
    const optional = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }
    const tools = [
      toolNamed('none', { input_schema: { type: 'object', properties: {}, additionalProperties: false } }),
      toolNamed('optional', { input_schema: optional }),
      toolNamed('required', { input_schema: { ...optional, required: ['a'] } }),
    ]
    for (const written of ['', '  ', '{}', undefined]) {
      const names = ['none', 'optional', 'required']
      fake.says(
        callsOf(...names.map((name) => ({ id: name, name, ...(written === undefined ? {} : { arguments: written }) }))),
        say('done'),
      )
      const id = await harness.create({ ...openai, tools })
      await harness.send(id, 'go')
      const outputs = fake.asked[1]!.body.input.filter((item: any) => item.type === 'function_call_output')
      expect(outputs.map((item: any) => JSON.parse(item.output))).toEqual([
        {},
        {},
        expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('"a"') }),
      ])
      expect(fake.asked).toHaveLength(2)
      const started = dataOfAll(await harness.records(id), 'tool_call_started')
      expect(started.map(({ invocation }) => invocation.input)).toEqual([{}, {}, {}])
    }
  })

  it('fails with what is on record when arguments are cut or change a number, and the session goes on', async () => {
    await using harness = harnessWith()
    const id = await harness.create({ ...openai, tools: [toolNamed('t')] })
    for (const [written, code] of [
      ['{"a":', 'model_output_invalid'],
      ['{"id":2512292042121000001}', 'model_output_invalid'],
    ] as const) {
      fake.says(callsOf({ id: 'a', name: 't', arguments: written }))
      await harness.send(id, 'go')
      const records = await harness.records(id)
      expect(dataOfAll(records, 'model_call_failed').at(-1)).toMatchObject({
        code,
        ambiguous: false,
        response: { stop_reason: 'tool_use', usage_complete: true },
      })
      expect(dataOfAll(records, 'turn_failed').at(-1)).toMatchObject({ code })
      expect(fake.asked).toHaveLength(1)
    }
    fake.says(say('all well'))
    await harness.send(id, 'again')
    expect((await harness.kinds(id)).at(-1)).toBe('turn_ended')
    expectSoundJournal(await harness.records(id))
  })

  it('never writes or shows the key, whatever the provider repeats', async () => {
    await using harness = harnessWith()
    const id = await harness.create(openai)
    const reader = follow(harness, id)
    const echoed = `Incorrect API key provided: ${KEY}`
    for (const reply of [
      refusal(401, { error: { message: echoed } }),
      refusal(302, echoed, { location: `https://x.example/?key=${KEY}` }),
      stream([{ type: 'error', message: echoed }]),
      refusal(200, `<html>${echoed}`, { 'content-type': `text/html+${KEY}` }),
    ]) {
      fake.says(reply)
      await harness.send(id, 'go')
    }
    const records = await harness.records(id)
    await expect.poll(() => reader.items.length).toBeGreaterThanOrEqual(records.length)
    reader.stop()
    expect(dataOfAll(records, 'model_call_failed')).toHaveLength(4)
    expect(JSON.stringify([records, reader.items, await harness.service.get(localTenant, id)])).not.toContain(KEY)
  })

  it('ends a provider that says nothing, in doubt, and closes the connection', async () => {
    await using harness = harnessWith({ modelSecs: 1 })
    const id = await harness.create(openai)
    const before = fake.aborted
    fake.says(hangAfter({ type: 'response.output_text.delta', output_index: 0, delta: 'par' }))
    await harness.send(id, 'go')
    expect(dataOfAll(await harness.records(id), 'model_call_failed')).toMatchObject([
      { code: 'timeout', ambiguous: true, message: expect.stringContaining('BRAIN_MAX_MODEL_SECS') },
    ])
    await expect.poll(() => fake.aborted).toBe(before + 1)
    expect(fake.asked).toHaveLength(1)
  })
})

describe('a model call of a tool', () => {
  it.each(['finish', 'cancel', 'deadline'] as const)(
    'shows no frame, is aborted by %s, and is recorded in doubt (contract A18)',
    async (way) => {
      await using harness = harnessWith()
      const id = await harness.create({ ...openai, tools: [toolNamed('t')] })
      fake.says(hangAfter({ type: 'response.output_text.delta', output_index: 0, delta: 'secret thought' }))
      const reader = follow(harness, id)
      const before = fake.aborted
      const called = harness.call(id, 't', {}, { wait: 'finished', ...(way === 'deadline' ? { deadlineMs: 400 } : {}) })
      const { services } = await harness.binding.next()
      const question = { messages: [{ role: 'user', content: [{ type: 'text', text: 'q' }] }] }
      const asked = services.model(JSON.stringify(question))
      asked.catch(() => undefined)
      await expect.poll(() => fake.asked.length).toBe(1)
      if (way === 'finish') await services.finish('{"status":"ok","value":1}')
      if (way === 'cancel') await harness.cancel(id)
      await expect(asked).rejects.toMatchObject({ code: 'unknown' })
      await called
      await expect.poll(() => fake.aborted).toBe(before + 1)
      const records = await harness.records(id)
      expect(dataOfAll(records, 'model_call_failed')).toMatchObject([{ code: 'unknown', ambiguous: true }])
      const failed = records.find(({ event_type: kind }) => kind === 'model_call_failed')
      expect(failed?.origin).toMatchObject({ kind: 'tool' })
      reader.stop()
      expect(reader.items.filter(({ type }) => type === 'live')).toEqual([])
      expect(JSON.stringify(records)).not.toContain('secret thought')
      expect(fake.asked).toHaveLength(1)
    },
  )
})

describe('a session that its provider cannot serve', () => {
  const model = (provider: string, name = 'm') => ({ model: { provider, name, api_key: KEY } })

  it.each([
    ['a provider that nobody knows', model('nobody'), /"nobody" is not known: it must be one of scripted, openai/],
    ['a name without vendor', model('gateway', 'gpt'), /called vendor\/model, and "gpt" is not/],
    ['a format with Anthropic', { ...model('anthropic'), response_format: {} }, /has no response_format/],
    [
      'a format with a model that has none',
      { ...model('gateway', 'acme/plain'), response_format: {} },
      /"acme\/plain" has no response_format/,
    ],
    [
      'a native block of another wire',
      {
        ...model('openai'),
        transcript: [{ role: 'assistant', content: [{ type: 'native', format: 'anthropic_messages/1', data: {} }] }],
      },
      /leave the block out/,
    ],
  ])('is not created: %s', async (_, parts, message) => {
    await using harness = harnessWith()
    await expect(harness.create(parts as { [more: string]: Json })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message),
    })
  })

  it('refuses media that the provider does not take, before anything is written', async () => {
    await using harness = harnessWith()
    const id = await harness.create(model('chat'))
    const before = (await harness.kinds(id)).length
    const input = {
      message: 'read',
      media: [{ type: 'file', media_type: 'application/pdf', url: 'https://x.example/a.pdf' } as const],
    }
    const sent = harness.once(`session:${id}:message`, async (claim) => ({
      answer: { status: 200, body: JSON.stringify(await harness.service.send(localTenant, id, input, claim)) },
    }))
    await expect(sent).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'Cannot show application/pdf to the model: provider "chat" takes text and image',
      details: { admission: 'rejected' },
    })
    expect(await harness.kinds(id)).toHaveLength(before)
  })
})
