import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportSession } from '../../src/archive/export-session.ts'
import { archiveJournal } from '../../src/compose.ts'
import { dataOf } from '../../src/journal/record.ts'
import { parseSessionId } from '../../src/kernel/ids.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { ModelServer, responsesAnswer, stream } from '../support/model-server.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'
import { HELLO, jsonAnswer, RawService, STREAM_HEAD } from '../support/tool-service-lab.ts'

const TOKEN = 'canary-token-of-the-tools'
const API_TOKEN = 'token-of-the-api'

/** A service as the seed shows one: it checks its token and echoes. */
const echo = createServer((request, response) => {
  void (async () => {
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return response.writeHead(401).end()
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { arguments: given } = JSON.parse(body) as { arguments: { text: string } }
    response.writeHead(200, { 'Content-Type': 'application/json' })
    return response.end(JSON.stringify({ content: [{ type: 'text', text: given.text }] }))
  })()
})

let raw: RawService
let fake: ModelServer
let server: TestServer

const object = { type: 'object' }
const bindings = (): object => {
  const port = (echo.address() as { port: number }).port
  const input_schema = {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 4096 } },
    required: ['text'],
    additionalProperties: false,
  }
  const at = { description: 'A raw service.', input_schema: object, url: `${raw.origin}/canary-path` }
  return {
    tools: [
      {
        name: 'echo',
        description: 'Echo text through an external tool service.',
        input_schema,
        url: `http://127.0.0.1:${port}/tools/echo`,
        token_env: 'BRAIN_TOOLS_KEY',
        tenants: ['local'],
        timeout_seconds: 300,
        max_output_bytes: 1048576,
      },
      { ...at, name: 'raw' },
      { ...at, name: 'hasty', timeout_seconds: 1 },
      { ...at, name: 'strict', output_schema: { type: 'object', required: ['n'] } },
      {
        ...at,
        name: 'closed',
        output_schema: { properties: { n: { additionalProperties: { type: 'number' } } }, additionalProperties: false },
        token_env: 'BRAIN_TOOLS_KEY',
      },
      { ...at, name: 'inspect', inspect_session: true, token_env: 'BRAIN_TOOLS_KEY' },
    ],
  }
}

beforeAll(async () => {
  ;[raw, fake] = await Promise.all([RawService.open(() => undefined), ModelServer.open()])
  await once(echo.listen(0, '127.0.0.1'), 'listening')
  const variables = { BRAIN_TOOLS_KEY: TOKEN, BRAIN_OPENAI_BASE_URL: fake.url, BRAIN_API_TOKEN: API_TOKEN }
  server = await startServer(variables, bindings())
  server.token = API_TOKEN
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
  await raw[Symbol.asyncDispose]()
  echo.closeAllConnections()
  echo.close()
})

async function session(): Promise<TestSession> {
  const created = await server.post('/v1/sessions', {
    model: { provider: 'openai', name: 'gpt', api_key: 'k' },
    config: { tools: ['echo', 'raw', 'hasty', 'strict', 'closed', 'inspect'] },
  })
  if (created.status !== 200) throw new Error(created.text)
  return new TestSession(server, created.body.session_id as string, 'echo')
}

type Frame = { readonly id?: string; readonly event: string; readonly data: any }

