import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { newSessionId, type TenantId } from '../../src/kernel/ids.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { StoreClient } from '../../src/journal/sqlite/store-client.ts'
import { openForWriting } from '../../src/journal/sqlite/open-database.ts'
import { STORE_FORMAT } from '../../src/journal/sqlite/store-format.ts'
import { StoreWriter } from '../../src/journal/sqlite/store-writer.ts'
import type { WriterCalls } from '../../src/journal/sqlite/protocol.ts'
import { event, everything } from '../contract/journal-contract.ts'

const tenant = 'local' as TenantId
const create = { tenant, labels: {} }

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

async function open(directory: string, options: { clock?: Clock; busyTimeoutMs?: number } = {}) {
  const journal = await openSqliteJournal({ directory, limits: defaultLimits, ...options })
  onTestFinished(() => journal[Symbol.asyncDispose]())
  return journal
}

const databaseIn = (directory: string): string => join(directory, 'journal/journal.sqlite')
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

describe('openSqliteJournal()', () => {
  it('shows after a reopen what was there before it, and goes on from there', async () => {
    const directory = temporaryDirectory()
    const session = newSessionId()
    const claim = { scope: 's', key: 'k', digest: 'd' }
    const text = 'a\u0000b\ud800x 😀'
    const first = await openSqliteJournal({ directory, limits: defaultLimits })
    await first.append({ session, create, records: [event(text)], status: 'running', claim })
    await first[Symbol.asyncDispose]()
    const journal = await open(directory)
    expect((await journal.page(session, 0, everything)).records).toMatchObject([{ sequence: 1, data: text }])
    expect(await journal.sessions({ status: ['running', 'creating', 'ending'] })).toMatchObject([{ id: session }])
    expect(await journal.claimed(claim)).toEqual({ state: 'open', digest: 'd' })
    expect(await journal.append({ session, records: [event(2)] })).toMatchObject({ records: [{ sequence: 2 }] })
  })

  it('makes its files for its own user alone, whatever the umask', async () => {
    const directory = join(temporaryDirectory(), 'deep/data')
    const umask = process.umask(0)
    const journal = await open(directory).finally(() => process.umask(umask))
    await journal.append({ session: newSessionId(), create, records: [event(1)] })
    for (const path of [directory, join(directory, 'journal')]) expect(modeOf(path)).toBe('700')
    for (const path of [
      'lock.sqlite',
      'journal/journal.sqlite',
      'journal/journal.sqlite-wal',
      'journal/journal.sqlite-shm',
    ])
      expect(modeOf(join(directory, path)), path).toBe('600')
  })

  it('refuses a directory that another journal holds, naming it, until that one is closed', async () => {
    const directory = temporaryDirectory()
    const first = await open(directory)
    const second = openSqliteJournal({ directory, limits: defaultLimits })
    await expect(second).rejects.toMatchObject({
      code: 'storage_unavailable',
      retryable: false,
      message: `Cannot open the data directory ${JSON.stringify(directory)}: another server uses it; stop the other server or choose another BRAIN_DATA_DIR`,
    })
    await expect(openSqliteJournal({ directory, limits: defaultLimits })).rejects.toThrow('another server uses it')
    await first[Symbol.asyncDispose]()
    await open(directory)
  })

  it.each([
    'lock.sqlite',
    'journal',
    'journal/journal.sqlite',
    'journal/journal.sqlite-wal',
    'journal/journal.sqlite-shm',
  ])('refuses a symlink in the place of %s, and leaves its target alone', async (name) => {
    const directory = temporaryDirectory()
    const elsewhere = join(temporaryDirectory(), 'target')
    if (name === 'journal') mkdirSync(elsewhere)
    if (name.startsWith('journal/')) mkdirSync(join(directory, 'journal'))
    symlinkSync(elsewhere, join(directory, name))
    const opened = openSqliteJournal({ directory, limits: defaultLimits })
    await expect(opened).rejects.toThrow(`${JSON.stringify(join(directory, name))} is a symlink and not a`)
    expect(existsSync(name === 'journal' ? join(elsewhere, 'journal.sqlite') : elsewhere)).toBe(false)
    rmSync(join(directory, name))
    await open(directory)
  })

  it('follows a data directory that is itself a symlink', async () => {
    const real = temporaryDirectory()
    const link = join(temporaryDirectory(), 'data')
    symlinkSync(real, link)
    await open(link)
    expect(existsSync(databaseIn(real))).toBe(true)
    await expect(openSqliteJournal({ directory: real, limits: defaultLimits })).rejects.toThrow(
      'another server uses it',
    )
  })

  it('refuses a database that is newer, foreign or none at all, and leaves it as it was', async () => {
    const prepare = (fill: (path: string) => void): string => {
      const directory = temporaryDirectory()
      mkdirSync(join(directory, 'journal'))
      fill(databaseIn(directory))
      return directory
    }
    const run = (sql: string) => (path: string) => {
      const database = openForWriting({ path, busyTimeoutMs: 0 })
      database.exec(sql)
      database.close()
    }
    const foreign = (path: string) => {
      const database = new DatabaseSync(path)
      database.exec('CREATE TABLE theirs (a)')
      database.close()
    }
    const newer = prepare(run(`PRAGMA user_version = ${STORE_FORMAT + 1}`))
    const attempt = async (directory: string) => {
      const before = readFileSync(databaseIn(directory))
      await openSqliteJournal({ directory, limits: defaultLimits }).finally(() => {
        expect(readFileSync(databaseIn(directory)).equals(before)).toBe(true)
      })
    }
    await expect(attempt(newer)).rejects.toMatchObject({
      code: 'storage_unavailable',
      message: expect.stringContaining(`format ${STORE_FORMAT + 1} is newer than format ${STORE_FORMAT}`),
    })
    await expect(attempt(prepare(foreign))).rejects.toThrow('database of another application')
    await expect(attempt(prepare(run('PRAGMA application_id = 5')))).rejects.toThrow('database of another application')
    await expect(attempt(prepare((path) => writeFileSync(path, 'x'.repeat(5000))))).rejects.toThrow('not a database')
    // A refusal lets go of the lock.
    const database = new DatabaseSync(databaseIn(newer))
    expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: STORE_FORMAT + 1 })
    database.exec(`PRAGMA user_version = ${STORE_FORMAT}`)
    database.close()
    await open(newer)
  })

  it('brings a database of the first format forward, which did not know what calls are open', async () => {
    const directory = temporaryDirectory()
    const [open_, ended] = [newSessionId(), newSessionId()]
    const create = { tenant: 'local' as TenantId, labels: {} }
    const invocation = { call_id: 'c', name: 't', environment: 'box', input: null }
    const data = { tool: 't', environment: 'box', environment_sequence: 1, invocation, deadline_ms: null }
    const end = { sequence: 1, outcome: { status: 'ok', value: '\ud800\u0000' } } as const
    {
      await using journal = await openSqliteJournal({ directory, limits: defaultLimits })
      for (const session of [open_, ended])
        await journal.append({ session, create, records: [{ kind: 'tool_call_started', data }] })
      await journal.append({ session: ended, records: [{ kind: 'tool_call_ended', data: end }] })
    }
    const database = new DatabaseSync(databaseIn(directory))
    const drops = ['TRIGGER call_started', 'TRIGGER call_ended', 'TRIGGER call_purged', 'TABLE open_calls']
    database.exec(`${drops.map((what) => `DROP ${what};`).join(' ')} PRAGMA user_version = 1`)
    database.close()
    await using journal = await openSqliteJournal({ directory, limits: defaultLimits })
    expect((await journal.sessions({ hasOpenCalls: true })).map(({ id }) => id)).toEqual([open_])
    await journal.append({ session: open_, records: [{ kind: 'tool_call_ended', data: end }] })
    expect(await journal.sessions({ hasOpenCalls: true })).toEqual([])
  })

  it('refuses a data directory in which it may not write', async () => {
    const file = join(temporaryDirectory(), 'file')
    writeFileSync(file, '')
    chmodSync(file, 0o600)
    const opened = openSqliteJournal({ directory: join(file, 'data'), limits: defaultLimits })
    await expect(opened).rejects.toMatchObject({
      code: 'storage_unavailable',
      message: expect.stringContaining('ENOTDIR'),
    })
  })

  it('`expireClaims()` forgets open claims of an earlier server once they are old', async () => {
    const directory = temporaryDirectory()
    let now = 1_000_000
    const clock: Clock = { now: () => now, monotonic: () => now }
    const before = await openSqliteJournal({ directory, limits: defaultLimits, clock })
    const lost = { scope: 's', key: 'lost', digest: 'd' }
    await before.claim(lost)
    await before[Symbol.asyncDispose]()
    now += 1000
    const journal = await open(directory, { clock })
    const running = { scope: 's', key: 'running', digest: 'd' }
    await journal.claim(running)
    await journal.expireClaims(5000)
    expect(await journal.claimed(lost)).toEqual({ state: 'open', digest: 'd' })
    now += 60_000
    await journal.expireClaims(5000)
    expect(await journal.claimed(lost)).toBeUndefined()
    expect(await journal.claimed(running)).toEqual({ state: 'open', digest: 'd' })
  })

  it('`health()` recovers without an append once writes work again', async () => {
    const directory = temporaryDirectory()
    const journal = await open(directory, { busyTimeoutMs: 10 })
    const foreign = new DatabaseSync(databaseIn(directory))
    foreign.exec('BEGIN IMMEDIATE')
    const failed = journal.append({ session: newSessionId(), create, records: [] })
    await expect(failed).rejects.toMatchObject({ code: 'storage_unavailable' })
    expect(journal.health()).toEqual({
      state: 'degraded',
      reason: expect.stringContaining('database is locked'),
    })
    foreign.close()
    await vi.waitUntil(() => journal.health().state === 'ok', { timeout: 5000 })
  })
})

