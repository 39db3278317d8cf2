import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, brainEnv, component, hostEnv, tool, type SessionHandle } from '../../src/sdk/index.ts'
import { aiSdkTools, anthropicTools, lintTools, openaiChatTools, openaiResponsesTools } from '../../src/sdk/interop.ts'
import { ModelServer, refusal, type Reply } from '../support/model-server.ts'
import { faultsOfSchema, type Rules } from '../support/provider-rules.ts'
import { startServer, type TestServer } from '../support/server.ts'

const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.string(), days: z.number().int().positive().default(1), mail: z.email().optional() }),
  output: z.object({ sky: z.string(), days: z.number() }),
  run: ({ days }, ctx) => ctx.finish({ sky: 'clear', days }, { content: `Clear for ${days}.` }),
})
const BUSY = { status: 'error', error: { code: 'busy', message: 'The line is busy' } } as const
const parcel = tool({
  name: 'parcel',
  description: 'Where a parcel is.',
  input: z.object({
    how: z.enum(['lost', 'crash', 'twice', 'later', 'hang', 'stuck', 'nothing']),
    note: z.string().nullable(),
  }),
  run: async ({ how }, ctx) => {
    if (how === 'lost')
      return ctx.finish({ status: 'error', error: { code: 'lost', message: 'Gone' } }, { content: 'It is gone.' })
    if (how === 'crash') throw new Error('The van broke down')
    if (how === 'nothing') return ctx.finish()
    if (how === 'stuck') await ctx.emitResult(BUSY)
    if (how === 'hang' || how === 'stuck')
      return void (await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)))
    if (how === 'later') return
    await ctx.emitResult({ at: 'Oslo' })
    return ctx.finish('In Rome.')
  },
})
const headers = tool({
  name: 'headers',
  description: 'Takes any headers.',
  input: z.object({ headers: z.record(z.string(), z.string()) }),
  run: (input, ctx) => ctx.finish(input),
})
const words = tool({
  name: 'words',
  description: 'Counts words.',
  input: z.object({ text: z.string(), top: z.number().int().optional() }),
  implementation: component(new URL('../fixtures/components/wordcount.wasm', import.meta.url)),
})
const placed = [
  weather(),
  parcel(),
  headers({ env: hostEnv({ name: 'shop' }) }),
  words({ env: brainEnv({ name: 'box' }) }),
]

const POSSIBLY_DONE = /may have been done/

