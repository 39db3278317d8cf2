import { describe, expect, it, onTestFinished } from 'vitest'
import { defaultLimits, type Limits } from '../../src/contract/limits.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { newSessionId, type SessionId, type TenantId } from '../../src/kernel/ids.ts'
import type { Json } from '../../src/kernel/json.ts'
import type { Append, Journal, StoredAnswer } from '../../src/journal/journal.ts'
import type { JournalRecord, NewRecord } from '../../src/journal/record.ts'

/** One journal under test, with the means to take its disk away. */
export type Subject = AsyncDisposable & {
  readonly journal: Journal
  readonly breakWrites: () => void
  readonly mendWrites: () => void
}
export type OpenSubject = (options: { readonly limits: Limits; readonly clock: Clock }) => Promise<Subject>

const tenant = 'local' as TenantId
const other = 'other' as TenantId
export const everything = { limit: 1_000_000, maxBytes: Number.MAX_SAFE_INTEGER }

export const event = (data: Json, type = 'note'): NewRecord => ({
  kind: 'event',
  event_type: type,
  data,
  origin: { kind: 'tool', sequence: 7 },
})

const creation = (session: SessionId, rest: Partial<Append> = {}): Append => ({
  session,
  create: { tenant, labels: {} },
  records: [],
  status: 'idle',
  ...rest,
})

async function create(journal: Journal, rest: Partial<Append> = {}): Promise<SessionId> {
  const session = newSessionId()
  await journal.append(creation(session, rest))
  return session
}

async function all(journal: Journal, session: SessionId): Promise<readonly JournalRecord[]> {
  return (await journal.page(session, 0, everything)).records
}

const answer: StoredAnswer = { type: 'body', status: 201, body: '{"made":true}' }

