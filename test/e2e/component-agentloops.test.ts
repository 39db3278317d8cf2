import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalRecord } from '../../src/journal/record.ts'
import { scriptedAgentloop } from '../fixtures/components.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'

/** One of them at least is never a loop's. */
const BOXES = 3
let server: TestServer
let loop: string
let wordcount: string

beforeAll(async () => {
  server = await startServer({
    BRAIN_MAX_TURN_SECS: '5',
    BRAIN_MAX_EMITTED_BYTES: '1000',
    BRAIN_MAX_ACTIVATION_BYTES: '100000',
    BRAIN_MAX_AGENTLOOP_REQUEST_BYTES: '2000000',
    BRAIN_MAX_EXECUTION_OUTPUT_BYTES: '70000',
  })
  loop = await server.admit(await readFile(await scriptedAgentloop()), 'agentloops')
  wordcount = await server.admit(await fixture('wordcount'))
})
afterAll(() => server[Symbol.asyncDispose]())

type Step = { readonly do: string; readonly with?: readonly unknown[] }

const agentloopOf = (id: string, configuration: unknown = null): object => ({
  implementation: { type: 'brain_component', entrypoint: 'turn', id },
  environment: 'box',
  configuration,
})

const open = (steps: readonly Step[], request: object = {}): Promise<TestSession> =>
  server.session([{ name: 'wordcount', id: wordcount }], {
    script: [{ text: 'hello' }],
    request: { agentloop: agentloopOf(loop, { steps }), ...request },
  })

const last = (records: readonly JournalRecord[]): { kind: string; data: any } => {
  const { event_type: kind, data } = records.at(-1) ?? expect.unreachable()
  return { kind, data }
}

/** Plays steps in one turn. @returns the answers, and the journal */
async function play(
  steps: readonly Step[],
  request: object = {},
): Promise<{ answers: any[]; records: JournalRecord[] }> {
  const session = await open(steps, request)
  await session.send('go')
  const records = await session.records()
  expectSoundJournal(records)
  const { kind, data } = last(records)
  if (kind !== 'turn_ended') throw new Error(`the turn failed: ${JSON.stringify(data)}`)
  return { answers: data.result, records }
}

/** Plays steps in a turn that must fail. @returns what `turn_failed` says */
async function fails(steps: readonly Step[]): Promise<any> {
  const session = await open(steps)
  await session.send('go')
  const records = await session.records()
  expectSoundJournal(records)
  expect(last(records).kind).toBe('turn_failed')
  return last(records).data
}

const words = (text: string, call = 'c1', environment = 'box'): object => ({
  call_id: call,
  name: 'wordcount',
  environment,
  input: { text },
})
const json = JSON.stringify

