import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/contract/limits.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    BRAIN_API_TOKEN: 'the-token',
    BRAIN_CORS_ORIGINS: 'https://app.example',
    BRAIN_MAX_REQUEST_BYTES: '100000',
  })
})
afterAll(() => server[Symbol.asyncDispose]())

const auth = { authorization: 'Bearer the-token' }
const create = (body: unknown, key?: string) =>
  server.request('POST', '/v1/sessions', { json: body, headers: auth, ...(key === undefined ? {} : { key }) })
const plain = { model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'hello' }] } }
const sessionId = async (): Promise<string> => (await create(plain)).body.session_id as string

/** A request with headers that fetch does not let one set. */
function raw(
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    httpRequest(server.url + path, { headers }, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }))
    })
      .on('error', reject)
      .end()
  })
}

describe('health', () => {
  it('is open to everybody', async () => {
    expect((await server.get('/health/live')).status).toBe(204)
    expect((await server.get('/health/ready')).status).toBe(204)
    // Some that balance load ask for nothing but the head.
    expect((await server.request('HEAD', '/health/ready')).status).toBe(204)
  })

  it('tells what the server stands on only to who has the token', async () => {
    expect((await server.get('/health/ready?verbose')).status).toBe(401)
    const { status, body } = await server.get('/health/ready?verbose', auth)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      draining: false,
      journal: { state: 'ok' },
      sandbox: { level: { name: expect.stringMatching(/^(?:bubblewrap|landlock)$/) } },
    })
  })
})

describe('authority', () => {
  const routes = [
    '/v1/limits',
    '/v1/tools',
    '/v1/sessions',
    `/v1/sessions/ses_${'0'.repeat(32)}`,
    `/v1/sessions/ses_${'0'.repeat(32)}/events`,
  ]
  it.each(routes)('GET %s is 401 without the token, with another one, and with an empty one', async (path) => {
    for (const authorization of [undefined, 'Bearer nope', 'Bearer ', 'Basic the-token', 'the-token']) {
      const { status, body } = await server.get(path, authorization === undefined ? {} : { authorization })
      expect([status, body.code]).toEqual([401, 'unauthorized'])
    }
  })

  it('is asked for before a byte of the body is read', async () => {
    const { port } = new URL(server.url)
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1')
      socket
        .on('error', () => {})
        .once('data', (bytes) => {
          resolve(String(bytes))
          socket.destroy()
        })
      socket.write(
        'POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n{',
      )
    })
    expect(answer).toMatch(/^HTTP\/1.1 401 /)
  })

  it('refuses hosts that are not its own', async () => {
    for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example', 'a b'])
      expect((await raw('/health/live', { host })).status).toBe(403)
    for (const host of ['localhost', 'localhost:1', '127.0.0.1:99', 'LOCALHOST'])
      expect((await raw('/health/live', { host })).status).toBe(204)
  })

  it('refuses pages of origins that are not listed, and answers listed ones exactly', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ])
      expect((await raw('/health/live', headers as Record<string, string>)).status).toBe(403)
    const listed = await raw('/health/live', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' })
    expect(listed.status).toBe(204)
    expect(listed.headers['access-control-allow-origin']).toBe('https://app.example')
    expect(
      (await raw('/health/live', { 'sec-fetch-site': 'same-origin' })).headers['access-control-allow-origin'],
    ).toBeUndefined()
  })
})

