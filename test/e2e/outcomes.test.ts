import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataOf } from '../../src/journal/record.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { hangAfter, ModelServer, responsesAnswer, stream } from '../support/model-server.ts'
import { fixture, startServer, TestSession, type TestServer } from '../support/server.ts'

let fake: ModelServer
let server: TestServer
let id: string
beforeAll(async () => {
  fake = await ModelServer.open()
  server = await startServer({ BRAIN_OPENAI_BASE_URL: fake.url })
  id = await server.admit(await fixture('outcomes'))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

async function session(output_schema: unknown = {}): Promise<TestSession> {
  const { body } = await server.post('/v1/sessions', {
    model: { provider: 'openai', name: 'gpt', api_key: 'k' },
    tools: [
      {
        name: 'outcomes',
        output_schema,
        placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration: {} } } },
      },
    ],
    environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic' }],
  })
  return new TestSession(server, body.session_id as string, 'outcomes')
}

const finish = (outcome: unknown) => ({ steps: [{ do: 'finish', outcome }] })

/** What a component finished with, as a direct call, the journal, the next model request and the transcript tell it. */
async function toldOf(one: TestSession, input: unknown) {
  const direct = await one.call(input, { wait: 'finished' })
  fake.says(
    stream(responsesAnswer('', [{ id: 'c', name: 'outcomes', arguments: JSON.stringify(input) }])),
    stream(responsesAnswer('done')),
  )
  await one.send('go')
  const records = await one.records()
  expectSoundJournal(records)
  const { messages } = (await server.get(`${one.path}/transcript`)).body
  return {
    direct,
    ended: records.flatMap((record) => dataOf(record, 'tool_call_ended')?.outcome ?? []),
    results: records.flatMap((record) => dataOf(record, 'tool_result_emitted')?.result ?? []),
    asked: fake.asked[1]!.body.input.findLast((item: any) => item.type === 'function_call_output').output as string,
    shown: messages.flatMap((message: any) => message.content).findLast((block: any) => block.type === 'tool_result'),
  }
}

describe('what a component finishes with', () => {
  it.each(['ok', 'error', 'timeout', 'cancelled', 'unknown'])(
    'comes back unchanged everywhere when its value is an object of status %s',
    async (status) => {
      const value = { status, value: { n: 1 }, error: 'mine', message: ['data'] }
      const { direct, ended, results, asked, shown } = await toldOf(await session(), finish({ status: 'ok', value }))
      expect(direct.outcome).toEqual({ status: 'ok', value: null })
      expect(direct.results).toMatchObject([{ output: value, is_error: false }])
      expect(ended).toEqual([direct.outcome, direct.outcome])
      expect(results.map(({ output }) => output)).toEqual([value, value])
      expect(JSON.parse(asked)).toEqual(value)
      expect(shown).toMatchObject({ content: value, is_error: false })
    },
  )

  it('keeps code, message, retryable and details of an error everywhere', async () => {
    const error = { code: 'no_seat', message: 'sold out 😀', retryable: true, details: { row: [1, { status: 'ok' }] } }
    const outcome = { status: 'error', error }
    const { direct, ended, asked, shown } = await toldOf(await session({ type: 'string' }), finish(outcome))
    expect(direct.outcome).toEqual(outcome)
    expect(ended).toEqual([outcome, outcome])
    expect(JSON.parse(asked)).toEqual(error)
    expect(shown).toMatchObject({ content: error, is_error: true })
  })

  it.each([
    { status: 'ok', value: { n: 1 }, content: 'one of them' },
    { status: 'error', error: { code: 'sad', message: 'no', details: 7 }, content: 'one of them' },
  ])('shows the model the content of an outcome $status, while output, status and validation stay', async (outcome) => {
    const schema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } }
    const one = await session(schema)
    const { direct, ended, results, asked, shown } = await toldOf(one, finish(outcome))
    const output = outcome.status === 'ok' ? outcome.value : outcome.error
    expect(direct.results).toMatchObject([{ output, content: 'one of them' }])
    expect(results).toMatchObject([
      { output, content: 'one of them' },
      { output, content: 'one of them' },
    ])
    expect(ended.map(({ status }) => status)).toEqual([outcome.status, outcome.status])
    expect(asked).toBe('one of them')
    expect(shown).toMatchObject({ content: 'one of them', is_error: outcome.status === 'error' })
    const wrong = await one.call(finish({ status: 'ok', value: { n: 'x' }, content: 'fine' }), { wait: 'finished' })
    expect(wrong.outcome).toMatchObject({ status: 'error', error: { code: 'invalid_output' } })
  })
})

describe('the model call of a component', () => {
  it.each(['cancelled', 'timeout'] as const)(
    'shows no delta, is closed when the component is stopped (%s), and is recorded in doubt (contract A18)',
    async (how) => {
      const before = fake.aborted
      fake.says(hangAfter({ type: 'response.output_text.delta', output_index: 0, delta: 'secret thought' }))
      const one = await session()
      const frames = await fetch(`${server.url}${one.path}/events`, { headers: { accept: 'text/event-stream' } })
      const request = { messages: [{ role: 'user', content: [{ type: 'text', text: 'q' }] }] }
      const steps = [{ do: 'model', request }, { do: 'finish' }]
      const called = one.call({ steps }, { wait: 'finished', ...(how === 'timeout' ? { deadlineMs: 1500 } : {}) })
      await expect.poll(() => fake.asked.length).toBe(1)
      if (how === 'cancelled') await server.post(`${one.path}/cancel`)
      expect((await called).outcome).toEqual({ status: how })
      await expect.poll(() => fake.aborted).toBe(before + 1)
      await server.post(`${one.path}/end`)
      const records = await one.records()
      expectSoundJournal(records)
      const [failed] = records.filter(({ event_type: kind }) => kind === 'model_call_failed')
      expect(failed).toMatchObject({ data: { code: 'unknown', ambiguous: true }, origin: { kind: 'tool' } })
      expect(fake.asked).toHaveLength(1)
      const shown = await frames.text()
      expect(shown).toContain('event: model_call_failed')
      expect(shown).not.toMatch(/event: assistant_delta|secret thought/)
    },
  )
})
