import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectSoundJournal } from '../support/journal-checks.ts'
import {
  hangAfter,
  messagesAnswer,
  ModelServer,
  refusal,
  responsesAnswer,
  stream,
  textBlock,
  toolBlock,
} from '../support/model-server.ts'
import { fixture, startServer, TestSession, type TestServer } from '../support/server.ts'

const KEY = 'sk-e2e-secret-0123456789'
const folder = mkdtempSync(join(tmpdir(), 'brain-providers-'))
let fake: ModelServer
let server: TestServer
beforeAll(async () => {
  fake = await ModelServer.open()
  const file = join(folder, 'providers.json')
  await writeFile(file, JSON.stringify({ providers: [{ name: 'chatty', dialect: 'openai_chat', base_url: fake.url }] }))
  server = await startServer({
    BRAIN_MODEL_BASE_URL: fake.url,
    BRAIN_OPENAI_BASE_URL: fake.url,
    BRAIN_ANTHROPIC_BASE_URL: fake.url,
    BRAIN_PROVIDERS_FILE: file,
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function sessionOf(
  provider: string,
  name: string,
  tools: Readonly<Record<string, string>> = {},
): Promise<TestSession> {
  const placed = Object.entries(tools).map(([tool, id]) => ({
    name: tool,
    placements: {
      box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration: {} } },
    },
  }))
  const { status, body } = await server.post('/v1/sessions', {
    model: { provider, name, api_key: KEY },
    tools: placed,
    environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic' }],
  })
  if (status !== 200) throw new Error(`no session: ${JSON.stringify(body)}`)
  return new TestSession(server, body.session_id as string, placed[0]?.name ?? '')
}

const chatAnswer = (text: string): readonly unknown[] => [
  { choices: [{ index: 0, delta: { content: text }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  '[DONE]',
]

const lastWords = async (session: TestSession): Promise<unknown> =>
  (await server.get(`${session.path}/transcript`)).body.messages.at(-1).content

const recordsOf = async (session: TestSession, kind: string): Promise<any[]> =>
  (await session.records()).filter((record) => record.event_type === kind).map(({ data }) => data)

describe('a real server', () => {
  it.each([
    ['vercel-ai-gateway', 'acme/large', '/v1/responses', responsesAnswer('well')],
    ['openai', 'gpt', '/v1/responses', responsesAnswer('well')],
    ['anthropic', 'claude', '/v1/messages', messagesAnswer([textBlock('well')])],
    ['chatty', 'llama', '/v1/chat/completions', chatAnswer('well')],
  ])('asks %s for %s at %s', async (provider, name, path, answer) => {
    fake.says(stream(answer))
    const session = await sessionOf(provider, name)
    await session.send('how are you?')
    expect(await lastWords(session)).toEqual([{ type: 'text', text: 'well' }])
    expect(fake.asked).toMatchObject([{ path, body: { model: name, stream: true } }])
  })

  it('keeps every character of an answer, and gives it back to the model after a restart (cases D-16)', async () => {
    const text = 'a\u0000b \ud800x x\udc00 😀'
    fake.says(stream(responsesAnswer(text)), stream(responsesAnswer('yes')))
    const session = await sessionOf('openai', 'gpt')
    await session.send('say it')
    await server.kill('SIGTERM')
    await server.start()
    expect(await lastWords(session)).toEqual([{ type: 'text', text }])
    await session.send('again')
    expect(fake.asked[1]!.body.input[1]).toEqual({ role: 'assistant', content: [{ type: 'output_text', text }] })
  })

  it('shows a delta to readers of the stream while the model still writes, without an id', async () => {
    const release = Promise.withResolvers<void>()
    const [delta, ...rest] = responsesAnswer('slowly')
    fake.says(async (response, asked) => {
      await hangAfter(delta)(response, asked)
      await release.promise
      response.end(rest.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
    })
    const session = await sessionOf('openai', 'gpt')
    const reader = await fetch(`${server.url}${session.path}/events`, { headers: { accept: 'text/event-stream' } })
    const sent = session.send('write')
    let text = ''
    for await (const chunk of reader.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      if (text.includes('event: assistant_delta') && text.endsWith('\n\n')) release.resolve()
      if (text.includes('event: turn_ended')) break
    }
    await sent
    const frames = text.split('\n\n').map((frame) => frame.split('\n'))
    const shown = frames.find((lines) => lines.includes('event: assistant_delta'))
    expect(shown?.some((line) => line.startsWith('id:'))).toBe(false)
    const data = JSON.parse(shown!.find((line) => line.startsWith('data: '))!.slice(6))
    expect(JSON.stringify(data)).toContain('"text":"slowly"')
    expect(JSON.stringify(data)).toContain('model_call_sequence')
    expect(
      (await session.records()).some(({ event_type: kind }) => kind.endsWith('_delta') && kind !== 'transcript_delta'),
    ).toBe(false)
  })

  it('answers an open call once after a crash and after a cancel, and never repeats it (cases D-27)', async () => {
    const tools = {
      slow: await server.admit(await fixture('slow')),
      wordcount: await server.admit(await fixture('wordcount')),
    }
    const asks = messagesAnswer(
      [toolBlock('c1', 'slow', '{"how":"sleep","loop":true}'), toolBlock('c2', 'wordcount', '{"text":"one two"}')],
      'tool_use',
    )
    for (const way of ['killed', 'cancelled'] as const) {
      fake.says(stream(asks), stream(messagesAnswer([textBlock('going on')])))
      const session = await sessionOf('anthropic', 'claude', tools)
      const sent = session.send('count').catch(() => undefined)
      await expect.poll(() => recordsOf(session, 'tool_call_ended'), { timeout: 10_000 }).toHaveLength(1)
      if (way === 'killed') {
        await server.kill('SIGKILL')
        await sent
        await server.start()
      } else {
        await server.post(`${session.path}/cancel`)
        await sent
      }
      await session.send('and now?')
      expect(fake.asked).toHaveLength(2)
      const [, , answers] = fake.asked[1]!.body.messages
      expect(answers.content.map((block: any) => [block.type, block.tool_use_id ?? block.text])).toEqual([
        ['tool_result', 'c1'],
        ['tool_result', 'c2'],
        ['text', 'and now?'],
      ])
      const [open, done] = answers.content
      expect(open.is_error).toBe(true)
      expect(JSON.parse(open.content[0].text)).toMatchObject({ code: way === 'killed' ? 'unknown' : 'cancelled' })
      expect(done.content[0].text).toContain('"words":2')
      const started = await recordsOf(session, 'tool_call_started')
      expect(started.map(({ tool }) => tool)).toEqual(['slow', 'wordcount'])
      expect(await lastWords(session)).toEqual([{ type: 'text', text: 'going on' }])
      expectSoundJournal(await session.records())
    }
  })

  it('records a model call that a crash cut off as in doubt, and does not send it again', async () => {
    fake.says(hangAfter())
    const session = await sessionOf('openai', 'gpt')
    const sent = session.send('think').catch(() => undefined)
    await expect.poll(() => fake.asked.length).toBe(1)
    await server.kill('SIGKILL')
    await sent
    await server.start()
    expect((await server.get(session.path)).body.status).toBe('idle')
    expect(await recordsOf(session, 'model_call_failed')).toMatchObject([{ code: 'interrupted', ambiguous: true }])
    expect(fake.asked).toHaveLength(1)
  })

  it('closes the connection to the provider when the session is cancelled', async () => {
    const before = fake.aborted
    fake.says(hangAfter({ type: 'response.output_text.delta', output_index: 0, delta: 'never ' }))
    const session = await sessionOf('openai', 'gpt')
    const sent = session.send('go on')
    await expect.poll(() => fake.asked.length).toBe(1)
    await server.post(`${session.path}/cancel`)
    await sent
    await expect.poll(() => fake.aborted).toBe(before + 1)
    expect(await recordsOf(session, 'model_call_failed')).toMatchObject([{ code: 'unknown', ambiguous: true }])
  })

  it('keeps the key out of answers, events, log and disk, also when the provider repeats it', async () => {
    for (const provider of ['openai', 'anthropic', 'chatty']) {
      const session = await sessionOf(provider, 'm')
      for (const reply of [
        refusal(401, { error: { message: `Incorrect API key provided: ${KEY}` } }),
        refusal(500, `oops ${KEY}`),
      ]) {
        fake.says(reply)
        const { text } = await session.send('hi')
        expect(text).not.toContain(KEY)
      }
      expect(JSON.stringify(await session.records())).not.toContain(KEY)
      expect(JSON.stringify(await recordsOf(session, 'model_call_failed'))).toContain('[api key]')
    }
    expect((await server.get('/v1/models')).text).not.toContain(KEY)
    const found = execFileSync('sh', ['-c', `grep -rlaF ${KEY} ${JSON.stringify(server.directory)} || true`])
    expect(found.toString()).toBe('')
    expect(server.log).not.toContain(KEY)
  })
})