describe('requests', () => {
  it.each([
    ['no body', { key: 'k1' }, 415],
    ['text/plain', { bytes: Buffer.from('{}'), type: 'text/plain' }, 415],
    ['a type without a slash', { bytes: Buffer.from('{}'), type: 'json' }, 415],
    ['no JSON', { bytes: Buffer.from('{'), type: 'application/json' }, 400],
    ['an empty body', { bytes: Buffer.from(''), type: 'application/json' }, 400],
    ['bytes that are no UTF-8', { bytes: Buffer.from([0x22, 0xff, 0x22]), type: 'application/json' }, 400],
    ['an unknown member', { json: { ...plain, more: 1 } }, 422],
    ['a wrong type', { json: { ...plain, system: 7 } }, 422],
    ['a body over the limit', { json: { ...plain, system: 'x'.repeat(100_001) } }, 413],
    [
      '8,000 levels',
      { bytes: Buffer.from('{"a":'.repeat(8000) + '1' + '}'.repeat(8000)), type: 'application/json' },
      400,
    ],
    ['90,000 brackets', { bytes: Buffer.from('['.repeat(90_000)), type: 'application/json' }, 400],
    [
      'a number that no double carries',
      { bytes: Buffer.from('{"model":12345678901234567890}'), type: 'application/json' },
      400,
    ],
  ])('with %s are refused with their own status, and the next one works', async (_what, options, status) => {
    const response = await server.request('POST', '/v1/sessions', { ...options, headers: auth })
    expect(response.status).toBe(status)
    expect(response.body).toMatchObject({ code: 'invalid_request', retryable: false })
    expect(response.body.message.length).toBeGreaterThan(10)
    expect((await create(plain)).status).toBe(200)
  })

  it('over the limit are refused while they are sent, also without content-length', async () => {
    const chunk = Buffer.alloc(60_000, 32)
    const bytes = new ReadableStream({
      async pull(controller) {
        controller.enqueue(chunk)
        await new Promise((resolve) => setTimeout(resolve, 5))
      },
    })
    const response = await server.request('POST', '/v1/sessions', { bytes, type: 'application/json', headers: auth })
    expect(response.status).toBe(413)
  })

  it.each([
    ['one over the limit', 'Authorization: Bearer the-token\r\nContent-Type: application/json', 413],
    ['one of another type', 'Authorization: Bearer the-token\r\nContent-Type: text/plain', 415],
    ['one of a stranger', 'Content-Type: application/json', 401],
  ])('whose body is refused get the answer although they go on sending: %s', async (_, headers, status) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const ended = once(socket, 'close')
    socket.write(`POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n${headers}\r\nContent-Length: 999999999\r\n\r\n`)
    // The answer is there long before anybody looks for it.
    const chunk = Buffer.alloc(64 * 1024, 32)
    for (let sent = 0; sent < 64; sent++) {
      socket.write(chunk)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    let answer = ''
    socket.on('data', (bytes) => (answer += bytes.toString()))
    await ended
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).toMatch(/"code":"[a-z_]+".*\}$/)
  })

  it.each([
    '/v1/sessions?nope=1',
    '/v1/sessions?limit=0',
    '/v1/sessions?status=asleep',
    '/v1/sessions?limit=1&limit=2',
    '/v1/sessions?label=-x:1',
    '/v1/sessions/ses_x',
    '/v1/tools/xyz',
    '/v1/sessions/%ff',
    `/v1/sessions/ses_${'0'.repeat(32)}?x=1`,
    '/v1/tools?x=1',
    '/health/live?x=1',
  ])('GET %s is 400', async (path) => {
    const { status, body } = await server.get(path, auth)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
  })

  it('for what is not there are 404', async () => {
    for (const path of [`/v1/sessions/ses_${'0'.repeat(32)}`, `/v1/tools/${'0'.repeat(64)}`, '/nowhere'])
      expect((await server.get(path, auth)).body.code).toBe('not_found')
  })

  it('that change something need an idempotency key of 1 to 256 bytes', async () => {
    for (const key of ['', 'x'.repeat(257)]) {
      const { status } = await server.request('POST', '/v1/sessions', { json: plain, key, headers: auth })
      expect(status).toBe(400)
    }
    // Bytes, of which a letter may have several.
    const keyed = async (path: string, key: string): Promise<number> =>
      (await server.request('POST', `/v1/sessions/ses_${'0'.repeat(32)}${path}`, { key, headers: auth })).status
    const longest = Buffer.from('é'.repeat(128)).toString('latin1')
    expect(await Promise.all(['/end', '/cancel'].map((path) => keyed(path, longest)))).toEqual([404, 404])
    expect(await keyed('/end', `${longest}x`)).toBe(400)
  })

  it('that take no query refuse any field, before their key is used', async () => {
    const key = randomUUID()
    const ask = (query: string) => server.request('POST', `/v1/sessions${query}`, { json: plain, key, headers: auth })
    expect((await ask('?dry_run=1')).body).toMatchObject({ code: 'invalid_request' })
    expect((await ask('')).status).toBe(200)
  })

  it('of programs, which are not part of this server, say so', async () => {
    for (const path of ['/v1/programs', `/v1/programs/${'0'.repeat(64)}`])
      expect((await server.get(path, auth)).body.code).toBe('unsupported')
  })

  it('to create take null for what is left out; without a lifecycle they are 400, not 422', async () => {
    const box = { name: 'box', driver: 'brain' }
    const nothing = { environments: null, methods: null, template: null }
    const members = { agentloop: null, response_format: null, transcript: null, idle_ttl_ms: null, labels: null }
    const environments = [{ ...box, lifecycle: 'automatic', ...nothing }]
    const { status, body } = await create({ ...plain, ...members, environments })
    expect(status).toBe(200)
    const { events } = (await server.get(`/v1/sessions/${body.session_id}/events`, auth)).body
    expect(JSON.stringify(events[0].data.environments)).not.toContain('null')
    expect(events[0].data).not.toHaveProperty('transcript')
    const statusOf = async (environment: object) => (await create({ ...plain, environments: [environment] })).status
    expect([await statusOf(box), await statusOf({ ...box, lifecycle: 'sometimes' })]).toEqual([400, 422])
  })

  it('that are no HTTP, or have too many headers, are answered in the ordinary form', async () => {
    const { port } = new URL(server.url)
    const answerTo = (text: string): Promise<string> =>
      new Promise((resolve) => {
        let answer = ''
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(text))
        socket.on('data', (bytes) => (answer += String(bytes))).on('error', () => {})
        socket.on('close', () => resolve(answer))
      })
    for (const text of ['nonsense\r\n\r\n', `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`]) {
      const answer = await answerTo(text)
      expect(answer).toMatch(/^HTTP\/1.1 4(00|31) /)
      expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({
        code: 'invalid_request',
        retryable: false,
      })
    }
  })

  it('survive a client that goes away in the middle of its body', async () => {
    const { port } = new URL(server.url)
    for (let round = 0; round < 5; round++) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      socket.write(
        `POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer the-token\r\nIdempotency-Key: gone-${round}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"mod`,
      )
      await new Promise((resolve) => setTimeout(resolve, 10))
      socket.destroy()
    }
    expect((await create(plain)).status).toBe(200)
  })

  it('say which limits are in force', async () => {
    const { body } = await server.get('/v1/limits', auth)
    expect(Object.keys(body.limits)).toEqual(Object.values(LIMITS).map((limit) => limit.variable))
    expect(body.limits.BRAIN_MAX_REQUEST_BYTES).toEqual({ value: 100_000, unit: 'bytes' })
  })
})