/** What every adapter of `Journal` keeps; titles name the invariant. */
export function journalContract(adapter: string, openSubject: OpenSubject): void {
  const time = { now: 1_700_000_000_000 }
  const clock: Clock = { now: () => time.now, monotonic: () => time.now }
  async function open(limits: Partial<Limits> = {}): Promise<Subject> {
    const subject = await openSubject({ limits: { ...defaultLimits, ...limits }, clock })
    onTestFinished(() => subject[Symbol.asyncDispose]())
    return subject
  }

  describe(`journal contract: ${adapter}`, () => {
    it('J1 `append()` answers the records that `page()` shows, and writes none when it is refused', async () => {
      const { journal } = await open()
      const session = await create(journal)
      const appended = await journal.append({
        session,
        records: [event({ n: 1 }), { kind: 'session_resumed', data: {} }, event([2], 'other_kind')],
      })
      expect(appended).toMatchObject({ committed: true })
      const records = await all(journal, session)
      expect(appended.committed && appended.records).toEqual(records)
      expect(records).toEqual([
        {
          sequence: 1,
          recorded_at_ms: time.now,
          event_type: 'note',
          data: { n: 1 },
          origin: { kind: 'tool', sequence: 7 },
        },
        { sequence: 2, recorded_at_ms: time.now, event_type: 'session_resumed', data: {} },
        {
          sequence: 3,
          recorded_at_ms: time.now,
          event_type: 'other_kind',
          data: [2],
          origin: { kind: 'tool', sequence: 7 },
        },
      ])
      const nowhere = newSessionId()
      await expect(journal.append({ session: nowhere, records: [event(1)] })).rejects.toMatchObject({
        code: 'not_found',
      })
      await expect(journal.append(creation(session, { records: [event(1)] }))).rejects.toMatchObject({
        code: 'conflict',
      })
      expect(await all(journal, nowhere)).toEqual([])
      expect(await all(journal, session)).toHaveLength(3)
      expect(journal.health()).toEqual({ state: 'ok' })
    })

    it('J1 `append()` that is refused does not touch its neighbours of the same tick', async () => {
      const { journal } = await open()
      const session = await create(journal)
      const settled = await Promise.allSettled([
        journal.append({ session, records: [event(1)] }),
        journal.append({ session: newSessionId(), records: [event(1)] }),
        journal.append(creation(session)),
        journal.append({ session, records: [event(2)], claim: { scope: 's', key: 'k', digest: 'd' } }),
        journal.append({ session, records: [event(3)], claim: { scope: 's', key: 'k', digest: 'd' } }),
        journal.append({ session, records: [event(4)] }),
      ])
      expect(settled.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'rejected',
        'fulfilled',
        'fulfilled',
        'fulfilled',
      ])
      expect((await all(journal, session)).map(({ data }) => data)).toEqual([1, 2, 4])
    })

    it('J2 `append()` gives dense sequences per session in the order of the calls', async () => {
      const { journal } = await open()
      const sessions = await Promise.all(Array.from({ length: 8 }, () => create(journal)))
      const appended = await Promise.all(
        Array.from({ length: 400 }, (_, n) => {
          const session = sessions[n % sessions.length]!
          return journal.append({ session, records: n % 3 === 0 ? [event(n), event(n + 0.5)] : [event(n)] })
        }),
      )
      for (const [index, session] of sessions.entries()) {
        const records = await all(journal, session)
        expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, n) => n + 1))
        const values = records.map(({ data }) => data as number)
        expect(values).toEqual(values.toSorted((a, b) => a - b))
        const acknowledged = appended
          .filter((_, n) => n % sessions.length === index)
          .flatMap((answered) => (answered.committed ? answered.records : []))
        expect(acknowledged).toEqual(records)
      }
    })

    it('J4 `append()` rejects while writes fail, leaves sequences dense, and `health()` tells', async () => {
      const { journal, breakWrites, mendWrites } = await open()
      const session = await create(journal, { records: [event(1)] })
      breakWrites()
      const failed = await Promise.allSettled([
        journal.append({ session, records: [event('lost')], status: 'failed' }),
        journal.append({ session, records: [event('lost')] }),
        journal.append(creation(newSessionId())),
        journal.claim({ scope: 's', key: 'k', digest: 'd' }),
      ])
      for (const result of failed)
        expect(result).toMatchObject({ status: 'rejected', reason: { code: 'storage_unavailable', retryable: true } })
      expect(journal.health()).toMatchObject({ state: 'degraded', reason: expect.stringMatching(/./) })
      expect(await all(journal, session)).toHaveLength(1)
      mendWrites()
      const appended = await journal.append({ session, records: [event(2)] })
      expect(appended).toMatchObject({ committed: true, records: [{ sequence: 2, data: 2 }] })
      expect(journal.health()).toEqual({ state: 'ok' })
      expect(await journal.session(session)).toMatchObject({ status: 'idle', lastSequence: 2 })
      expect(await journal.sessions({})).toHaveLength(1)
      expect(await journal.claimed({ scope: 's', key: 'k' })).toBeUndefined()
    })

    it('J5 `append()` never writes an earlier time than before when the clock goes back', async () => {
      const { journal } = await open()
      time.now = 1000
      const session = await create(journal)
      const times: number[] = []
      for (const now of [5000, 4000, 6000, 1, 6001]) {
        time.now = now
        const appended = await journal.append({ session, records: [event(null), event(null)] })
        if (appended.committed) times.push(...appended.records.map((record) => record.recorded_at_ms))
      }
      expect(times).toEqual([5000, 5000, 5000, 5000, 6000, 6000, 6000, 6000, 6001, 6001])
      expect((await all(journal, session)).map((record) => record.recorded_at_ms)).toEqual(times)
    })

    it('J6 `append()` changes the session row, and `sessions()` lists by tenant, status, label, after and limit', async () => {
      const { journal } = await open()
      const ids = (await Promise.all([
        create(journal, { create: { tenant, labels: { team: 'red', 'x.y': 'z' } } }),
        create(journal, { create: { tenant, labels: { team: 'blue' } }, status: 'running' }),
        create(journal, { create: { tenant: other, labels: { team: 'red' } }, status: 'running' }),
        create(journal, { create: { tenant, labels: { team: 'red' } }, status: 'ended' }),
      ])) as [SessionId, SessionId, SessionId, SessionId]
      await journal.append({ session: ids[0], records: [event(1), event(2)], status: 'running' })
      expect(await journal.session(ids[0])).toEqual({
        id: ids[0],
        tenant,
        status: 'running',
        lastSequence: 2,
        labels: { team: 'red', 'x.y': 'z' },
      })
      await journal.append({ session: ids[0], records: [event(3)] })
      expect(await journal.session(ids[0])).toMatchObject({ status: 'running', lastSequence: 3 })
      expect(await journal.session(newSessionId())).toBeUndefined()

      const list = async (query: Parameters<Journal['sessions']>[0]) =>
        (await journal.sessions(query)).map(({ id }) => id)
      const sorted = (...picked: SessionId[]) => picked.toSorted()
      expect(await list({})).toEqual(sorted(...ids))
      expect(await list({ tenant })).toEqual(sorted(ids[0], ids[1], ids[3]))
      expect(await list({ status: ['running', 'creating'] })).toEqual(sorted(ids[0], ids[1], ids[2]))
      expect(await list({ status: [] })).toEqual([])
      expect(await list({ tenant, status: ['running'] })).toEqual(sorted(ids[0], ids[1]))
      const red = { key: 'team', value: 'red' }
      expect(await list({ label: red })).toEqual(sorted(ids[0], ids[2], ids[3]))
      expect(await list({ label: red, tenant })).toEqual(sorted(ids[0], ids[3]))
      expect(await list({ label: red, tenant, status: ['ended'] })).toEqual([ids[3]])
      expect(await list({ label: { key: 'team', value: 'green' } })).toEqual([])
      expect(await list({ label: { key: 'toString', value: 'red' } })).toEqual([])
      const order = sorted(...ids)
      expect(await list({ limit: 2 })).toEqual(order.slice(0, 2))
      expect(await list({ after: order[1]!, limit: 10 })).toEqual(order.slice(2))
      expect(await list({ after: order[3]! })).toEqual([])
      expect(await list({ label: red, after: sorted(ids[0], ids[2], ids[3])[0]! })).toHaveLength(2)
    })

    it('J6 `sessions()` finds those that have calls without an end', async () => {
      const { journal } = await open()
      const ids = (await Promise.all([create(journal), create(journal), create(journal)])) as [
        SessionId,
        SessionId,
        SessionId,
      ]
      const invocation = { call_id: 'c', name: 't', environment: 'box', input: null }
      const start = { tool: 't', environment: 'box', environment_sequence: 1, invocation, deadline_ms: null }
      const started: NewRecord = { kind: 'tool_call_started', data: start }
      const ended = (sequence: number): NewRecord => ({
        kind: 'tool_call_ended',
        data: { sequence, outcome: { status: 'ok', value: null } },
        origin: { kind: 'tool', sequence },
      })
      const failure = { code: 'interrupted', message: 'm', retryable: false, ambiguous: true }
      const found = async (more = {}) => (await journal.sessions({ hasOpenCalls: true, ...more })).map(({ id }) => id)
      await journal.append({ session: ids[0], records: [started, started] })
      await journal.append({ session: ids[1], records: [started, event({ sequence: 1 })] })
      expect(await found()).toEqual([ids[0], ids[1]].toSorted())
      await journal.append({ session: ids[0], records: [ended(2)] })
      await journal.append({ session: ids[1], records: [ended(1)] })
      expect(await found()).toEqual([ids[0]])
      expect(await found({ tenant: other })).toEqual([])
      await journal.append({
        session: ids[0],
        records: [{ kind: 'tool_call_failed', data: { sequence: 1, ...failure } }],
      })
      expect(await found()).toEqual([])
      await journal.append({ session: ids[2], records: [started] })
      await journal.remove(ids[2])
      expect(await found()).toEqual([])
    })

    it('J6 `sessions()` lists more sessions than one message carries', async () => {
      const { journal } = await open()
      const ids = await Promise.all(Array.from({ length: 1203 }, () => create(journal)))
      expect((await journal.sessions({})).map(({ id }) => id)).toEqual(ids.toSorted())
      expect((await journal.sessions({ limit: 700 })).map(({ id }) => id)).toEqual(ids.toSorted().slice(0, 700))
    })

    it('J7 `append()` with a claim writes both or neither, and a taken key answers what holds it', async () => {
      const { journal } = await open()
      const session = newSessionId()
      const claim = { scope: 'local:create', key: 'k1', digest: 'd1' }
      const first = await journal.append(creation(session, { records: [event(1)], claim }))
      expect(first).toMatchObject({ committed: true })
      expect(await journal.claimed(claim)).toEqual({ state: 'open', digest: 'd1' })

      const second = newSessionId()
      const taken = await journal.append(creation(second, { claim: { ...claim, digest: 'd2' } }))
      expect(taken).toEqual({ committed: false, claimed: { state: 'open', digest: 'd1' } })
      expect(await journal.session(second)).toBeUndefined()

      await journal.append({ session, records: [event(2)], settle: { ...claim, answer } })
      const answered = { state: 'answered', digest: 'd1', answer }
      expect(await journal.claimed(claim)).toEqual(answered)
      expect(await journal.claim(claim)).toEqual(answered)
      await journal.release(claim)
      await journal.settle(claim, { type: 'call', status: 200, session, sequence: 2 })
      expect(await journal.claimed(claim)).toEqual(answered)

      const elsewhere = { ...claim, scope: 'local:other' }
      expect(await journal.claim(elsewhere)).toBeUndefined()
      expect(await journal.claim(elsewhere)).toEqual({ state: 'open', digest: 'd1' })
      const call: StoredAnswer = { type: 'call', status: 200, session, sequence: 2 }
      await journal.settle(elsewhere, call)
      expect(await journal.claimed(elsewhere)).toEqual({ state: 'answered', digest: 'd1', answer: call })
    })

    it('J7 `append()` makes one session of twenty that race for a key', async () => {
      const { journal } = await open()
      const claim = { scope: 'local:create', key: 'race', digest: 'd' }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => journal.append(creation(newSessionId(), { claim, records: [event(1)] }))),
      )
      expect(answers.filter(({ committed }) => committed)).toHaveLength(1)
      expect(await journal.sessions({})).toHaveLength(1)
    })

    it('J7 `append()` may claim and settle a key at once; `release()` frees an open one', async () => {
      const { journal } = await open()
      const claim = { scope: 's', key: 'both', digest: 'd' }
      const session = await create(journal, { claim, settle: { ...claim, answer } })
      expect(await journal.claimed(claim)).toEqual({ state: 'answered', digest: 'd', answer })
      const free = { scope: 's', key: 'free', digest: 'd' }
      expect(await journal.claim(free)).toBeUndefined()
      await journal.release(free)
      expect(await journal.claimed(free)).toBeUndefined()
      expect(await journal.append({ session, records: [event(1)], claim: free })).toMatchObject({ committed: true })
      await journal.settle({ scope: 's', key: 'never claimed' }, answer)
      expect(await journal.claimed({ scope: 's', key: 'never claimed' })).toBeUndefined()
    })

    it('J7 `expireClaims()` forgets old answers and no open claim', async () => {
      const { journal } = await open()
      time.now = 1_000_000
      const keys = Array.from({ length: 1100 }, (_, n) => ({ scope: 's', key: `old ${n}`, digest: 'd' }))
      await Promise.all(keys.map((claim) => journal.claim(claim)))
      await Promise.all(keys.slice(1).map((claim) => journal.settle(claim, answer)))
      time.now = 1_005_000
      const late = { scope: 's', key: 'late', digest: 'd' }
      await journal.claim(late)
      await journal.settle(late, answer)
      time.now = 1_010_000
      await journal.expireClaims(7000)
      expect(await journal.claimed(keys[0]!)).toEqual({ state: 'open', digest: 'd' })
      expect(await journal.claimed(keys[1]!)).toBeUndefined()
      expect(await journal.claimed(keys[1099]!)).toBeUndefined()
      expect(await journal.claimed(late)).toMatchObject({ state: 'answered' })
      await journal.settle(keys[0]!, answer)
      await journal.expireClaims(7000)
      expect(await journal.claimed(keys[0]!)).toMatchObject({ state: 'answered' })
    })

    it('J8 `page()` keeps to `limit` and `maxBytes`, always gives one record, and ends where nothing is newer', async () => {
      const { journal } = await open()
      const session = await create(journal)
      await journal.append({ session, records: Array.from({ length: 1234 }, (_, n) => event(n)) })
      const seen: number[] = []
      for (let cursor = 0; ;) {
        const page = await journal.page(session, cursor, { limit: 100, maxBytes: 1_000_000 })
        expect(page.records.length).toBeLessThanOrEqual(100)
        expect(page.nextCursor).toBe(cursor + page.records.length)
        if (page.records.length === 0) break
        seen.push(...page.records.map(({ data }) => data as number))
        cursor = page.nextCursor
      }
      expect(seen).toEqual(Array.from({ length: 1234 }, (_, n) => n))
      expect((await journal.page(session, 1230, everything)).records.map(({ sequence }) => sequence)).toEqual([
        1231, 1232, 1233, 1234,
      ])
      expect(await journal.page(session, 5000, everything)).toEqual({ records: [], nextCursor: 5000 })
      expect(await journal.page(newSessionId(), 3, everything)).toEqual({ records: [], nextCursor: 3 })

      const large = await create(journal)
      for (let n = 0; n < 6; n++) await journal.append({ session: large, records: [event('é'.repeat(150_000))] })
      const lengths = async (maxBytes: number, after = 0) =>
        (await journal.page(large, after, { limit: 10, maxBytes })).records.length
      expect(await lengths(1)).toBe(1)
      expect(await lengths(1, 5)).toBe(1)
      expect(await lengths(1, 6)).toBe(0)
      expect(await lengths(599_999)).toBe(1)
      expect(await lengths(650_000)).toBe(2)
      expect(await lengths(1_000_000)).toBe(3)
      expect(await lengths(10_000_000)).toBe(6)
    })

    it('J9 `append()` over a queue bound rejects with `overloaded` and writes nothing; a lone large one enters', async () => {
      const { journal } = await open({ sessionQueueBytes: 64 * 1024, journalQueueBytes: 1024 * 1024 })
      const session = await create(journal)
      const large = event('x'.repeat(100_000))
      const settled = await Promise.allSettled(
        Array.from({ length: 3 }, () => journal.append({ session, records: [large] })),
      )
      expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
      expect(settled[1]).toMatchObject({
        reason: {
          code: 'overloaded',
          retryable: true,
          message: expect.stringContaining('BRAIN_MAX_SESSION_QUEUE_BYTES'),
        },
      })
      expect(await journal.append({ session, records: [event(1)] })).toMatchObject({ records: [{ sequence: 2 }] })

      const sessions = await Promise.all(Array.from({ length: 15 }, () => create(journal)))
      const many = await Promise.allSettled(sessions.map((id) => journal.append({ session: id, records: [large] })))
      expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
      expect(many.at(-1)).toMatchObject({
        reason: { code: 'overloaded', message: expect.stringContaining('BRAIN_MAX_JOURNAL_QUEUE_BYTES') },
      })
      expect(journal.health()).toEqual({ state: 'ok' })
    })

    it('J10 `remove()` takes a session with its records, row and labels, and nothing else', async () => {
      const { journal } = await open()
      const labels = { team: 'red' }
      const [gone, stays] = [
        await create(journal, {
          create: { tenant, labels },
          records: Array.from({ length: 1500 }, (_, n) => event(n)),
        }),
        await create(journal, { create: { tenant, labels }, records: [event('stays')] }),
      ]
      const claim = { scope: 's', key: 'delete', digest: 'd' }
      await journal.claim(claim)
      await journal.remove(gone, { ...claim, answer })
      expect(await journal.session(gone)).toBeUndefined()
      expect(await all(journal, gone)).toEqual([])
      expect((await journal.sessions({ label: { key: 'team', value: 'red' } })).map(({ id }) => id)).toEqual([stays])
      expect(await all(journal, stays)).toMatchObject([{ data: 'stays' }])
      expect(await journal.claimed(claim)).toMatchObject({ state: 'answered' })
      await expect(journal.append({ session: gone, records: [event(1)] })).rejects.toMatchObject({ code: 'not_found' })
      await journal.remove(gone)
      const next = await create(journal, { records: [event('next')] })
      expect(await all(journal, next)).toMatchObject([{ sequence: 1, data: 'next' }])
    })

    it('J11 text comes back as it was given (D-16)', async () => {
      const { journal } = await open()
      const texts = ['a\u0000b', '\ud800x', 'x\udc00', '😀', '\u2028\ufeff\u007f\u0001"\\', '\udc00\ud800']
      const data: Json = {
        texts,
        keys: JSON.parse('{"__proto__":{"a":1},"constructor":"c","":"empty","\\ud800":"\\u0000"}') as Json,
        numbers: [0.1, 1e308, 9007199254740991, -1e-7],
      }
      const odd = texts.join('|')
      const labels = JSON.parse(JSON.stringify({ text: odd, __proto: 'p' })) as Record<string, string>
      const claim = { scope: 'local', key: odd, digest: 'd' }
      const session = await create(journal, { create: { tenant, labels }, records: [event(data)], claim })
      const body: StoredAnswer = { type: 'body', status: 200, body: odd }
      await journal.settle(claim, body)

      const [record] = await all(journal, session)
      expect(record?.data).toEqual(data)
      expect(JSON.stringify(record?.data)).toBe(JSON.stringify(data))
      expect((await journal.session(session))?.labels).toEqual(labels)
      expect(await journal.sessions({ label: { key: 'text', value: odd } })).toHaveLength(1)
      expect(await journal.sessions({ label: { key: 'text', value: odd.replace('\ud800x', '\ufffdx') } })).toHaveLength(
        0,
      )
      expect(await journal.claimed(claim)).toEqual({ state: 'answered', digest: 'd', answer: body })
      expect(await journal.claimed({ ...claim, key: odd.replace('\ud800', '\ud801') })).toBeUndefined()
    })

    it('`[Symbol.asyncDispose]()` writes what was called before it and refuses what comes after', async () => {
      const { journal } = await open()
      const session = await create(journal)
      const pending = journal.append({ session, records: [event(1)] })
      await journal[Symbol.asyncDispose]()
      expect(await pending).toMatchObject({ committed: true })
      await expect(journal.append({ session, records: [event(2)] })).rejects.toMatchObject({
        code: 'storage_unavailable',
      })
    })
  })
}