describe('StoreWriter', () => {
  function writerOn(path: string): { writer: StoreWriter; database: DatabaseSync } {
    const database = openForWriting({ path, busyTimeoutMs: 0 })
    onTestFinished(() => database.close())
    return { writer: new StoreWriter(database), database }
  }
  const append = (id: number, session: string, data: string, fresh = false) => ({
    id,
    op: 'append' as const,
    request: {
      session,
      at: 1,
      records: [{ type: 'note', data: JSON.stringify(data), origin: null }],
      ...(fresh && { create: { tenant, labels: {} } }),
    },
  })

  it('`answer()` gives each call its own verdict when one of a batch does not fit the disk (J4)', () => {
    const { writer, database } = writerOn(join(temporaryDirectory(), 'journal.sqlite'))
    writer.answer([append(1, 'a', 'first', true), append(2, 'b', 'first', true)])
    const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count'])
    database.exec(`PRAGMA max_page_count = ${pages + 2}`)
    const replies = writer.answer([
      append(3, 'a', 'small'),
      append(4, 'b', 'x'.repeat(100_000)),
      append(5, 'a', 'small too'),
      append(6, 'b', 'small'),
    ])
    expect(replies).toMatchObject([
      { id: 3, ok: true, value: { first: 2 } },
      { id: 4, ok: false, code: 'storage_unavailable', message: expect.stringContaining('full') },
      { id: 5, ok: true, value: { first: 3 } },
      { id: 6, ok: true, value: { first: 2 } },
    ])
    database.exec('PRAGMA max_page_count = 100000')
    expect(writer.answer([append(7, 'b', 'x'.repeat(100_000))])).toMatchObject([{ ok: true, value: { first: 3 } }])
  })

  it('`tidy()` purges a removed session step by step, also after a restart (J10)', () => {
    const path = join(temporaryDirectory(), 'journal.sqlite')
    const count = (database: DatabaseSync) =>
      database.prepare('SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM removed) AS n').get()?.['n']
    const before = openForWriting({ path, busyTimeoutMs: 0 })
    const records = Array.from({ length: 1800 }, () => ({ type: 'note', data: '1', origin: null }))
    const request = { session: 'gone', at: 1, records, create: { tenant, labels: {} } }
    const writer = new StoreWriter(before)
    writer.answer([{ id: 1, op: 'append', request }, append(2, 'stays', 'here', true)])
    expect(writer.answer([{ id: 3, op: 'remove', request: { session: 'gone', at: 2 } }])).toMatchObject([{ ok: true }])
    expect(count(before)).toBe(1802)
    expect(writer.tidy()).toBe(true)
    expect(count(before)).toBe(1302)
    writer.close()

    const { writer: next, database } = writerOn(path)
    while (next.tidy());
    expect(count(database)).toBe(1)
    expect(next.answer([append(4, 'stays', 'here'), append(5, 'new', 'first', true)])).toMatchObject([
      { ok: true, value: { first: 2 } },
      { ok: true, value: { first: 1 } },
    ])
    expect(count(database)).toBe(3)
  })

  it('`tidy()` keeps the log bounded, and does without while a reader holds an old snapshot', () => {
    const path = join(temporaryDirectory(), 'journal.sqlite')
    const { writer } = writerOn(path)
    writer.answer([append(1, 'a', 'first', true)])
    const fill = (batches: number): number => {
      for (let n = 0; n < batches; n++) {
        writer.answer([append(n, 'a', 'x'.repeat(40_000))])
        while (writer.tidy());
      }
      return statSync(`${path}-wal`).size
    }
    expect(fill(1000)).toBeLessThan(8 * 1024 * 1024)
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM records').get()
    const grown = fill(400)
    expect(grown).toBeGreaterThan(16 * 1024 * 1024)
    reader.close()
    expect(fill(1000)).toBeLessThan(grown + 8 * 1024 * 1024)
  })
})