describe('idempotency', () => {
  it('makes one session of twenty parallel requests, and conflicts with another body', async () => {
    const key = randomUUID()
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(plain, key)))
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1)
    const other = await create({ ...plain, system: 'other' }, key)
    expect([other.status, other.body.code]).toEqual([409, 'conflict'])
    expect((await create(plain, key)).text).toBe(answers[0]?.text)
  })

  it('leaves a key free whose first use was refused', async () => {
    const key = randomUUID()
    expect((await create({ ...plain, model: { ...plain.model, provider: 'nobody' } }, key)).status).toBe(400)
    expect((await create(plain, key)).status).toBe(200)
  })
})

describe('messages', () => {
  const send = (id: string, headers: Record<string, string> = {}, key = randomUUID()) =>
    server.request('POST', `/v1/sessions/${id}/messages`, {
      json: { input: { message: 'hi' } },
      headers: { ...auth, ...headers },
      key,
    })

  it('answer the session after their turn', async () => {
    const id = await sessionId()
    const { status, body } = await send(id)
    expect(status).toBe(200)
    expect(body).toMatchObject({ session_id: id, status: 'idle' })
    const transcript = await server.get(`/v1/sessions/${id}/transcript`, auth)
    expect(transcript.body.messages.at(-1).content[0].text).toBe('hello')
    expect(transcript.body.through_sequence).toBe(body.last_sequence)
  })

  it('answer the sequence at once when asked to respond asynchronously, and refuse other preferences', async () => {
    const id = await sessionId()
    const key = randomUUID()
    const first = await send(id, { prefer: 'respond-async' }, key)
    expect([first.status, first.headers.get('preference-applied')]).toEqual([202, 'respond-async'])
    expect(Number.isInteger(first.body)).toBe(true)
    expect((await send(id, { prefer: 'respond-async' }, key)).body).toBe(first.body)
    expect((await send(id, { prefer: 'wait=5' })).status).toBe(400)
  })

  it('are refused by a session that is over; ending and deleting answer again what they answered', async () => {
    const id = await sessionId()
    const at = (method: string, path: string, key: string) =>
      server.request(method, `/v1/sessions/${id}${path}`, { key, headers: auth })
    expect((await at('DELETE', '', 'too-early')).status).toBe(400)
    expect((await at('POST', '/cancel', 'c')).status).toBe(204)
    const ended = await at('POST', '/end', 'e')
    expect(ended.body.status).toBe('ended')
    expect((await at('POST', '/end', 'e')).text).toBe(ended.text)
    expect((await at('POST', '/end', 'e2')).text).toBe(ended.text)
    const refused = await send(id)
    expect([refused.status, refused.body.details]).toEqual([400, { admission: 'rejected' }])
    expect((await at('DELETE', '', 'd')).status).toBe(204)
    expect((await at('DELETE', '', 'd')).status).toBe(204)
    expect((await at('DELETE', '', 'd2')).status).toBe(404)
  })
})

