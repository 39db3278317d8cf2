import fc from 'fast-check'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import type { SessionStatus } from '../../src/contract/session-request.ts'
import type { SessionId, TenantId } from '../../src/kernel/ids.ts'
import type { Json } from '../../src/kernel/json.ts'
import type { Append, Appended, Claimed, ClaimKey, Journal, StoredAnswer } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory/memory-journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { event, everything } from './journal-contract.ts'

/** What a journal is, as plainly as it can be said. */
class Model {
  readonly sessions = new Map<string, { status: SessionStatus; tenant: string; data: Json[] }>()
  readonly claims = new Map<string, Claimed>()
  broken = false

  append(append: Append): unknown {
    if (this.broken) return 'storage_unavailable'
    const known = this.sessions.get(append.session)
    if (known === undefined && append.create === undefined) return 'not_found'
    const held = append.claim && this.claims.get(name(append.claim))
    if (held !== undefined) return { committed: false, claimed: held }
    if (known !== undefined && append.create !== undefined) return 'conflict'
    if (append.claim) this.claims.set(name(append.claim), { state: 'open', digest: append.claim.digest })
    const session = known ?? { status: 'creating', tenant: append.create!.tenant, data: [] }
    this.sessions.set(append.session, session)
    session.status = append.status ?? session.status
    const first = session.data.length + 1
    session.data.push(...append.records.map(({ data }) => data as Json))
    if (append.settle) this.settle(append.settle, append.settle.answer)
    return {
      committed: true,
      records: append.records.map(({ data }, index) => ({ sequence: first + index, data: data as Json })),
    }
  }

  claim(claim: ClaimKey & { digest: string }): unknown {
    if (this.broken) return 'storage_unavailable'
    const held = this.claims.get(name(claim))
    if (held === undefined) this.claims.set(name(claim), { state: 'open', digest: claim.digest })
    return held
  }

  settle(key: ClaimKey, answer: StoredAnswer): unknown {
    if (this.broken) return 'storage_unavailable'
    const held = this.claims.get(name(key))
    if (held?.state === 'open') this.claims.set(name(key), { state: 'answered', digest: held.digest, answer })
    return undefined
  }

  release(key: ClaimKey): unknown {
    if (this.broken) return 'storage_unavailable'
    if (this.claims.get(name(key))?.state === 'open') this.claims.delete(name(key))
    return undefined
  }

  remove(session: string): unknown {
    if (this.broken) return 'storage_unavailable'
    this.sessions.delete(session)
    return undefined
  }
}

const name = ({ scope, key }: ClaimKey): string => JSON.stringify([scope, key])

type Step =
  | { do: 'append'; append: Append }
  | { do: 'claim'; claim: ClaimKey & { digest: string } }
  | { do: 'settle'; key: ClaimKey; answer: StoredAnswer }
  | { do: 'release'; key: ClaimKey }
  | { do: 'remove'; session: SessionId }
/** Steps of one burst are called in one tick. */
type Act = { do: 'burst'; steps: Step[] } | { do: 'break' | 'mend' | 'reopen' | 'compare' }

const session = fc.constantFrom('1', '2', '3').map((digit) => `ses_${digit.repeat(32)}` as SessionId)
const key = fc.record({ scope: fc.constantFrom('s', 't'), key: fc.constantFrom('k', '\ud800', 'a\u0000b') })
const claim = fc.record({
  scope: fc.constantFrom('s', 't'),
  key: fc.constantFrom('k', '\ud800'),
  digest: fc.constantFrom('d', 'e'),
})
const answer: fc.Arbitrary<StoredAnswer> = fc.oneof(
  fc.record({ type: fc.constant('body' as const), status: fc.nat(599), body: fc.string({ unit: 'binary' }) }),
  fc.record({ type: fc.constant('call' as const), status: fc.nat(599), session, sequence: fc.nat() }),
)
const json = fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }) as fc.Arbitrary<Json>
const append: fc.Arbitrary<Append> = fc.record(
  {
    session,
    records: fc.array(
      json.map((data) => event(data)),
      { maxLength: 3 },
    ),
    create: fc.record({ tenant: fc.constantFrom('a' as TenantId, 'b' as TenantId), labels: fc.constant({}) }),
    status: fc.constantFrom<SessionStatus>('idle', 'running', 'ended'),
    claim,
    settle: fc.record({ scope: fc.constantFrom('s', 't'), key: fc.constantFrom('k', '\ud800'), answer }),
  },
  { requiredKeys: ['session', 'records'] },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), append }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('claim' as const), claim }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settle' as const), key, answer }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), key }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), session }) },
)
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('burst' as const), steps: fc.array(step, { maxLength: 8 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('break' as const, 'mend' as const, 'mend' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('reopen' as const, 'compare' as const) }) },
)