describe('an agentloop', () => {
  it('is admitted as one, listed, told apart from tools, and kept while a session has it', async () => {
    const bytes = await readFile(await scriptedAgentloop())
    const again = await server.request('POST', '/v1/agentloops', { bytes, type: 'application/wasm' })
    expect(again.body).toMatchObject({ id: loop, status: 'admitted', bytes: bytes.length })
    expect(again.body.imports).toContain('brain:agentloop/host')
    expect((await server.get('/v1/agentloops')).body.agentloops.map(({ id }: any) => id)).toEqual([loop])
    expect((await server.get('/v1/tools')).body.tools.map(({ id }: any) => id)).toEqual([wordcount])
    expect((await server.get(`/v1/agentloops/${loop}`)).body.id).toBe(loop)
    expect((await server.get(`/v1/tools/${loop}`)).status).toBe(404)
    expect((await server.get(`/v1/agentloops/${wordcount}`)).status).toBe(404)
    const session = await open([])
    const refused = await server.request('DELETE', `/v1/agentloops/${loop}`)
    expect(refused.body).toMatchObject({ code: 'conflict', message: expect.stringContaining('uses it') })
    expect((await server.post(`${session.path}/end`)).status).toBe(200)
  })

  it.each([
    [
      'tools',
      async () => readFile(await scriptedAgentloop()),
      'it is an agentloop, not a tool: it exports "turn". Send it to POST /v1/agentloops',
    ],
    [
      'agentloops',
      () => fixture('wordcount'),
      'it is a tool, not an agentloop: it exports "run". Send it to POST /v1/tools',
    ],
  ])('sent to /v1/%s as the other is refused with the way to go', async (resource, bytes, reason) => {
    const refused = await server.request('POST', `/v1/${resource}`, { bytes: await bytes(), type: 'application/wasm' })
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_request', details: { fault: 'wrong_world' } } })
    expect(refused.body.message).toContain(reason)
  })

  it.each([
    ['an unknown id', { agentloop: agentloopOf('a'.repeat(64)) }, /no agentloop a{64} is admitted; upload it to POST/],
    ['an id that is none', { agentloop: agentloopOf('x') }, /64 lowercase hexadecimal digits/],
    [
      'no environment',
      { agentloop: { ...agentloopOf('a'.repeat(64)), environment: undefined } },
      /needs agentloop\.environment/,
    ],
    [
      'an unknown environment',
      { agentloop: { ...agentloopOf('a'.repeat(64)), environment: 'e' } },
      /no environment of this session/,
    ],
    ['a tool', () => ({ agentloop: agentloopOf(wordcount) }), /no agentloop [0-9a-f]{64} is admitted/],
    [
      'the entry of a tool',
      () => ({
        agentloop: { ...agentloopOf(loop), implementation: { type: 'brain_component', entrypoint: 'run', id: loop } },
      }),
      /"entrypoint":"turn"/,
    ],
  ])('is refused to a session for %s', async (_what, given, reason) => {
    const request = typeof given === 'function' ? given() : given
    await expect(server.session([], { request })).rejects.toThrow(reason)
  })

  it('cannot stand where a tool stands', async () => {
    await expect(server.session([{ name: 'x', id: loop, description: 'x', input_schema: {} }])).rejects.toThrow(
      /no tool [0-9a-f]{64}/,
    )
  })

  it('is given what the session knows, and the same time and seed for the same activation', async () => {
    const { answers, records } = await play([{ do: 'see' }], {
      system: 'be kind',
      transcript: [{ role: 'user', content: [{ type: 'text', text: 'before' }] }],
    })
    const [input] = answers
    expect(JSON.parse(input.inputJson)).toEqual({ message: 'go' })
    expect(JSON.parse(input.transcriptJson)).toEqual([{ role: 'user', content: [{ type: 'text', text: 'before' }] }])
    expect(JSON.parse(input.kvJson)).toEqual({ 'brain.last_activation': 0 })
    const started = records.findIndex((record) => record.event_type === 'activation_started')
    expect(JSON.parse(input.eventsJson)).toEqual(records.slice(0, started))
    expect(input.system).toBe('be kind')
    expect(JSON.parse(input.toolsJson)).toMatchObject([{ name: 'wordcount', environments: ['box'], input_schema: {} }])
    expect(input.runtime).toEqual({ time: records[started]?.recorded_at_ms, seed: expect.any(Array) })
    expect(input.runtime.seed).toHaveLength(32)
  })

  it('asks the model with what it says, and with the session of what it leaves out', async () => {
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]
    const { answers, records } = await play(
      [
        { do: 'model', with: [json({ messages })] },
        { do: 'model', with: [json({ messages, system: '', tools: [] })] },
      ],
      { system: 'be kind' },
    )
    expect(JSON.parse(answers[0].ok)).toMatchObject({ message: { role: 'assistant' }, stop_reason: 'end_turn' })
    const asked = records.filter((record) => record.event_type === 'model_call_started').map((record) => record.data)
    expect(asked).toMatchObject([
      { system: 'be kind', tools: [{ name: 'wordcount' }], messages: 1 },
      { system: '', tools: [], messages: 1 },
    ])
  })

  it('calls tools, reads on, and keeps what it puts', async () => {
    const { answers, records } = await play([
      { do: 'dispatch', with: [json([words('a b'), words('c', 'c2')])] },
      { do: 'dispatch', with: ['[]'] },
      { do: 'events', with: [0] },
      { do: 'kvRead', with: ['note'] },
      { do: 'kvPut', with: ['note', '{"n":1}'] },
      { do: 'kvRead', with: ['note'] },
      { do: 'kvDelete', with: ['note'] },
      { do: 'kvRead', with: ['note'] },
      { do: 'emit', with: ['progress', '{"at":1}'] },
      { do: 'telemetry', with: ['{"seen":true}'] },
    ])
    const [dispatched, nothing, page, before, put, during, deleted, after, emitted] = answers.map(({ ok }) => ok)
    expect(JSON.parse(dispatched)).toMatchObject([
      { call_id: 'c1', finished: true, events: [{ event_type: 'tool_result_emitted' }, {}] },
      { call_id: 'c2', finished: true },
    ])
    expect(nothing).toBe('[]')
    expect(JSON.parse(page).events.length).toBeGreaterThan(8)
    expect([before, JSON.parse(during), after]).toEqual([null, { n: 1 }, null])
    const at = (sequence: number): string | undefined => records[sequence - 1]?.event_type
    expect([at(put), at(deleted), at(emitted)]).toEqual(['kv_set', 'kv_delete', 'progress'])
    const activation = records.find((record) => record.event_type === 'activation_started')
    expect(records[emitted - 1]?.origin).toEqual({ kind: 'agentloop', sequence: activation?.sequence })
  })

  const messages = [{ role: 'user', content: [] }]
  it.each<[string, Step, string]>([
    ['a request that is no JSON', { do: 'model', with: ['{'] }, 'invalid_request'],
    ['a request without messages', { do: 'model', with: [json({ messages: [] })] }, 'invalid_request'],
    [
      'a tool that the session has not',
      { do: 'model', with: [json({ messages, tools: [{ name: 'x', description: '', input_schema: {} }] })] },
      'invalid_request',
    ],
    ['calls that are no list', { do: 'dispatch', with: ['{}'] }, 'invalid_request'],
    ['a call of an unknown tool', { do: 'dispatch', with: [json([{ ...words('a'), name: 'x' }])] }, 'invalid_request'],
    ['a tool placed elsewhere', { do: 'dispatch', with: [json([words('a', 'c', 'elsewhere')])] }, 'invalid_request'],
    ['one id twice', { do: 'dispatch', with: [json([words('a'), words('b')])] }, 'invalid_request'],
    [
      'a stale environment',
      { do: 'dispatch', with: [json([{ ...words('a'), environment_sequence: 2 }])] },
      'invalid_request',
    ],
    [
      'a transcript of strangers',
      { do: 'setTranscript', with: [json([{ role: 'system', content: [] }])] },
      'invalid_request',
    ],
    ['a transcript that is no list', { do: 'setTranscript', with: ['7'] }, 'invalid_request'],
    ['a reserved kind', { do: 'emit', with: ['turn_ended', '{}'] }, 'invalid_request'],
    ['a kind that is no identifier', { do: 'emit', with: ['no kind', '{}'] }, 'invalid_request'],
    ['a payload that is no JSON', { do: 'emit', with: ['progress', 'x'] }, 'invalid_request'],
    ['a payload over the budget', { do: 'emit', with: ['progress', json('x'.repeat(1001))] }, 'emit_limit'],
    ['the reserved key', { do: 'kvPut', with: ['brain.last_activation', '9'] }, 'invalid_request'],
    ['a key that is no identifier', { do: 'kvRead', with: ['no key'] }, 'invalid_request'],
    ['a value that is no JSON', { do: 'kvPut', with: ['note', ''] }, 'invalid_request'],
    ['more than it may record', { do: 'kvPut', with: ['note', json('x'.repeat(100_000))] }, 'output_limit'],
    ['environments', { do: 'environments', with: ['{}'] }, 'unsupported_host_call'],
    ['more than a request may hold', { do: 'kvPut', with: ['note', json('x'.repeat(2_100_000))] }, 'output_limit'],
  ])('is refused %s, and goes on', async (_what, step, code) => {
    const { answers, records } = await play([step, { do: 'emit', with: ['after', '1'] }])
    expect(answers[0]).toMatchObject({ error: { code, retryable: false, message: expect.stringMatching(/^Cannot /) } })
    expect(answers[1]).toEqual({ ok: expect.any(Number) })
    expect(records.filter((record) => /^(tool_call|model_call|kv)_/.test(record.event_type))).toEqual([])
  })

  it('may tell a conversation that is longer than what a tool may return', async () => {
    const said = 'x'.repeat(90_000)
    const told = [{ role: 'user', content: [{ type: 'text', text: said }] }]
    const { answers } = await play([{ do: 'setTranscript', with: [json(told)] }])
    expect(answers).toEqual([{ ok: expect.any(Number) }])
  })

  it('may not record more in many small pieces either', async () => {
    const puts = Array.from({ length: 12 }, (_, n) => ({ do: 'kvPut', with: [`note${n}`, json('x'.repeat(9000))] }))
    const { answers, records } = await play(puts)
    expect(answers.findIndex(({ error }) => error?.code === 'output_limit')).toBe(10)
    expect(records.filter((record) => record.event_type === 'kv_set')).toHaveLength(10)
  })

  it.each<[string, Step, object]>([
    [
      'what it says',
      { do: 'fail', with: [{ code: 'no_luck', message: 'not today', retryable: true }] },
      { code: 'no_luck', message: 'not today', retryable: true },
    ],
    [
      'a code of its own for one that is none',
      { do: 'fail', with: [{ code: 'no code', message: 'm', retryable: false }] },
      { code: 'agentloop_failed', message: 'm' },
    ],
    ['`agentloop_failed` after a trap', { do: 'trap' }, { code: 'agentloop_failed' }],
    [
      '`agentloop_failed` for a result that is no JSON',
      { do: 'say', with: ['{'] },
      { code: 'agentloop_failed', message: expect.stringContaining('no JSON') },
    ],
    [
      '`agentloop_failed` for a result that is too long',
      { do: 'say', with: [json('x'.repeat(70_000))] },
      { code: 'agentloop_failed', message: expect.stringContaining('BRAIN_MAX_EXECUTION_OUTPUT_BYTES') },
    ],
    [
      '`timeout` when its turn is over, whatever it does',
      { do: 'spin' },
      { code: 'timeout', message: expect.stringContaining('BRAIN_MAX_TURN_SECS') },
    ],
  ])('that fails fails its turn with %s', async (_what, step, failure) => {
    expect(await fails([step])).toMatchObject({ ambiguous: false, ...failure })
  })

  it('leaves what it printed in the log of its activation, and no box behind that loops', async () => {
    const session = await open([
      { do: 'telemetry', with: ['{"at":1}'] },
      { do: 'emit', with: ['ready', '1'] },
      { do: 'spin' },
    ])
    const sent = session.send('go')
    await expect.poll(async () => (await session.records()).at(-1)?.event_type).toBe('ready')
    const [activation] = (await session.records()).filter((record) => record.event_type === 'activation_started')
    expect((await server.post(`${session.path}/cancel`)).status).toBe(204)
    await sent
    expect(last(await session.records())).toMatchObject({ kind: 'turn_failed', data: { code: 'cancelled' } })
    await expect
      .poll(async () =>
        (await server.get('/health/ready?verbose')).body.sandbox.boxes.filter(({ state }: any) => state === 'busy'),
      )
      .toEqual([])
    expect(await session.logWhen(activation?.sequence ?? 0, ({ telemetry }) => telemetry.length > 0)).toMatchObject({
      telemetry: ['{"at":1}'],
    })
  })

  /** Begins a turn whose loop loops for ever. @returns when it does */
  async function spinning(): Promise<{ session: TestSession; sent: Promise<unknown> }> {
    const session = await open([{ do: 'emit', with: ['ready', '1'] }, { do: 'spin' }])
    const sent = session.send('go').catch((error: unknown) => error)
    await expect.poll(async () => (await session.records()).at(-1)?.event_type).toBe('ready')
    return { session, sent }
  }

  it('that is lost with the supervisor fails its turn as unknown, and the session goes on', async () => {
    const { session, sent } = await spinning()
    process.kill((await server.get('/health/ready?verbose')).body.sandbox.supervisor.pid, 'SIGKILL')
    await sent
    expect(last(await session.records())).toMatchObject({
      kind: 'turn_failed',
      data: { code: 'unknown', ambiguous: true, retryable: false },
    })
    const next = await open([{ do: 'emit', with: ['ready', '1'] }])
    await expect
      .poll(async () => (await next.send('go'), last(await next.records()).kind), { timeout: 10_000 })
      .toBe('turn_ended')
    const again = session.send('again')
    await expect.poll(async () => last(await session.records()).kind).toBe('ready')
    expect((await server.post(`${session.path}/cancel`)).status).toBe(204)
    await again
    expectSoundJournal(await session.records())
  })

  it('that runs when the server is killed has a failed turn after the restart, and the session can end', async () => {
    const { session, sent } = await spinning()
    await server.kill('SIGKILL')
    await sent
    await server.start()
    const records = await session.records()
    expectSoundJournal(records)
    expect(last(records)).toMatchObject({ kind: 'turn_failed', data: { code: 'interrupted', ambiguous: true } })
    expect((await server.post(`${session.path}/end`)).body.status).toBe('ended')
    expect((await server.request('DELETE', session.path)).status).toBe(204)
  })

  it('that loops does not keep its session from ending, nor the server from stopping', async () => {
    const ending = await spinning()
    expect((await server.post(`${ending.session.path}/end`)).body.status).toBe('ended')
    await ending.sent
    const draining = await spinning()
    expect(await server.kill('SIGTERM')).toBe(0)
    await draining.sent
    await server.start()
    const records = await draining.session.records()
    expect(last(records)).toMatchObject({ kind: 'turn_failed', data: { code: 'timeout' } })
    expectSoundJournal(records)
  })

  it('is there after a restart, and goes on with what it kept', async () => {
    const session = await open([{ do: 'kvPut', with: ['note', '1'] }])
    await session.send('go')
    await server.kill('SIGTERM')
    await server.start()
    expect((await server.get('/v1/agentloops')).body.agentloops.map(({ id }: any) => id)).toEqual([loop])
    await session.send('again')
    const put = (await session.records()).filter((record) => record.event_type === 'kv_set')
    expect(put).toHaveLength(1) // the same value twice is one record
    const answers = (await session.records()).filter((record) => record.event_type === 'turn_ended')
    expect(answers.map(({ data }: any) => data.result)).toEqual([
      [{ ok: put[0]?.sequence }],
      [{ ok: expect.any(Number) }],
    ])
    expectSoundJournal(await session.records())
  })

  it('leaves a box to the tools that it waits for, however many loops there are', async () => {
    await using crowded = await startServer({ BRAIN_MAX_BOXES: String(BOXES), BRAIN_ENV_WORKERS: '1' })
    await crowded.admit(await readFile(await scriptedAgentloop()), 'agentloops')
    await crowded.admit(await fixture('wordcount'))
    const steps = [{ do: 'dispatch', with: [json([words('a b c')])] }]
    const request = { agentloop: agentloopOf(loop, { steps }) }
    const sessions = await Promise.all(
      Array.from({ length: 2 * BOXES }, () => crowded.session([{ name: 'wordcount', id: wordcount }], { request })),
    )
    await Promise.all(sessions.map((session) => session.send('go')))
    for (const session of sessions) {
      const records = await session.records()
      const [call, turn] = records.filter(({ event_type: kind }) => /^t(urn|ool_call)_(ended|failed)$/.test(kind))
      expect(call).toMatchObject({ event_type: 'tool_call_ended', data: { outcome: { status: 'ok' } } })
      expect(turn?.event_type).toBe('turn_ended')
    }
  })
})