/** The frames of an event stream, as they come. */
async function* framesOf(path: string, token = API_TOKEN): AsyncGenerator<Frame> {
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${token}` }
  const response = await fetch(server.url + path, { headers })
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
  let pending = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const frames = (pending + chunk).split('\n\n')
    pending = frames.pop() ?? ''
    for (const frame of frames) {
      const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1]
      const [id, event, data] = [field('id'), field('event'), field('data')]
      if (data !== undefined) yield { ...(id === undefined ? {} : { id }), event: event ?? '', data: JSON.parse(data) }
    }
  }
}

async function until(frames: AsyncGenerator<Frame>, event: string): Promise<Frame[]> {
  const seen: Frame[] = []
  for (;;) {
    const { value, done } = await frames.next()
    if (done === true) throw new Error(`the stream ended before ${event}: ${JSON.stringify(seen)}`)
    seen.push(value)
    if (value.event === event) return seen
  }
}

type UnderWay = {
  readonly body: any
  readonly closed: Promise<unknown>
  readonly send: (text: string) => void
  /** The last that is said. */
  readonly write: (text: string) => void
}

/** Waits for a call to be under way. */
function asked(answer = ''): Promise<UnderWay> {
  return new Promise((resolve) => {
    raw.script = (socket, { body }) => {
      socket.write(answer)
      resolve({
        body: JSON.parse(body),
        closed: once(socket, 'close'),
        send: (text) => socket.write(text),
        write: (text) => socket.end(text),
      })
    }
  })
}

describe('a distributed tool', () => {
  it('is called as the seed shows it, and finishes with what its service answers', async () => {
    const one = await session()
    const answer = await one.call({ text: 'hello' })
    expect(answer).toMatchObject({
      finished: true,
      outcome: { status: 'ok', value: null },
      results: [{ output: { content: [{ type: 'text', text: 'hello' }] }, content: 'hello', is_error: false }],
    })
    const records = await one.records()
    expectSoundJournal(records)
    expect(records.flatMap((record) => dataOf(record, 'tool_call_started') ?? [])).toMatchObject([
      { tool: 'echo', environment: 'brain-http', environment_sequence: 1, deadline_ms: 300_000 },
    ])
    const { body } = await server.get(`${one.path}/tool-events`)
    const call_id = `call_${one.id.slice(4)}_${answer.sequence}`
    expect(body.events.map(({ event_type, data }: any) => [event_type, data])).toEqual([
      ['tool.call', { call_id, name: 'echo', arguments: { text: 'hello' }, sequence: answer.sequence }],
      [
        'tool.result',
        {
          call_id,
          content: [{ type: 'text', text: 'hello' }],
          structured_content: { content: [{ type: 'text', text: 'hello' }] },
          is_error: false,
        },
      ],
    ])
  })

  it('is not called with arguments that its schema refuses', async () => {
    raw.requests.length = 0
    const answer = await (await session()).call({ text: 7 })
    expect(answer).toMatchObject({ outcome: { status: 'error', error: { code: 'invalid_input' } } })
  })

  it('shows its progress while it works, on both streams, and keeps none of it', async () => {
    const one = await session()
    const [tools, all] = [framesOf(`${one.path}/tool-events`), framesOf(`${one.path}/events`)]
    const underWay = asked(STREAM_HEAD)
    const answer = one.call({}, { tool: 'raw' })
    const [called] = await Promise.all([until(tools, 'tool.call'), until(all, 'tool_call_started')])
    const { send, write, body } = await underWay
    expect(called.at(-1)).toMatchObject({ data: { call_id: body.call_id, name: 'raw' } })
    send('event: progress\ndata: {"status":"waiting_for_operator"}\n\n')
    const progress = {
      event: 'tool.progress',
      data: { call_id: body.call_id, data: { status: 'waiting_for_operator' } },
    }
    expect(await until(tools, 'tool.progress')).toEqual([progress])
    expect(await until(all, 'tool.progress')).toEqual([progress])
    write(`event: result\ndata: ${HELLO}\n\n`)
    expect(await answer).toMatchObject({ outcome: { status: 'ok' } })
    expect((await until(tools, 'tool.result')).at(-1)).toMatchObject({
      data: { call_id: body.call_id, is_error: false },
    })
    expect(JSON.stringify(await one.records())).not.toContain('waiting_for_operator')
    await Promise.all([tools.return(undefined), all.return(undefined)])
  })

  it('may answer as much as its binding says, also several times in one turn, and not one byte more', async () => {
    const one = await session()
    const sized = (bytes: number): string => {
      const around = JSON.stringify({ content: [{ type: 'text', text: '' }] }).length
      return JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(bytes - around) }] })
    }
    raw.script = (socket) => socket.write(jsonAnswer(sized(1_048_576)))
    const calls = ['a', 'b'].map((id) => ({ id, name: 'raw', arguments: '{}' }))
    fake.says(stream(responsesAnswer('', calls)), stream(responsesAnswer('done')))
    await one.send('go')
    const outputs = fake.asked.at(-1)!.body.input.filter((item: any) => item.type === 'function_call_output')
    expect(outputs.map(({ output }: any) => output.length)).toEqual([1_048_537, 1_048_537])
    const starts = (await one.records()).flatMap((record) => dataOf(record, 'tool_call_started') ?? [])
    expect(starts.map(({ deadline_ms: deadline }) => deadline)).toEqual([300_000, 300_000])
    raw.script = (socket) => socket.write(jsonAnswer(sized(1_048_577)))
    expect(await one.call({}, { tool: 'raw' })).toMatchObject({
      outcome: { status: 'unknown', message: expect.stringContaining('more than 1048576 bytes (max_output_bytes)') },
    })
  })

  it('that answers against its output schema fails, and may have done its work', async () => {
    const one = await session()
    raw.script = (socket) => socket.write(jsonAnswer('{"structured_content":{"m":1}}'))
    const answer = await one.call({}, { tool: 'strict' })
    expect(answer).toMatchObject({
      outcome: {
        status: 'error',
        error: {
          code: 'invalid_output',
          message: expect.stringContaining('the value must have the property "n"'),
          details: { unknown_outcome: true },
        },
      },
    })
    const { body } = await server.get(`${one.path}/tool-events`)
    expect(body.events.at(-1)).toMatchObject({ data: { is_error: true, unknown_outcome: true } })
    raw.script = (socket) => socket.write(jsonAnswer('{"content":[{"type":"text","text":"no"}],"is_error":true}'))
    expect(await one.call({}, { tool: 'strict' })).toMatchObject({
      outcome: { status: 'error', error: { code: 'tool_error', message: 'no' } },
    })
  })

  it('may nest what it answers 63 levels deep, and what it says of an error 61', async () => {
    const one = await session()
    const ends: unknown[] = []
    for (const [depth, more] of [
      [63, ''],
      [64, ''],
      [61, ',"is_error":true'],
      [62, ',"is_error":true'],
    ] as const) {
      const value = '['.repeat(depth) + ']'.repeat(depth)
      raw.script = (socket) => socket.write(jsonAnswer(`{"structured_content":${value}${more}}`))
      ends.push((await one.call({}, { tool: 'raw' })).outcome)
    }
    expect(ends).toMatchObject([
      { status: 'ok' },
      { status: 'unknown', message: expect.stringContaining('nests deeper than 64 levels') },
      { status: 'error', error: { code: 'tool_error' } },
      {
        status: 'error',
        error: {
          code: 'invalid_output',
          message: expect.stringContaining('nested deeper than 64 levels'),
          details: { unknown_outcome: true },
        },
      },
    ])
  })

  it('has its own time and no more; what was sent may have been done, what was not was not', async () => {
    const one = await session()
    const underWay = asked(`${STREAM_HEAD}event: progress\ndata: 1\n\n`)
    expect(await one.call({}, { tool: 'hasty' })).toMatchObject({ outcome: { status: 'timeout' } })
    await (
      await underWay
    ).closed
    const { body } = await server.get(`${one.path}/tool-events`)
    expect(body.events.at(-1)).toMatchObject({ data: { is_error: true, unknown_outcome: true } })
  })

  it.each([
    ['an interruption', (one: TestSession) => server.post(`${one.path}/cancel`)],
    ['the end of its session', (one: TestSession) => server.post(`${one.path}/end`)],
  ])('loses its connection within a second at %s', async (_, stop) => {
    const one = await session()
    fake.says(stream(responsesAnswer('', [{ id: 'c', name: 'raw', arguments: '{}' }])), stream(responsesAnswer('done')))
    const underWay = asked()
    const turn = one.send('go')
    const { closed } = await underWay
    const started = performance.now()
    const stopped = stop(one)
    await closed
    expect(performance.now() - started).toBeLessThan(1000)
    await Promise.all([turn, stopped])
    const ends = (await one.records()).flatMap((record) => dataOf(record, 'tool_call_ended')?.outcome ?? [])
    expect(ends).toEqual([{ status: 'cancelled' }])
  })

  it('loses its connection within a second when its session is ended to be deleted, called without a model too', async () => {
    const one = await session()
    const underWay = asked(`${STREAM_HEAD}event: progress\ndata: 1\n\n`)
    const answer = one.call({}, { tool: 'raw' })
    const { closed } = await underWay
    const early = await server.request('DELETE', one.path)
    expect([early.status, early.body.message]).toEqual([400, expect.stringContaining('end it first')])
    const started = performance.now()
    const ended = server.post(`${one.path}/end`)
    await closed
    expect(performance.now() - started).toBeLessThan(1000)
    expect(await answer).toMatchObject({ outcome: { status: 'cancelled' } })
    expect((await ended).status).toBe(200)
    expect((await server.request('DELETE', one.path)).status).toBe(204)
    expect((await server.get(`${one.path}/tool-events`)).status).toBe(404)
  })

  it('tells the model of an error, and that its work may have been done', async () => {
    const one = await session()
    raw.script = (socket, { body }) =>
      body.includes('"n"') ? socket.write(jsonAnswer('{"structured_content":{"m":1}}')) : socket.destroy()
    const calls = [
      { id: 'same', name: 'raw', arguments: '{}' },
      { id: 'other', name: 'echo', arguments: '{"text":"hi"}' },
    ]
    fake.says(
      stream(responsesAnswer('', calls)),
      stream(responsesAnswer('', [calls[1]!, { id: 'refused', name: 'strict', arguments: '{"n":1}' }])),
      stream(responsesAnswer('done')),
    )
    await one.send('go')
    const outputs = fake.asked[1]!.body.input.filter((item: any) => item.type === 'function_call_output')
    expect(outputs[0].output).toContain('it may have been done')
    expect(outputs[0].output).toContain('Cannot use the answer of tool \\"raw\\": the connection broke')
    expect(outputs[1].output).toBe('hi')
    // What Brain refuses of an answer was done all the same, and the model is told so.
    const last = fake.asked[2]!.body.input.filter((item: any) => item.type === 'function_call_output').at(-1)
    expect(last.output).toContain('Cannot take this output of tool \\"strict\\"')
    expect(last.output).toContain('it may have been done')
    // What the model may call is what the session enabled, and nothing else.
    expect(fake.asked[0]!.body.tools.map(({ name }: any) => name)).toEqual([
      'echo',
      'raw',
      'hasty',
      'strict',
      'closed',
      'inspect',
    ])
    // One id of the model in two turns, two ids of Brain.
    const { body } = await server.get(`${one.path}/tool-events`)
    const ids = body.events
      .filter((event: any) => event.event_type === 'tool.call')
      .map(({ data }: any) => data.call_id)
    expect(new Set(ids).size).toBe(4)
  })

  it('continues the trace of the request that caused its call, and of none where there was none', async () => {
    const one = await session()
    const heads: string[] = []
    raw.script = (socket, { head }) => {
      heads.push(head)
      socket.write(jsonAnswer(HELLO))
    }
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await server.post(`${one.path}/tools/raw/calls`, { input: {} }, { headers: { traceparent } })
    fake.says(stream(responsesAnswer('', [{ id: 'c', name: 'raw', arguments: '{}' }])), stream(responsesAnswer('done')))
    await server.post(`${one.path}/messages`, { input: { message: 'go' } }, { headers: { traceparent } })
    await one.call({}, { tool: 'raw' })
    const sent = heads.map((head) => /^traceparent: (.*)$/im.exec(head)?.[1])
    expect(sent).toEqual([
      expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/),
      expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/),
      undefined,
    ])
    expect(new Set([...sent, traceparent]).size).toBe(4)
  })

  it('may read the events of its session while it is called, and nothing else, and not after', async () => {
    const [one, other] = [await session(), await session()]
    const underWay = asked()
    const answer = one.call({}, { tool: 'inspect' })
    const { body, write } = await underWay
    const token = body.inspection_token as string
    expect(body.brain_url).toBe(server.url)
    const as = { authorization: `Bearer ${token}` }
    const page = await server.get(`${one.path}/events`, as)
    expect(page.body.events.at(-1)).toMatchObject({ event_type: 'tool_call_started' })
    const following = Array.fromAsync(framesOf(`${one.path}/tool-events`, token))
    for (const path of [`${other.path}/events`, one.path, '/v1/sessions', `${one.path}/transcript`, '/catalog'])
      expect([path, (await server.get(path, as)).status]).toEqual([path, 401])
    expect((await server.request('POST', `${one.path}/end`, { headers: as })).status).toBe(401)
    write(jsonAnswer(HELLO).toString())
    expect(await answer).toMatchObject({ outcome: { status: 'ok' } })
    expect((await server.get(`${one.path}/events`, as)).status).toBe(401)
    // Its streams are closed with it.
    expect((await following).map(({ event }) => event)).toContain('tool.call')
    expect(server.log).not.toContain(token)
    expect(JSON.stringify(await one.records())).not.toContain(token)
  })

  it('shows neither where it is nor what opens it, in records, answers, logs and exports', async () => {
    const one = await session()
    const shown: string[] = []
    const saying = async (answer: string | Buffer, tool = 'inspect'): Promise<void> => {
      raw.script = (socket) => socket.end(answer)
      shown.push(JSON.stringify(await one.call({}, { tool })))
    }
    // A service may send its token back in any place that a message could speak of.
    for (const answer of [
      '',
      `HTTP/1.1 403 ${TOKEN}\r\nContent-Length: 0\r\n\r\n`,
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{',
      `${TOKEN}\r\n\r\n`,
      jsonAnswer(HELLO, TOKEN),
      jsonAnswer(TOKEN),
      jsonAnswer(JSON.stringify({ [TOKEN]: TOKEN })),
      jsonAnswer(JSON.stringify({ content: [{ type: TOKEN }] })),
      `${STREAM_HEAD}event: ${TOKEN}\ndata: 1\n\n`,
      `${STREAM_HEAD}event: ${TOKEN}\ndata: ${'x'.repeat(1_048_577)}\n\n`,
      `${STREAM_HEAD}event: progress\ndata: ${TOKEN}\n\n`,
    ])
      await saying(answer)
    for (const value of [{ [TOKEN]: 1 }, { n: { [TOKEN]: 'no number' } }])
      await saying(jsonAnswer(JSON.stringify({ structured_content: value })), 'closed')
    expect(shown.at(-1)).toContain('a member that its output_schema does not name is against it')
    using snapshot = archiveJournal.openIn(join(server.directory, 'data'))
    const exported = [...exportSession(snapshot, parseSessionId(one.id))]
    expect(exported.filter((line) => line.includes('"tool_call_ended"'))).toHaveLength(shown.length)
    shown.push(...exported)
    for (const path of ['/catalog', one.path, `${one.path}/events`, `${one.path}/tool-events`])
      shown.push((await server.get(path)).text)
    // Nor in any file that the server keeps, of which backups are made.
    const data = join(server.directory, 'data')
    const entries = await readdir(data, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const kept = (await Promise.all(files.map((file) => readFile(file, 'latin1')))).join('\n')
    expect(kept).toContain(one.id)
    for (const canary of [TOKEN, 'canary-path', 'BRAIN_TOOLS_KEY', `127.0.0.1:${raw.port}`, 'bin_'])
      expect(shown.join('\n') + server.log + kept).not.toContain(canary)
  })
})
