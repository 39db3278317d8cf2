import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Block, Message, ModelRequest } from '../../../src/contract/message.ts'
import { ModelServer, refusal, responsesAnswer, stream } from '../../support/model-server.ts'
import { KEY, openLab, user, type Lab } from './provider-lab.ts'

let fake: ModelServer
let lab: Lab
beforeAll(async () => {
  fake = await ModelServer.open()
  lab = openLab(fake.url, { dialect: 'openai_responses' })
})
afterAll(() => fake[Symbol.asyncDispose]())

const tool = { name: 'look', description: 'looks', input_schema: { type: 'object' } }

/** The body that a request becomes. */
async function sent(request: Partial<ModelRequest>, model = 'm'): Promise<any> {
  fake.says(stream(responsesAnswer('ok')))
  await lab.ask(request, { model })
  return fake.asked[0]!.body
}

describe('what OpenAI Responses is asked', () => {
  it('carries conversation, system, tools, format and limit, and leaves nothing there (store:false)', async () => {
    const body = await sent({
      system: 'be kind',
      tools: [{ ...tool, output_schema: { type: 'string' } }],
      response_format: { type: 'json_schema', name: 'n', schema: {} },
      max_output_tokens: 77,
      options: { temperature: 0.5, top_p: 0.25, reasoning: { effort: 'low' } },
    })
    expect(fake.asked[0]).toMatchObject({
      path: '/v1/responses',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    expect(body).toEqual({
      model: 'm',
      stream: true,
      store: false,
      instructions: 'be kind',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
      tools: [{ type: 'function', name: 'look', description: 'looks', parameters: { type: 'object' }, strict: false }],
      text: { format: { type: 'json_schema', name: 'n', schema: {} } },
      max_output_tokens: 77,
      temperature: 0.5,
      top_p: 0.25,
      reasoning: { effort: 'low' },
      include: ['reasoning.encrypted_content'],
    })
  })

  it('takes a format in the form of chat completions too', async () => {
    const schema = { name: 'n', schema: { type: 'object' }, strict: true }
    const body = await sent({ response_format: { type: 'json_schema', json_schema: schema } })
    expect(body.text).toEqual({ format: { type: 'json_schema', ...schema } })
    expect(await sent({ response_format: null })).not.toHaveProperty('text')
  })

  it('asks for sealed reasoning only where the model reasons', async () => {
    for (const [model, asks] of [
      ['gpt-5.2', true],
      ['openai/o4-mini', true],
      ['gpt-5-chat-latest', false],
      ['gpt-4o', false],
    ] as const)
      expect({ model, asks: 'include' in (await sent({}, model)) }).toEqual({ model, asks })
  })

  it('shows pictures and documents by URL, also those of results', async () => {
    const image = { type: 'image', url: 'https://x.example/a.png' } as const
    const file = { type: 'file', media_type: 'application/pdf', url: 'https://x.example/a.pdf' } as const
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'see' }, image, file] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'look', input: { a: [1] } }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c', content: { n: 1 }, is_error: false, media: [image] }],
      },
    ]
    const { input } = await sent({ messages })
    const picture = { type: 'input_image', image_url: image.url, detail: 'auto' }
    expect(input).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: 'see' }, picture, { type: 'input_file', file_url: file.url }],
      },
      { type: 'function_call', call_id: 'c', name: 'look', arguments: '{"a":[1]}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: '{"n":1}' }, picture] },
    ])
    expect(lab.frames[0]).toMatchObject({ type: 'model_request', media_inputs: 3 })
  })

  it('gives text results as they are, in the order of the calls, and the words of a developer', async () => {
    const messages: Message[] = [
      { role: 'developer', content: [{ type: 'text', text: 'rules' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'tool_use', id: '1', name: 'made up!', input: null },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'plain', is_error: true }] },
      { role: 'assistant', content: [] },
    ]
    expect((await sent({ messages })).input).toEqual([
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'rules' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
      { type: 'function_call', call_id: '1', name: 'made_up_', arguments: 'null' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'b' }] },
      { type: 'function_call_output', call_id: '1', output: 'plain' },
    ])
  })

  it('leaves out reasoning that the provider kept to itself: nothing of it was stored', async () => {
    const native = (data: object): Block => ({ type: 'native', format: 'openai_responses/1', data: data as never })
    const sealed = { type: 'reasoning', id: 'b', encrypted_content: 'SEALED' }
    const content = [native({ type: 'reasoning', id: 'a', summary: [] }), native(sealed)]
    expect((await sent({ messages: [user('hi'), { role: 'assistant', content }] })).input.slice(1)).toEqual([sealed])
  })

  it('carries NUL, lone surrogates and emoji as escapes that mean the same (cases D-16)', async () => {
    const text = 'a\u0000b \ud800x x\udc00 😀'
    expect((await sent({ messages: [user(text)] })).input[0].content[0].text).toBe(text)
  })

  it.each([
    ['an option beyond the list', { options: { top_k: 3 } }, /no option "top_k"; it takes operation, reasoning/],
    ['another operation', { options: { operation: 'expand' } }, /must be "compact"/],
    ['a tool name that its API refuses', { tools: [{ ...tool, name: 'a.b' }] }, /refuses the tool name "a.b"/],
    ['a tool name that is too long', { tools: [{ ...tool, name: 'a'.repeat(65) }] }, /refuses the tool name/],
    [
      'a native block of another wire',
      { messages: [{ role: 'assistant', content: [{ type: 'native', format: 'x/1', data: {} }] }] },
      /format "x\/1".*leave the block out/,
    ],
    [
      'a call that a user makes',
      { messages: [{ role: 'user', content: [{ type: 'tool_use', id: 'a', name: 'b', input: {} }] }] },
      /has role "user" and a tool_use/,
    ],
  ] as const)('refuses %s before it is sent', async (_, request, message) => {
    fake.says(stream(responsesAnswer('ok')))
    const failure = await lab.fail(request as Partial<ModelRequest>)
    expect(failure).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
    expect(fake.asked).toHaveLength(0)
  })
})

