import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Message, ModelRequest } from '../../../src/contract/message.ts'
import { messagesAnswer, ModelServer, refusal, stream, textBlock, toolBlock } from '../../support/model-server.ts'
import { KEY, openLab, user, type Lab } from './provider-lab.ts'

let fake: ModelServer
let lab: Lab
beforeAll(async () => {
  fake = await ModelServer.open()
  lab = openLab(fake.url, { dialect: 'anthropic_messages', models: [{ id: 'large', max_output_tokens: 64_000 }] })
})
afterAll(() => fake[Symbol.asyncDispose]())

const tool = { name: 'look', description: 'looks', input_schema: { type: 'object' } }
const says = (...answer: Parameters<typeof messagesAnswer>): void =>
  fake.says(stream(messagesAnswer(...answer), { named: true }))

async function sent(request: Partial<ModelRequest>, model = 'm'): Promise<any> {
  says([textBlock('ok')])
  await lab.ask(request, { model })
  return fake.asked[0]!.body
}

describe('what Anthropic Messages is asked', () => {
  it('carries conversation, system, tools and limit, with the options as they are given', async () => {
    const options = {
      thinking: { type: 'enabled', budget_tokens: 1024 },
      output_config: { effort: 'high' },
      temperature: 1.5,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['END'],
    }
    const body = await sent({ system: 'be kind', tools: [tool], max_output_tokens: 2000, options })
    expect(fake.asked[0]).toMatchObject({
      path: '/v1/messages',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
    })
    expect(fake.asked[0]!.headers.authorization).toBeUndefined()
    expect(body).toEqual({
      model: 'm',
      max_tokens: 2000,
      stream: true,
      system: 'be kind',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      tools: [tool],
      ...options,
    })
  })

  it('always has a limit: of the request, of the catalogue, or 8192', async () => {
    expect((await sent({})).max_tokens).toBe(8192)
    expect((await sent({}, 'large')).max_tokens).toBe(64_000)
    expect((await sent({ max_output_tokens: 5 }, 'large')).max_tokens).toBe(5)
  })

  it('alternates roles, puts results first, and holds no empty content', async () => {
    const image = { type: 'image', url: 'https://x.example/a.png' } as const
    const messages: Message[] = [
      { role: 'developer', content: [{ type: 'text', text: 'rules' }] },
      user('hi'),
      { role: 'assistant', content: [] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: ' ' },
          { type: 'tool_use', id: 'functions.look:0', name: 'made up!', input: [1] },
        ],
      },
      user('more'),
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions.look:0', content: '', is_error: true, media: [image] },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'file', media_type: 'application/pdf', url: 'https://x.example/a.pdf' }],
      },
    ]
    const body = await sent({ messages, system: '' })
    expect(body).not.toHaveProperty('system')
    const picture = { type: 'image', source: { type: 'url', url: image.url } }
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'rules' },
          { type: 'text', text: 'hi' },
        ],
      },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'functions_look_0', name: 'made_up_', input: { input: [1] } }],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions_look_0', content: [picture], is_error: true },
          { type: 'text', text: 'more' },
          { type: 'document', source: { type: 'url', url: 'https://x.example/a.pdf' } },
        ],
      },
    ])
  })

  it.each([
    ['a response_format', { response_format: { type: 'json_object' } }, /has no response_format/],
    ['an option beyond the list', { options: { reasoning: {} } }, /no option "reasoning"/],
  ] as const)('refuses %s before it is sent', async (_, request, message) => {
    says([textBlock('ok')])
    expect(await lab.fail(request)).toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message),
    })
    expect(fake.asked).toHaveLength(0)
    expect(await sent({ response_format: null })).not.toHaveProperty('response_format')
  })
})