type Subject = {
  journal: Journal
  readonly breakWrites: () => void
  readonly mendWrites: () => void
  readonly reopen: () => Promise<void>
  readonly close: () => Promise<void>
}

function run(journal: Journal, step: Step): Promise<unknown> {
  switch (step.do) {
    case 'append':
      return journal.append(step.append).then(shown)
    case 'claim':
      return journal.claim(step.claim)
    case 'settle':
      return journal.settle(step.key, step.answer)
    case 'release':
      return journal.release(step.key)
    case 'remove':
      return journal.remove(step.session)
  }
}

function expected(model: Model, step: Step): unknown {
  switch (step.do) {
    case 'append':
      return model.append(step.append)
    case 'claim':
      return model.claim(step.claim)
    case 'settle':
      return model.settle(step.key, step.answer)
    case 'release':
      return model.release(step.key)
    case 'remove':
      return model.remove(step.session)
  }
}

const shown = (appended: Appended): unknown =>
  appended.committed
    ? { committed: true, records: appended.records.map(({ sequence, data }) => ({ sequence, data })) }
    : appended

const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : error

async function compare(journal: Journal, model: Model): Promise<void> {
  const rows = await journal.sessions({})
  expect(rows).toEqual(
    [...model.sessions]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { tenant, status, data }]) => ({ id, tenant, status, lastSequence: data.length, labels: {} })),
  )
  for (const { id } of rows) {
    const { records } = await journal.page(id, 0, everything)
    // As text: -0 is printed 0, by us and by whoever reads it from us.
    expect(JSON.stringify(records.map(({ data }) => data))).toBe(JSON.stringify(model.sessions.get(id)?.data))
    expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, index) => index + 1))
  }
  for (const scope of ['s', 't'])
    for (const k of ['k', '\ud800', 'a\u0000b'])
      expect(await journal.claimed({ scope, key: k })).toEqual(model.claims.get(name({ scope, key: k })))
}

async function replay(acts: readonly Act[], subject: Subject): Promise<void> {
  const model = new Model()
  const set = (broken: boolean): void => {
    if (broken !== model.broken) (broken ? subject.breakWrites : subject.mendWrites)()
    model.broken = broken
  }
  for (const act of acts) {
    if (act.do === 'burst') {
      const answers = act.steps.map((step) => run(subject.journal, step).catch(codeOf))
      const wanted = act.steps.map((step) => expected(model, step))
      expect(await Promise.all(answers)).toEqual(wanted)
    } else if (act.do === 'reopen') {
      set(false)
      await subject.reopen()
    } else if (act.do !== 'compare') set(act.do === 'break')
    if (act.do !== 'burst') await compare(subject.journal, model)
  }
  await compare(subject.journal, model)
}

async function memorySubject(): Promise<Subject> {
  let fault: string | undefined
  return {
    journal: openMemoryJournal({ limits: defaultLimits, fault: () => fault }),
    breakWrites: () => void (fault = 'away'),
    mendWrites: () => void (fault = undefined),
    reopen: async () => undefined,
    close: async () => undefined,
  }
}

async function sqliteSubject(): Promise<Subject> {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  const open = () => openSqliteJournal({ directory, limits: defaultLimits, busyTimeoutMs: 5 })
  let foreign: DatabaseSync | undefined
  const subject: Subject = {
    journal: await open(),
    breakWrites() {
      foreign = new DatabaseSync(join(directory, 'journal/journal.sqlite'), { timeout: 5000 })
      foreign.exec('BEGIN IMMEDIATE')
    },
    mendWrites: () => foreign?.close(),
    async reopen() {
      await subject.journal[Symbol.asyncDispose]()
      subject.journal = await open()
    },
    async close() {
      if (foreign?.isOpen === true) foreign.close()
      await subject.journal[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true })
    },
  }
  return subject
}

describe.each([
  { adapter: 'memory', subject: memorySubject, numRuns: 150 },
  { adapter: 'sqlite', subject: sqliteSubject, numRuns: 20 },
])('Journal ($adapter)', ({ subject, numRuns }) => {
  it('answers and holds what the naive model does, whatever is appended, claimed, broken and reopened', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
        const under = await subject()
        try {
          await replay(acts, under)
        } finally {
          await under.close()
        }
      }),
      { numRuns, endOnFailure: true },
    )
  })
})
