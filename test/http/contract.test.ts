import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataOf, type JournalRecord } from '../../src/journal/record.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type Response, type TestServer, type TestSession } from '../support/server.ts'

let server: TestServer
let outcomes = ''
let effect = ''

beforeAll(async () => {
  server = await startServer({
    BRAIN_MAX_LIVE_BACKLOG: '64',
    BRAIN_MAX_MODEL_CALLS: '3',
    BRAIN_MAX_EMITTED_BYTES: '100000',
  })
  outcomes = await server.admit(await fixture('outcomes'))
  effect = await server.admit(await fixture('effect'))
})
afterAll(() => server[Symbol.asyncDispose]())

const model = (script: unknown = [{ text: 'hello' }]) => ({
  provider: 'scripted',
  name: 's',
  api_key: 'a-model-key',
  script,
})
const create = (body: unknown = { model: model() }, key: string = randomUUID()): Promise<Response> =>
  server.post('/v1/sessions', body, { key })
const idOf = ({ body }: Response): string => body.session_id as string
const at = (id: string): string => `/v1/sessions/${id}`
const message = (text = 'hi') => ({ input: { message: text } })
const send = (id: string, key: string = randomUUID(), prefer?: string): Promise<Response> =>
  server.post(`${at(id)}/messages`, message(), { key, ...(prefer === undefined ? {} : { headers: { prefer } }) })
const recordsOf = async (id: string): Promise<JournalRecord[]> =>
  (await server.get(`${at(id)}/events`)).body.events as JournalRecord[]

/** A session with a tool that plays a script of host calls. */
const player = (script?: unknown): Promise<TestSession> =>
  server.session([{ name: 'outcomes', id: outcomes }], script === undefined ? {} : { script })

/** Sequences of the records of a stream, until the server ends it. */
async function streamed(id: string, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
  const response = await fetch(`${server.url}${at(id)}/events`, {
    headers: { accept: 'text/event-stream', ...headers },
  })
  return [...(await response.text()).matchAll(/^id: (\d+)$/gm)].map(([, sequence]) => Number(sequence))
}

/** What must be true again once the server was killed and started: each restart takes its time. */
const afterRestart: (() => Promise<void>)[] = []

