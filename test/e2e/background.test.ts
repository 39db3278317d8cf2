import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataOf, type JournalRecord } from '../../src/journal/record.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'

const TOOL_SECS = 4

let server: TestServer
let outcomes: string
beforeAll(async () => {
  server = await startServer({ BRAIN_MAX_TOOL_SECS: String(TOOL_SECS), BRAIN_MAX_EMITTED_BYTES: '4000' })
  outcomes = await server.admit(await fixture('outcomes'))
})
afterAll(() => server[Symbol.asyncDispose]())

const ok = (value: unknown) => ({ status: 'ok', value })
const event = (length: number) => ({ do: 'emit', kind: 'n', payload: 'x'.repeat(length) })

/** A session that is suspended after each turn, whose model starts a component that goes on after the turn. */
const startedWith = async (steps: readonly unknown[]): Promise<TestSession> => {
  const script = [{ tool_calls: [{ name: 'outcomes', input: { steps } }] }, { text: 'waiting' }, { text: 'woken' }]
  const session = await server.session([{ name: 'outcomes', id: outcomes }], { script, request: { idle_ttl_ms: 1 } })
  await session.send('go')
  await expect.poll(async () => (await kindsOf(session)).at(-1)).toBe('session_suspended')
  return session
}

const kindsOf = async (session: TestSession): Promise<string[]> =>
  (await session.records()).map(({ event_type: kind }) => kind)

const first = (records: readonly JournalRecord[], kind: string): JournalRecord =>
  records.find(({ event_type: type }) => type === kind) as JournalRecord

describe('a background component of a session that was suspended', () => {
  it('goes on with the budget of its turn, and its end opens the session again', async () => {
    const session = await startedWith([
      event(2000),
      { do: 'returned', outcome: ok('early') },
      { do: 'sleep', ms: 1000 },
      event(2000),
      { do: 'finish', outcome: ok('y'.repeat(2000)) },
      { do: 'finish', outcome: ok('$log') },
    ])
    const said = async () => (await kindsOf(session)).filter((kind) => kind === 'output_emitted').length
    await expect.poll(said, { timeout: 10_000 }).toBe(2)
    await expect.poll(async () => (await kindsOf(session)).at(-1)).toBe('session_suspended')
    const records = await session.records()
    expectSoundJournal(records)
    const results = records.flatMap((record) => dataOf(record, 'tool_result_emitted')?.result ?? [])
    expect(results.map(({ output }) => output)).toMatchObject([
      'early',
      [
        { sequence: expect.any(Number) },
        { sequence: expect.any(Number) },
        null,
        { code: 'emit_limit' },
        { code: 'emit_limit' },
      ],
    ])
    const kinds = records.map(({ event_type: kind }) => kind)
    const ended = kinds.indexOf('tool_call_ended')
    const isOfSession = (kind: string): boolean => /^session_(suspended|resumed)$/.test(kind)
    expect(kinds.slice(0, ended).findLast(isOfSession)).toBe('session_suspended')
    expect(kinds.slice(ended, ended + 3)).toEqual(['tool_call_ended', 'session_resumed', 'turn_started'])
    const transcript = JSON.stringify((await server.get(`${session.path}/transcript`)).body.messages)
    expect(transcript).toContain('emit_limit')
  })

  it('is stopped at the deadline that it started with', async () => {
    const session = await startedWith([
      { do: 'returned', outcome: ok('early') },
      { do: 'sleep', ms: 60_000 },
    ])
    await expect.poll(() => kindsOf(session), { timeout: 2000 * TOOL_SECS }).toContain('tool_cancel_ended')
    const records = await session.records()
    expectSoundJournal(records)
    const [started, ended] = [first(records, 'tool_call_started'), first(records, 'tool_call_ended')]
    expect(dataOf(ended, 'tool_call_ended')?.outcome).toEqual({ status: 'timeout' })
    const tookMs = ended.recorded_at_ms - started.recorded_at_ms
    expect(tookMs).toBeGreaterThanOrEqual(TOOL_SECS * 1000 - 1)
    expect(tookMs).toBeLessThan(TOOL_SECS * 1000 + 1000)
    expect(first(records, 'session_suspended').sequence).toBeLessThan(ended.sequence)
  })

  it('asks the model nothing while it brings events only', async () => {
    const session = await startedWith([
      { do: 'returned', outcome: null },
      { do: 'sleep', ms: 200 },
      event(1),
      { do: 'sleep', ms: 200 },
      event(1),
      { do: 'sleep', ms: 60_000 },
    ])
    const turns = async () => (await kindsOf(session)).filter((kind) => kind === 'turn_ended').length
    await expect.poll(turns, { timeout: 3000 }).toBe(3)
    const records = await session.records()
    expect(records.filter(({ event_type: kind }) => kind === 'model_call_started')).toHaveLength(2)
    const wakes = records.flatMap((record) => dataOf(record, 'turn_started') ?? []).slice(1)
    expect(wakes).toEqual([{ trigger: 'events' }, { trigger: 'events' }])
    await server.post(`${session.path}/end`)
    expectSoundJournal(await session.records())
  })
})