describe('tools for other clients', () => {
  let server: TestServer
  let provider: ModelServer
  let brain: Brain
  let session: SessionHandle

  beforeAll(async () => {
    ;[server, provider] = await Promise.all([startServer(), ModelServer.open()])
    brain = new Brain({ baseUrl: server.url })
    const model = { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'unused' }] }
    session = await brain.sessions.create({ model, tools: placed })
  })
  afterAll(async () => {
    await brain.close()
    await Promise.all([server[Symbol.asyncDispose](), provider[Symbol.asyncDispose]()])
  })

  /** Answers as the paid API would: a request with a schema that it does not take is refused. */
  const strictly =
    (rules: (tool: any) => readonly [schema: unknown, rules: Rules], body: object): Reply =>
    (response, asked) => {
      const faults = asked.body.tools.flatMap((one: any) => faultsOfSchema(...rules(one)))
      return refusal(faults.length > 0 ? 400 : 200, faults.length > 0 ? { error: { message: faults.join() } } : body)(
        response,
        asked,
      )
    }

  const calls = [
    { name: 'weather', input: { city: 'Oslo', days: null, mail: null } },
    { name: 'parcel', input: { how: 'lost', note: null } },
    { name: 'words', input: { text: 'to be or not to be', top: 1 } },
  ]
  const texts = ['Clear for 1.', 'It is gone.', '{"words":6,"unique":4,"top":[{"word":"be","count":2}]}']
  const given = (keepsNulls: boolean) =>
    calls.map(({ name, input }, index) => {
      const own = name === 'weather' && !keepsNulls ? { city: 'Oslo' } : input
      return { id: `call_${index}`, name, input: own, arguments: JSON.stringify(own) }
    })

  it.each([true, false])('OpenAI Chat Completions, strict: %s', async (strict) => {
    const client = new OpenAI({ apiKey: 'k', baseURL: provider.url, maxRetries: 0 })
    const { tools, run, remarks } = openaiChatTools(session, placed, { strict })
    const tool_calls = given(strict).map(({ id, name, arguments: text }) => ({
      id,
      type: 'function',
      function: { name, arguments: text },
    }))
    const rules = ({ function: asked }: any) => [asked.parameters, asked.strict ? 'openai_strict' : 'openai'] as const
    const answer = (message: object): object => ({
      choices: [{ index: 0, message: { role: 'assistant', ...message } }],
    })
    provider.says(strictly(rules, answer({ content: null, tool_calls })), strictly(rules, answer({ content: 'Done.' })))
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Go' }]
    const first = await client.chat.completions.create({ model: 'gpt', messages, tools })
    const { message } = first.choices[0]!
    messages.push(message, ...(await Promise.all((message.tool_calls ?? []).map((call) => run(call)))))
    const last = await client.chat.completions.create({ model: 'gpt', messages, tools })
    expect(last.choices[0]?.message.content).toBe('Done.')
    expect(provider.asked[1]?.body.messages.slice(2)).toEqual(
      texts.map((content, index) => ({ role: 'tool', tool_call_id: `call_${index}`, content })),
    )
    expect(tools.map(({ function: one }) => one.strict)).toEqual(
      strict ? [true, true, false, true] : Array(4).fill(false),
    )
    expect(remarks.map(({ tool: name, path, effect }) => [name, path, effect])).toEqual(
      strict ? [['headers', '#/properties/headers', 'not_strict']] : [],
    )
  })

  it('OpenAI Responses', async () => {
    const client = new OpenAI({ apiKey: 'k', baseURL: provider.url, maxRetries: 0 })
    const { tools, run } = openaiResponsesTools(session, placed, { strict: true })
    const rules = (asked: any) => [asked.parameters, asked.strict ? 'openai_strict' : 'openai'] as const
    const output = given(true).map(({ id, name, arguments: text }) => ({
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      name,
      arguments: text,
    }))
    provider.says(strictly(rules, { id: 'r', output }), strictly(rules, { id: 'r', output: [] }))
    const first = await client.responses.create({ model: 'gpt', input: 'Go', tools })
    const asked = first.output.filter((item) => item.type === 'function_call')
    await client.responses.create({ model: 'gpt', input: await Promise.all(asked.map((call) => run(call))), tools })
    expect(provider.asked[1]?.body.input).toEqual(
      texts.map((text, index) => ({ type: 'function_call_output', call_id: `call_${index}`, output: text })),
    )
  })

  it('Anthropic Messages', async () => {
    const client = new Anthropic({ apiKey: 'k', baseURL: provider.url, maxRetries: 0 })
    const { tools, run } = anthropicTools(session, placed)
    const rules = ({ input_schema }: any) => [input_schema, 'anthropic'] as const
    const content = given(false).map(({ id, name, input }) => ({ type: 'tool_use', id, name, input }))
    provider.says(strictly(rules, { role: 'assistant', content }), strictly(rules, { role: 'assistant', content: [] }))
    const ask = { model: 'claude', max_tokens: 100, tools }
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Go' }]
    const first = await client.messages.create({ ...ask, messages })
    const uses = first.content.filter((block) => block.type === 'tool_use')
    messages.push({ role: 'assistant', content: first.content })
    messages.push({ role: 'user', content: await Promise.all(uses.map((use) => run(use))) })
    await client.messages.create({ ...ask, messages })
    expect(provider.asked[1]?.body.messages.at(-1).content).toEqual(
      texts.map((text, index) => ({
        type: 'tool_result',
        tool_use_id: `call_${index}`,
        content: text,
        is_error: index === 1,
      })),
    )
  })

  it('the AI SDK', async () => {
    const model = createOpenAICompatible({ name: 'fake', apiKey: 'k', baseURL: provider.url })('gpt')
    const rules = ({ function: asked }: any) => [asked.parameters, 'openai'] as const
    const tool_calls = given(false).map(({ id, name, arguments: text }) => ({
      id,
      type: 'function',
      function: { name, arguments: text },
    }))
    const answer = (message: object, finish_reason: string): object => ({
      choices: [{ index: 0, finish_reason, message: { role: 'assistant', ...message } }],
    })
    provider.says(
      strictly(rules, answer({ content: null, tool_calls }, 'tool_calls')),
      strictly(rules, answer({ content: 'Done.' }, 'stop')),
    )
    const result = await generateText({
      model,
      prompt: 'Go',
      tools: aiSdkTools(session, placed),
      stopWhen: isStepCount(3),
    })
    expect(result.text).toBe('Done.')
    expect(provider.asked[1]?.body.messages.slice(2)).toEqual(
      texts.map((content, index) => ({ role: 'tool', tool_call_id: `call_${index}`, content })),
    )
    const reports = result.steps[0]?.toolResults.map(({ output }) => output)
    expect(reports?.[0]).toMatchObject({
      isError: false,
      value: { sky: 'clear', days: 1 },
      sequence: expect.any(Number),
    })
    expect(reports?.[1]).toMatchObject({ isError: true, value: { code: 'lost', message: 'Gone' } })
  })

  describe('what a model is told of a call', () => {
    const told = async (name: string, input: unknown, terms = {}): Promise<[string, boolean]> => {
      const { run } = anthropicTools(session, placed, terms)
      const { content, is_error } = await run({ id: 'use', name, input })
      return [content, is_error]
    }
    const parcelIs = (how: string, terms?: object) => told('parcel', { how, note: null }, terms)

    it('an exception, wrong input and a tool that is not there are errors with code and message', async () => {
      expect(await parcelIs('crash')).toEqual([expect.stringMatching(/"code":"tool_error".*The van broke down/), true])
      expect(await told('weather', {})).toEqual([expect.stringMatching(/"code":"invalid_input".*city/), true])
      expect(await told('weather', '{"city":"Oslo"}')).toEqual([expect.stringContaining('"invalid_input"'), true])
      expect(await told('nowhere', {})).toEqual([expect.stringMatching(/"unknown_tool".*nowhere/), true])
    })

    it('several results stand one below the other, and none is said to be none', async () => {
      expect(await parcelIs('twice')).toEqual(['{"at":"Oslo"}\nIn Rome.', false])
      expect(await parcelIs('nothing')).toEqual(['Done; the tool gave no result.', false])
      expect(await parcelIs('later')).toEqual(['The tool goes on working; nothing has come of it yet.', false])
    })

    it('a timeout and an unknown outcome say that the work may have been done', async () => {
      expect(await parcelIs('hang', { deadlineMs: 100 })).toEqual([expect.stringMatching(POSSIBLY_DONE), true])
      const [both] = await parcelIs('stuck', { deadlineMs: 100 })
      expect(both.split('\n')).toEqual([
        expect.stringContaining('"busy"'),
        expect.stringMatching(/"code":"timeout".*done anyway/),
      ])
      const other = new Brain({ baseUrl: server.url })
      const model = { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'unused' }] }
      const lost = await other.sessions.create({ model, tools: placed })
      const call = (input: unknown) => anthropicTools(handle, placed).run({ id: 'use', name: 'parcel', input })
      const handle = await brain.sessions.get(lost.id)
      const asked = call({ how: 'hang', note: null })
      for await (const { type } of handle.stream()) if (type === 'tool_call_started') break
      await other.close()
      expect(await asked).toMatchObject({ content: expect.stringMatching(POSSIBLY_DONE), is_error: true })
    })

    it('arguments are read as everywhere: nothing is {}, and no number becomes another one', async () => {
      const { run } = openaiChatTools(session, placed)
      const chat = async (name: string, text: string) =>
        (await run({ id: 'c', type: 'function', function: { name, arguments: text } })).content
      expect(await chat('weather', '')).toContain('"invalid_input"')
      expect(await chat('weather', `{"city":${'['.repeat(100)}`)).toContain('nested deeper than 64 levels')
      expect(await chat('weather', '{"city":')).toContain('"invalid_input"')
      expect(await chat('weather', '{"city":"Oslo","days":2512292042121000001}')).toContain('cannot be carried exactly')
      expect(await chat('weather', '{"city":"Oslo","days":2}')).toBe('Clear for 2.')
    })
  })

  it('reads a report as the AI SDK gives it: in an object, and by itself in version 5', () => {
    const report = { isError: true, text: 'gone', value: null }
    for (const { toModelOutput } of Object.values(aiSdkTools(session, placed)))
      expect([toModelOutput({ output: report }), toModelOutput(report)]).toEqual(
        Array.from({ length: 2 }, () => ({ type: 'error-text', value: 'gone' })),
      )
  })

  it('refuses what no provider could use, before any request', () => {
    expect(() => openaiChatTools(session, [weather(), weather({ env: hostEnv({ name: 'shop' }) })])).toThrow(
      'two named "weather"',
    )
    expect(() => openaiChatTools(session, [weather as never])).toThrow('call the factory')
    expect(() => aiSdkTools(session, placed, { wiat: 'finished' } as never)).toThrow('no member "wiat"')
    const many = Array.from({ length: 129 }, (_, i) =>
      tool({ name: `t${i}`, description: 'x', input: z.object({}), run: () => {} })(),
    )
    expect(() => openaiResponsesTools(session, many)).toThrow('at most 128')
    const odd = tool({ name: 'odd', description: 'x', input: z.object({ 'a b': z.string() }), run: () => {} })()
    expect(() => anthropicTools(session, [odd])).toThrow('tool "odd" at #/properties/a b: Anthropic refuses')
  })

  it('lints tools without a session', () => {
    expect(lintTools([weather(), parcel(), words({ env: brainEnv({ name: 'box' }) })])).toEqual([])
    const long = tool({
      name: 'long',
      description: 'x'.repeat(5000),
      input: z.object({ 'a b': z.string().regex(/^(?!x)/) }),
      run: () => {},
    })()
    expect(lintTools([long]).map(({ provider: who, path, effect }) => [who, path, effect])).toEqual([
      ['openai', '#/properties/a b/pattern', 'looser'],
      ['openai', '#', 'advice'],
      ['openai_strict', '#/properties/a b/pattern', 'looser'],
      ['openai_strict', '#', 'advice'],
      ['anthropic', '#/properties/a b/pattern', 'looser'],
      ['anthropic', '#/properties/a b', 'refused'],
    ])
    expect(openaiChatTools(session, [long]).tools[0]?.function.description).toHaveLength(5000)
  })

  describe('session.call', () => {
    let before = 0
    beforeEach(async () => {
      before = (await brain.sessions.get(session.id)).state.lastSequence
    })
    const typesSince = async (): Promise<string[]> =>
      (await Array.fromAsync(session.events(before))).map(({ type }) => type)

    it('calls a tool without waking the loop, and says how it went', async () => {
      const answer = await session.call('weather', { city: 'Oslo' }, { wait: 'finished', idempotencyKey: 'once' })
      expect(answer).toMatchObject({
        finished: true,
        outcome: { status: 'ok' },
        results: [{ output: { sky: 'clear', days: 1 }, is_error: false }],
      })
      expect(answer.events[0]?.recordedAt).toBeInstanceOf(Date)
      const again = await session.call('weather', { city: 'Oslo' }, { wait: 'finished', idempotencyKey: 'once' })
      expect(again.sequence).toBe(answer.sequence)
      expect((await typesSince()).filter((type) => !type.startsWith('tool_'))).toEqual([])
      expect((await session.transcript()).messages).toEqual([])
    })

    it('answers when the tool has returned, and at once when nobody waits', async () => {
      expect(await session.call('parcel', { how: 'later', note: null })).toMatchObject({ finished: false, results: [] })
      const started = await session.call('weather', { city: 'Oslo' }, { wait: 'started' })
      expect(started).toEqual({ sequence: expect.any(Number), finished: false, results: [], events: [] })
      await session.interrupt()
    })

    it('ends its waiting with the signal, and refuses what it cannot do', async () => {
      const controller = new AbortController()
      const hanging = session.call('parcel', { how: 'hang', note: null }, { signal: controller.signal })
      for await (const { type } of session.stream(before)) if (type === 'tool_call_started') break
      controller.abort(new Error('enough'))
      await expect(hanging).rejects.toThrow('enough')
      await session.interrupt()
      await expect(session.call('weather', { city: 'x' }, { signal: controller.signal })).rejects.toThrow('enough')
      await expect(session.call('nowhere', {})).rejects.toMatchObject({ name: 'BrainError', code: 'not_found' })
      await expect(session.call('weather', {}, { env: 'x' } as never)).rejects.toThrow('no member "env"')
      await expect(session.call('weather', {}, { wait: 'finish' as never })).rejects.toThrow('wait must be one of')
    })
  })
})