/** Numbered as the contract numbers them (10.2); 1 and 3 are in `api.test.ts`, 13 in `test/sandbox` and `test/e2e`. */
describe('the behaviours of contract 10.2', () => {
  it('2: one key is one piece of work, at once, later and after a restart; another body is a conflict', async () => {
    const key = randomUUID()
    const before = (await server.get('/v1/sessions')).body.sessions.length as number
    const first = await Promise.all(Array.from({ length: 20 }, () => create({ model: model() }, key)))
    expect(new Set(first.map(({ text }) => text)).size).toBe(1)
    const id = idOf(first[0] as Response)
    const sent = randomUUID()
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(id, sent)))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const replay = async (): Promise<void> => {
      expect((await create({ model: model() }, key)).text).toBe(first[0]?.text)
      expect((await send(id, sent)).text).toBe(answers[0]?.text)
      expect((await recordsOf(id)).filter((record) => record.event_type === 'model_call_started')).toHaveLength(1)
    }
    await replay()
    afterRestart.push(replay)
    const other = await create({ model: model(), system: 'other' }, key)
    expect([other.status, other.body.code]).toEqual([409, 'conflict'])
    expect((await server.get('/v1/sessions')).body.sessions).toHaveLength(before + 1)
    for (const bad of ['', 'x'.repeat(257)]) expect((await send(id, bad)).status).toBe(400)
    // A key in another scope is another key.
    expect((await server.post(`${at(id)}/cancel`, undefined, { key: sent })).status).toBe(204)
  })

  it('4: an asynchronous message answers its sequence; on a busy session it is refused, other preferences always', async () => {
    const session = await player([{ tool_calls: [{ name: 'outcomes', input: { steps: [{ do: 'loop' }] } }] }])
    const first = await send(session.id, 'first', 'respond-async')
    expect([first.status, first.headers.get('preference-applied')]).toEqual([202, 'respond-async'])
    const records = await session.records()
    expect(records[Number(first.text) - 1]).toMatchObject({ event_type: 'turn_started', sequence: Number(first.text) })
    const busy = await send(session.id, 'busy', 'respond-async')
    expect([busy.status, busy.body]).toEqual([
      503,
      expect.objectContaining({ code: 'overloaded', retryable: true, details: { admission: 'rejected' } }),
    ])
    expect((await send(session.id, 'x', 'return=minimal')).status).toBe(400)
    expect((await server.get(at(session.id))).body.status).toBe('running')
    expect((await server.post(`${at(session.id)}/cancel`)).status).toBe(204)
    // 5: the key of the refused one is free.
    expect((await send(session.id, 'busy', 'respond-async')).status).toBe(202)
    await server.post(`${at(session.id)}/cancel`)
    expect(JSON.stringify((await session.records()).filter((record) => record.event_type === 'turn_failed'))).toContain(
      '"cancelled"',
    )
  })

  it('5: a message that is refused before its turn says so, and leaves its key free', async () => {
    const id = idOf(await create())
    const key = randomUUID()
    for (const body of [{ input: { message: '' } }, { input: {} }, { ...message(), more: 1 }]) {
      const refused = await server.post(`${at(id)}/messages`, body, { key })
      expect([refused.status, refused.body.details]).toEqual([422, { admission: 'rejected' }])
    }
    expect((await send(id, key)).status).toBe(200)
    const absent = await send(`ses_${'0'.repeat(32)}`)
    expect([absent.status, absent.body.details]).toEqual([404, { admission: 'rejected' }])
  })

  it('6: streams of history and of what comes agree with pages, resume anywhere, and end with their session', async () => {
    const session = await player()
    const steps = Array.from({ length: 150 }, (_, index) => ({ do: 'emit', kind: 'n', payload: { index } }))
    const live = streamed(session.id)
    const resumed = streamed(session.id, { 'last-event-id': '50' })
    await session.value({ steps: [...steps, { do: 'finish' }] })
    await session.send('hi')
    await server.post(`${at(session.id)}/end`)
    const all = (await session.records()).map((record) => record.sequence)
    const seen = await live
    // A reader that lagged was cut: it goes on from the last id that it saw.
    while (seen.length < all.length) {
      const more = await streamed(session.id, { 'last-event-id': String(seen.at(-1)) })
      expect(more.length).toBeGreaterThan(0)
      seen.push(...more)
    }
    expect(seen).toEqual(all)
    const part = await resumed
    expect(part).toEqual(part.map((_, index) => 51 + index))
    expect(await streamed(session.id, { 'last-event-id': String(all.length) })).toEqual([])
  })

  it('7: a cursor stands still at the end, and nothing but a sequence is one', async () => {
    const id = idOf(await create())
    const { body } = await server.get(`${at(id)}/events?after=1`)
    expect(body.events.map((record: JournalRecord) => record.sequence)).toEqual([2])
    expect((await server.get(`${at(id)}/events?after=2`)).body).toEqual({ events: [], next_cursor: 2 })
    for (const after of ['-1', '1.5', '1e1', '0x1', '', 'x', '99999999999999999999'])
      expect((await server.get(`${at(id)}/events?after=${after}`)).status, after).toBe(400)
    expect((await server.get(`${at(id)}/tool-events?after=0`)).body).toEqual({ events: [], next_cursor: 2 })
  })

  it('9: a component that goes on after its turn wakes the session with its results, in one turn for each window', async () => {
    const result = (value: string) => ({ do: 'emit_result', outcome: { status: 'ok', value } })
    const steps = [
      { do: 'returned', outcome: { status: 'ok', value: 'now' } },
      { do: 'sleep', ms: 100 },
      result('a'),
      result('b'),
      { do: 'finish', outcome: { status: 'ok', value: 'c' } },
      { do: 'emit', kind: 'late', payload: 1 },
    ]
    const session = await player([
      { tool_calls: [{ name: 'outcomes', input: { steps } }] },
      { text: 'waiting' },
      { text: 'seen' },
    ])
    await session.send('go')
    const delivered = async (): Promise<boolean> => {
      const all = await session.records()
      const end = all.find((record) => record.event_type === 'tool_call_ended')?.sequence ?? Infinity
      const last = all.at(-1)
      return last !== undefined && (dataOf(last, 'turn_ended')?.events_through ?? 0) >= end
    }
    await expect.poll(delivered, { timeout: 5000 }).toBe(true)
    const records = await session.records()
    expectSoundJournal(records)
    const transcript = JSON.stringify((await server.get(`${at(session.id)}/transcript`)).body.messages)
    for (const value of ['now', '\\"a\\"', '\\"b\\"', '\\"c\\"']) expect(transcript).toContain(value)
    expect(records.filter((record) => record.event_type === 'late')).toEqual([])
    const wakes = records.filter((record) => record.event_type === 'turn_started').slice(1)
    expect(wakes.every((record) => JSON.stringify(record.data) === '{"trigger":"events"}')).toBe(true)
    expect(wakes.length).toBeLessThanOrEqual(3)
  })

  it('10: after kill -9 every open effect has its end, nothing is sent again, and the session goes on', async () => {
    const script = [
      { tool_calls: [{ name: 'effect', input: { id: 'once', file: 'log', linger_ms: 60_000 } }] },
      { text: 'ok' },
    ]
    const session = await server.session([{ name: 'effect', id: effect }], { script })
    const key = randomUUID()
    const lost = server.post(`${at(session.id)}/messages`, message(), { key }).catch(() => undefined)
    await expect
      .poll(async () => (await session.records()).map((record) => record.event_type), { timeout: 60_000 })
      .toContain('effect_done')
    await server.kill('SIGKILL')
    await lost
    await server.start()
    expect((await server.get(at(session.id))).body.status).toBe('idle')
    const records = await session.records()
    expectSoundJournal(records)
    expect(records.slice(-3)).toMatchObject([
      { event_type: 'tool_call_failed', data: { code: 'interrupted', ambiguous: true } },
      { event_type: 'activation_failed', data: { code: 'interrupted' } },
      { event_type: 'turn_failed', data: { code: 'interrupted', ambiguous: true } },
    ])
    // 2: a claim that the crash left open is ambiguous, as often as it is asked, and its work is not done again.
    for (let round = 0; round < 2; round++) {
      const again = await server.post(`${at(session.id)}/messages`, message(), { key })
      expect([again.status, again.body]).toEqual([
        500,
        expect.objectContaining({ code: 'ambiguous', retryable: false }),
      ])
    }
    for (const check of afterRestart) await check()
    expect((await send(session.id)).status).toBe(200)
    const { messages } = (await server.get(`${at(session.id)}/transcript`)).body
    expect(messages[2].content).toMatchObject([{ type: 'tool_result', is_error: true, content: { code: 'unknown' } }])
    expect((await session.file('log')).text).toBe('once\n')
    const activity = (await server.get(`${at(session.id)}/tool-events`)).body.events
    expect(activity.at(-1)).toMatchObject({
      event_type: 'tool.result',
      data: { is_error: true, unknown_outcome: true },
    })
  })

  it('12: credentials are nowhere in what can be read, nor in the log', async () => {
    const id = idOf(await create())
    await send(id)
    const texts = [at(id), `${at(id)}/events`, `${at(id)}/transcript`, `${at(id)}/tool-events`, '/v1/sessions']
    for (const path of texts) expect((await server.get(path)).text).not.toContain('a-model-key')
    expect(server.log).not.toContain('a-model-key')
    const journal = await readFile(`${server.directory}/data/journal/journal.sqlite-wal`)
    expect(journal.includes('a-model-key')).toBe(false)
  })

  it('14: budgets name their limit, value and variable; kinds of Brain are refused to tools', async () => {
    const session = await player([{ tool_calls: [{ name: 'outcomes', input: { steps: [{ do: 'finish' }] } }] }])
    const steps = [
      { do: 'emit', kind: 'turn_ended', payload: 1 },
      { do: 'emit', kind: 'big', payload: { raw: JSON.stringify('x'.repeat(100_000)) } },
      { do: 'finish', outcome: { status: 'ok', value: '$log' } },
    ]
    const [reserved, large] = (await session.value({ steps })) as { code: string; message: string }[]
    expect(reserved).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('turn_ended') })
    expect(large).toMatchObject({
      code: 'emit_limit',
      message: expect.stringMatching(/100000.*BRAIN_MAX_EMITTED_BYTES/),
    })
    await session.send('loop')
    const failed = (await session.records()).at(-1)
    expect(failed).toMatchObject({
      event_type: 'turn_failed',
      data: { code: 'model_call_limit', message: expect.stringMatching(/3 .*BRAIN_MAX_MODEL_CALLS/) },
    })
  })
})

