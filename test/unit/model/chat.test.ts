import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Message, ModelRequest } from '../../../src/contract/message.ts'
import { ModelServer, pieces, stream } from '../../support/model-server.ts'
import { KEY, openLab, user, type Lab } from './provider-lab.ts'

let fake: ModelServer
let lab: Lab
beforeAll(async () => {
  fake = await ModelServer.open()
  lab = openLab(fake.url, { dialect: 'openai_chat' })
})
afterAll(() => fake[Symbol.asyncDispose]())

const tool = { name: 'look', description: 'looks', input_schema: { type: 'object' } }
const delta = (part: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: part, finish_reason: finish }],
})
const call = (index: number, part: object) => delta({ tool_calls: [{ index, type: 'function', ...part }] })
const usage = { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } }

async function sent(request: Partial<ModelRequest>): Promise<any> {
  fake.says(stream([delta({ content: 'ok' }), delta({}, 'stop'), '[DONE]']))
  await lab.ask(request)
  return fake.asked[0]!.body
}

describe('what a server of chat completions is asked', () => {
  it('carries conversation, system, tools, format, options and limit', async () => {
    const body = await sent({
      system: 'be kind',
      tools: [tool],
      response_format: { type: 'json_schema', name: 'n', schema: { type: 'object' } },
      max_output_tokens: 55,
      options: { temperature: 0.5, top_p: 0.1, stop: ['END'], reasoning_effort: 'low' },
    })
    expect(fake.asked[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
    })
    expect(body).toEqual({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 55,
      temperature: 0.5,
      top_p: 0.1,
      stop: ['END'],
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } },
      messages: [
        { role: 'system', content: 'be kind' },
        { role: 'user', content: 'hi' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'looks', parameters: { type: 'object' } } }],
    })
  })

  it('shows pictures by URL, those of results behind them; a document is refused before it is sent', async () => {
    const image = { type: 'image', url: 'https://x.example/a.png' } as const
    const picture = { type: 'image_url', image_url: { url: image.url } }
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'see' }, image] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'look', input: { a: 1 } }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c', content: { n: 1 }, is_error: false, media: [image] }],
      },
    ]
    expect((await sent({ messages })).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'see' }, picture] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: '{"n":1}' },
      { role: 'user', content: [picture] },
    ])
    fake.says()
    const file = { type: 'file', media_type: 'application/pdf', url: 'https://x.example/a.pdf' } as const
    expect(await lab.fail({ messages: [{ role: 'user', content: [file] }] })).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('application/pdf'),
    })
    expect(fake.asked).toHaveLength(0)
  })
})

describe('what a server of chat completions answers', () => {
  it('is read with text, reasoning, parallel calls and usage; reasoning goes back', async () => {
    fake.says(
      stream([
        delta({ role: 'assistant', reasoning_content: 'hmm' }),
        delta({ content: 'one ' }),
        delta({ content: 'moment' }),
        call(0, { id: 'a', function: { name: 'look', arguments: '' } }),
        call(1, { id: 'b', function: { name: 'look', arguments: '{"x"' } }),
        call(1, { function: { arguments: ':2512}' } }),
        delta({}, 'tool_calls'),
        usage,
        '[DONE]',
      ]),
    )
    const { message, ...rest } = await lab.ask({ tools: [tool] })
    expect(message.content).toEqual([
      { type: 'native', format: 'openai_chat/1', data: { reasoning: 'hmm' } },
      { type: 'text', text: 'one moment' },
      { type: 'tool_use', id: 'a', name: 'look', input: {} },
      { type: 'tool_use', id: 'b', name: 'look', input: { x: 2512 } },
    ])
    expect(rest).toEqual({
      stop_reason: 'tool_use',
      usage: { total_input_tokens: 9, input_tokens: 9, output_tokens: 4 },
    })
    expect(lab.frames.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['model_request', 'assistant_delta', 'tool_call_delta', 'model_usage', 'model_output']),
    )
    const { messages } = await sent({ messages: [user('hi'), message] })
    expect(messages[1]).toMatchObject({ role: 'assistant', content: 'one moment', reasoning_content: 'hmm' })
  })

  it('keeps the signature that a call must bring along', async () => {
    fake.says(
      stream([
        call(0, {
          id: 'a',
          function: { name: 'look', arguments: '{}' },
          extra_content: { google: { thought_signature: 'SIGNED' } },
        }),
        delta({}, 'tool_calls'),
      ]),
    )
    const { message } = await lab.ask({ tools: [tool] })
    const { messages } = await sent({ messages: [user('hi'), message] })
    expect(messages[1].tool_calls[0].extra_content).toEqual({ google: { thought_signature: 'SIGNED' } })
  })

  it('ends at the mark although the connection stays open', async () => {
    fake.says((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of [delta({ content: 'ok' }), delta({}, 'stop')])
        response.write(`data: ${JSON.stringify(event)}\n\n`)
      response.write('data: [DONE]\n\n')
    })
    expect(await lab.ask()).toMatchObject({ stop_reason: 'end_turn', message: { content: [{ text: 'ok' }] } })
  })

  it('tells failures inside its stream, and what is no chat completion', async () => {
    fake.says(stream([delta({ content: 'par' }), { error: { message: 'overloaded', code: 529 } }]))
    expect(await lab.fail()).toMatchObject({
      code: 'model_provider_failed',
      message: 'Provider "test" failed while it answered: overloaded',
      retryable: true,
      ambiguous: false,
    })
    fake.says(pieces('data: {"choices": 7}\n\n', 'data: [DONE]\n\n'))
    expect(await lab.fail()).toMatchObject({ code: 'model_output_invalid', ambiguous: false })
  })
})