describe('what Anthropic Messages answers', () => {
  it('is read with its thinking, which goes back as it came', async () => {
    const search = { type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result' }] }
    says(
      [
        {
          block: { type: 'thinking', thinking: '', signature: '' },
          deltas: [
            { type: 'thinking_delta', thinking: 'let ' },
            { type: 'thinking_delta', thinking: 'me see' },
            { type: 'signature_delta', signature: 'SIGNED' },
          ],
        },
        { block: { type: 'redacted_thinking', data: 'SEALED' } },
        textBlock('one ', 'moment'),
        {
          block: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          deltas: [{ type: 'input_json_delta', partial_json: '{"q":1}' }],
        },
        { block: search },
        { block: { type: 'strange' }, deltas: [{ type: 'strange_delta', bit: 1 }] },
        toolBlock('toolu_1', 'look', '', '{"pa', 'th":"."}'),
      ],
      'tool_use',
    )
    const { message, usage, stop_reason } = await lab.ask({ tools: [tool] })
    const native = (data: object) => ({ type: 'native', format: 'anthropic_messages/1', data })
    expect(message.content).toEqual([
      native({ type: 'thinking', thinking: 'let me see', signature: 'SIGNED' }),
      native({ type: 'redacted_thinking', data: 'SEALED' }),
      { type: 'text', text: 'one moment' },
      native({ type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } }),
      native(search),
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { path: '.' } },
    ])
    expect({ usage, stop_reason }).toEqual({
      stop_reason: 'tool_use',
      usage: { total_input_tokens: 11, input_tokens: 11, output_tokens: 7 },
    })
    const shown = lab.frames.map((frame) => ('text' in frame ? frame.text : frame.type))
    expect(shown).toEqual([
      'model_request',
      'model_usage',
      'one ',
      'moment',
      'tool_call_delta',
      'tool_call_delta',
      'tool_call_delta',
      'model_usage',
      'model_output',
    ])
    const { messages } = await sent({ messages: [user('hi'), message] })
    expect(messages[1].content).toEqual([
      { type: 'thinking', thinking: 'let me see', signature: 'SIGNED' },
      { type: 'redacted_thinking', data: 'SEALED' },
      { type: 'text', text: 'one moment' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } },
      search,
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { path: '.' } },
    ])
  })

  it('counts cached input apart, and takes later sums for earlier ones', async () => {
    const answer = messagesAnswer([textBlock('ok')])
    fake.says(
      stream(
        answer.map((event: any) =>
          event.type === 'message_start'
            ? {
                ...event,
                message: {
                  usage: {
                    input_tokens: 5,
                    cache_read_input_tokens: 3,
                    cache_creation_input_tokens: 2,
                    output_tokens: 1,
                  },
                },
              }
            : event,
        ),
      ),
    )
    expect((await lab.ask()).usage).toEqual({
      total_input_tokens: 10,
      input_tokens: 5,
      output_tokens: 7,
      cache_read_input_tokens: 3,
      cache_creation_input_tokens: 2,
    })
  })

  it.each([
    ['end_turn', 'end_turn'],
    ['stop_sequence', 'stop_sequence'],
    ['refusal', 'refusal'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'max_tokens'],
    ['pause_turn', 'unknown'],
  ])('ends for %s as %s', async (theirs, ours) => {
    says([textBlock('ok')], theirs)
    expect((await lab.ask()).stop_reason).toBe(ours)
  })

  it('is whole without its last event, and as one JSON body', async () => {
    fake.says(stream(messagesAnswer([textBlock('ok')]).slice(0, -1)))
    expect((await lab.ask()).message.content).toEqual([{ type: 'text', text: 'ok' }])
    const content = [
      { type: 'text', text: 'ok' },
      { type: 'tool_use', id: 't', name: 'look', input: { a: 1 } },
    ]
    fake.says(refusal(200, { type: 'message', content, stop_reason: 'tool_use', usage: { output_tokens: 1 } }))
    expect(await lab.ask()).toMatchObject({
      message: { content },
      stop_reason: 'tool_use',
      usage: { output_tokens: 1 },
    })
  })

  it('tells a failure inside its stream, which is certain, with the tokens that it cost', async () => {
    fake.says(
      stream([
        ...messagesAnswer([textBlock('par')]).slice(0, 4),
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ]),
    )
    expect(await lab.fail()).toMatchObject({
      code: 'model_provider_failed',
      message: 'Provider "test" failed while it answered: overloaded_error: Overloaded',
      retryable: true,
      ambiguous: false,
      response: { stop_reason: 'unknown', usage: { total_input_tokens: 11 }, usage_complete: false },
    })
  })
})