describe('a list of sessions', () => {
  it('is sorted by id, and filtered by label and status, page by page', async () => {
    const labels = { team: 'docs', 'a:b': 'c:d' }
    const ids: string[] = []
    for (let count = 0; count < 5; count++) ids.push(idOf(await create({ model: model(), labels })))
    await create({ model: model(), labels: { team: 'other', a: 'b:c' } })
    await server.post(`${at(ids[0] ?? '')}/end`)
    ids.sort()
    const list = async (query: string): Promise<string[]> =>
      (await server.get(`/v1/sessions?${query}`)).body.sessions.map((one: { session_id: string }) => one.session_id)
    expect(await list('label=team:docs')).toEqual(ids)
    expect(await list('label=a:b:c:d')).toEqual(ids)
    expect(await list('label=a:b:c')).toHaveLength(1)
    expect(await list('label=team:docs&status=ended')).toHaveLength(1)
    expect(await list('label=team:docs&status=idle')).toHaveLength(4)
    const pages = [await list('label=team:docs&limit=3'), await list(`label=team:docs&limit=3&after=${ids[2]}`)]
    expect(pages).toEqual([ids.slice(0, 3), ids.slice(3)])
    expect(await list(`label=team:docs&after=${ids[4]}`)).toEqual([])
    expect(await list('label=team:nobody')).toEqual([])
    expect((await list('')).length).toBeGreaterThanOrEqual(6)
  })
})

describe('stopping', () => {
  it('answers a message whose turn runs, refuses new ones, and exits 0', async () => {
    const slow = [
      { tool_calls: [{ name: 'outcomes', input: { steps: [{ do: 'sleep', ms: 700 }, { do: 'finish' }] } }] },
      { text: 'ok' },
    ]
    const session = await player(slow)
    const sent = session.send('go')
    await expect
      .poll(async () => (await session.records()).map((record) => record.event_type))
      .toContain('tool_call_started')
    const exit = server.kill('SIGTERM')
    await expect.poll(async () => (await server.get('/health/ready')).status).toBe(503)
    const refused = await send(session.id)
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([
      503,
      'overloaded',
      { admission: 'rejected' },
    ])
    const uploaded = await server.request('POST', '/v1/tools', { bytes: await fixture('effect') })
    expect([uploaded.status, uploaded.body.code]).toEqual([503, 'overloaded'])
    const answer = await sent
    expect([answer.status, answer.body.status]).toEqual([200, 'idle'])
    expect(await exit).toBe(0)
  })
})