describe('what OpenAI Responses answers', () => {
  it('is read in the smallest form of contract 7.4', async () => {
    fake.says(stream(responsesAnswer('hello', [{ id: 'c1', name: 'look', arguments: '{"a":1}' }])))
    expect(await lab.ask({ tools: [tool] })).toEqual({
      message: {
        role: 'assistant',
        content: [
          { type: 'text', text: 'hello' },
          { type: 'tool_use', id: 'c1', name: 'look', input: { a: 1 } },
        ],
      },
      stop_reason: 'tool_use',
      usage: {},
    })
    expect(lab.frames.map(({ type, ...frame }) => [type, frame])).toEqual([
      ['model_request', { input_bytes: expect.any(Number), media_inputs: 0 }],
      ['assistant_delta', { index: 0, text: 'hello' }],
      ['tool_call_delta', { index: 1, id: 'c1', name: 'look' }],
      ['tool_call_delta', { index: 1, partial_json: '{"a":1}' }],
      ['model_output', { output_bytes: expect.any(Number) }],
    ])
  })

  it('is read in the form of the real API: ids, pieces, usage, items that are kept as they came', async () => {
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'SEALED' }
    const future = { type: 'something_new', id: 'x_1', data: { deep: [1, null] } }
    fake.says(
      stream([
        { type: 'response.created', response: { id: 'r' } },
        { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs_1' } },
        { type: 'response.output_item.done', output_index: 0, item: reasoning },
        { type: 'response.output_item.added', output_index: 1, item: { type: 'message', id: 'm', content: [] } },
        { type: 'response.output_text.delta', output_index: 1, item_id: 'm', delta: 'he' },
        { type: 'response.output_text.delta', output_index: 1, item_id: 'm', delta: 'llo' },
        {
          type: 'response.output_item.done',
          output_index: 1,
          item: { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'hello' }] },
        },
        { type: 'response.output_item.done', output_index: 2, item: future },
        {
          type: 'response.output_item.added',
          output_index: 3,
          item: { type: 'function_call', id: 'f', call_id: 'c', name: 'look', arguments: '' },
        },
        { type: 'response.function_call_arguments.delta', output_index: 3, delta: '{"a"' },
        { type: 'response.function_call_arguments.delta', output_index: 3, delta: ':2}' },
        {
          type: 'response.output_item.done',
          output_index: 3,
          item: { type: 'function_call', id: 'f', call_id: 'c', name: 'look', arguments: '{"a":2}' },
        },
        {
          type: 'response.completed',
          response: {
            output: [],
            usage: {
              input_tokens: 10,
              input_tokens_details: { cached_tokens: 4 },
              output_tokens: 5,
              output_tokens_details: { reasoning_tokens: 3 },
            },
          },
        },
      ]),
    )
    const { message, usage, stop_reason } = await lab.ask({ tools: [tool] })
    const native = (data: object): Block => ({ type: 'native', format: 'openai_responses/1', data: data as never })
    expect(message.content).toEqual([
      native(reasoning),
      { type: 'text', text: 'hello' },
      native(future),
      { type: 'tool_use', id: 'c', name: 'look', input: { a: 2 } },
    ])
    expect({ usage, stop_reason }).toEqual({
      stop_reason: 'tool_use',
      usage: {
        total_input_tokens: 10,
        input_tokens: 6,
        output_tokens: 5,
        cache_read_input_tokens: 4,
        reasoning_tokens: 3,
      },
    })
    expect(lab.frames.filter(({ type }) => type === 'tool_call_delta')).toHaveLength(3)
    const given = await sent({ messages: [user('hi'), message] })
    expect(given.input.slice(1)).toEqual([
      reasoning,
      { role: 'assistant', content: [{ type: 'output_text', text: 'hello' }] },
      future,
      { type: 'function_call', call_id: 'c', name: 'look', arguments: '{"a":2}' },
    ])
  })

  it('is read from pieces alone, from the last event alone, without numbers, or as one JSON body', async () => {
    const item = { type: 'message', content: [{ type: 'output_text', text: 'whole' }] }
    const usage = { input_tokens: 1, output_tokens: 2 }
    const call = (name: string) => ({ type: 'function_call', call_id: name, name, arguments: '{}' })
    for (const reply of [
      stream([
        { type: 'response.output_text.delta', delta: 'whole' },
        { type: 'response.completed', response: {} },
      ]),
      stream([{ type: 'response.completed', response: { output: [item], usage } }, '[DONE]']),
      stream([
        { type: 'response.output_text.delta', delta: 'wh' },
        { type: 'response.output_item.done', item },
        { type: 'response.completed', response: {} },
      ]),
      refusal(200, { output: [item], usage }),
    ]) {
      fake.says(reply)
      expect((await lab.ask()).message.content).toEqual([{ type: 'text', text: 'whole' }])
    }
    fake.says(
      stream([
        { type: 'response.output_item.done', item: call('a') },
        { type: 'response.output_item.done', item: call('b') },
        { type: 'response.completed', response: {} },
      ]),
    )
    expect((await lab.ask()).message.content).toMatchObject([{ id: 'a' }, { id: 'b' }])
  })

  it('may repeat request and answer in its last event, however long they are', async () => {
    const system = 's'.repeat(200_000)
    const text = 't'.repeat(200_000)
    const item = { type: 'message', content: [{ type: 'output_text', text }] }
    fake.says(
      stream([
        { type: 'response.created', response: { instructions: system } },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { instructions: system, output: [item] } },
      ]),
    )
    expect((await lab.ask({ system })).message.content).toEqual([{ type: 'text', text }])
  })

  it('is shortened to its reason: refusals, filters, limits of tokens', async () => {
    const refused = { type: 'message', content: [{ type: 'refusal', refusal: 'I will not' }] }
    fake.says(
      stream([
        { type: 'response.refusal.delta', output_index: 0, delta: 'I will not' },
        { type: 'response.output_item.done', output_index: 0, item: refused },
        { type: 'response.completed', response: {} },
      ]),
    )
    expect(await lab.ask()).toMatchObject({
      stop_reason: 'refusal',
      message: { content: [{ type: 'text', text: 'I will not' }] },
    })
    expect(lab.frames).toContainEqual({ type: 'refusal_delta', index: 0, text: 'I will not' })
    for (const [reason, stop] of [
      ['max_output_tokens', 'max_tokens'],
      ['content_filter', 'refusal'],
      ['something_else', 'unknown'],
    ]) {
      fake.says(
        stream([
          { type: 'response.output_text.delta', output_index: 0, delta: 'par' },
          { type: 'response.incomplete', response: { incomplete_details: { reason } } },
        ]),
      )
      expect(await lab.ask()).toMatchObject({ stop_reason: stop, message: { content: [{ text: 'par' }] } })
    }
  })

  it('compacts a conversation into items that go back as they came', async () => {
    const output = [
      { type: 'message', id: 'u', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'compaction', id: 'cmp', encrypted_content: 'SEALED' },
    ]
    fake.says(refusal(200, { object: 'response.compaction', output, usage: { input_tokens: 9, output_tokens: 3 } }))
    const { message, usage } = await lab.ask({ options: { operation: 'compact' }, system: 's', tools: [tool] })
    expect(fake.asked[0]).toMatchObject({ path: '/v1/responses/compact' })
    expect(Object.keys(fake.asked[0]!.body).toSorted()).toEqual(['input', 'instructions', 'model'])
    expect(usage).toMatchObject({ total_input_tokens: 9, output_tokens: 3 })
    expect((await sent({ messages: [message] })).input).toEqual(output)
  })

  it('tells a failure inside its stream, which is certain', async () => {
    fake.says(
      stream([
        { type: 'response.output_text.delta', output_index: 0, delta: 'par' },
        {
          type: 'response.failed',
          response: { error: { code: 'rate_limit_exceeded', message: 'slow down' }, usage: { output_tokens: 2 } },
        },
      ]),
    )
    expect(await lab.fail()).toMatchObject({
      code: 'model_provider_failed',
      message: 'Provider "test" failed while it answered: rate_limit_exceeded: slow down',
      retryable: true,
      ambiguous: false,
      response: { usage: { output_tokens: 2 }, usage_complete: false },
    })
    fake.says(stream([{ type: 'error', code: 'bad', message: 'no' }]))
    expect(await lab.fail()).toMatchObject({ message: expect.stringContaining('bad: no'), retryable: false })
  })
})