describe('StoreClient', () => {
  it('rejects what a dead thread leaves unanswered, and starts another for the next call', async () => {
    const path = join(temporaryDirectory(), 'journal.sqlite')
    const entry = new URL('../fixtures/journal/mortal-writer-thread.ts', import.meta.url)
    const client = new StoreClient<WriterCalls>(entry, { path, busyTimeoutMs: 100 })
    onTestFinished(() => client.close())
    await client.start()
    const request = { session: 'a', at: 1, records: [], create: { tenant, labels: {} } }
    await client.call('append', request)
    const lost = await Promise.allSettled([
      client.call('release', { scope: 'die', key: 'now' }),
      client.call('append', { ...request, session: 'b' }),
    ])
    for (const result of lost)
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { code: 'storage_unavailable', message: expect.stringContaining('told to die') },
      })
    const { create: _, ...known } = request
    expect(await client.call('append', known)).toMatchObject({ committed: true, first: 1 })
    await client.close()
    await expect(client.call('append', known)).rejects.toMatchObject({ code: 'storage_unavailable' })
  })

  it('rejects every call when the store cannot be opened', async () => {
    const entry = new URL('../../src/journal/sqlite/writer-thread.ts', import.meta.url)
    const client = new StoreClient<WriterCalls>(entry, {
      path: join(temporaryDirectory(), 'no/such'),
      busyTimeoutMs: 1,
    })
    const call = client.call('release', { scope: 's', key: 'k' })
    await expect(call).rejects.toMatchObject({ code: 'storage_unavailable' })
    await expect(client.start()).rejects.toMatchObject({ code: 'storage_unavailable' })
    await client.close()
  })
})