describe('events', () => {
  it('are the same as pages, as a stream of history, and live; frames carry sequences as ids', async () => {
    const id = await sessionId()
    const stop = new AbortController()
    const live = readStream(`/v1/sessions/${id}/events`, stop.signal)
    await server.request('POST', `/v1/sessions/${id}/messages`, { json: { input: { message: 'hi' } }, headers: auth })
    await server.request('POST', `/v1/sessions/${id}/end`, { headers: auth })
    const seen = await live
    const durable = seen.filter((frame) => frame.id !== undefined)
    const page = await server.get(`/v1/sessions/${id}/events`, auth)
    expect(durable.map((frame) => frame.data)).toEqual(page.body.events)
    expect(durable.map((frame) => Number(frame.id))).toEqual(
      page.body.events.map((_: unknown, index: number) => index + 1),
    )
    expect(seen.find((frame) => frame.event === 'assistant_delta')?.data).toMatchObject({
      text: 'hello',
      model_call_sequence: expect.any(Number),
    })
    const last = page.body.next_cursor
    expect((await server.get(`/v1/sessions/${id}/events?after=${last}`, auth)).body).toEqual({
      events: [],
      next_cursor: last,
    })
    const rest = await readStream(`/v1/sessions/${id}/events?after=3`, stop.signal, { 'last-event-id': '5' })
    expect(rest[0]?.id).toBe('6')
  })

  it('of one session never show another', async () => {
    const [one, two] = [await sessionId(), await sessionId()]
    const text = (await server.get(`/v1/sessions/${one}/events`, auth)).text
    expect(text).not.toContain(two)
    expect(text).not.toContain('"k"')
  })
})

type Frame = { id?: string; event?: string; data?: any }

/** Reads an event stream until the server ends it. */
async function readStream(path: string, signal: AbortSignal, headers: Record<string, string> = {}): Promise<Frame[]> {
  const response = await fetch(server.url + path, {
    headers: { ...auth, accept: 'text/event-stream', ...headers },
    signal,
  })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const frames: Frame[] = []
  for (const block of (await response.text()).split('\n\n')) {
    const fields = block.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
    if (fields.length === 0) continue
    const frame = Object.fromEntries(
      fields.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    )
    frames.push({ ...frame, data: JSON.parse(frame['data'] ?? 'null') })
  }
  return frames
}
