import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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
import { backupDataDirectory } from '../../src/archive/backup.ts'
import { archiveJournal } from '../../src/compose.ts'
import { defaultLimits } from '../../src/contract/limits.ts'
import { newSessionId, type SessionId, type TenantId } from '../../src/kernel/ids.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { event } from '../contract/journal-contract.ts'
import { HostClient } from '../support/host-client.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { startServer, TestServer, TestSession } from '../support/server.ts'

const program = join(import.meta.dirname, '../../src/cli/brain.ts')
const under_load = new URL('../fixtures/journal/append-under-load.ts', import.meta.url).pathname
const args = (...rest: string[]): string[] => ['--disable-warning=ExperimentalWarning', program, ...rest]
const databaseIn = (directory: string): string => join(directory, 'journal/journal.sqlite')

type Outcome = { readonly code: number; readonly out: string; readonly err: string }

const brain = (...rest: string[]): Promise<Outcome> => brainWith({}, ...rest)

function brainWith(env: Readonly<Record<string, string>>, ...rest: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, args(...rest), { env: { ...process.env, ...env } }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    )
  })
}

/** Waits until a session has so many records of a kind. */
async function until(session: TestSession, kind: string, count = 1): Promise<void> {
  const has = async (): Promise<boolean> =>
    (await session.records()).filter(({ event_type: type }) => type === kind).length >= count
  await vi.waitUntil(has, { timeout: 20_000, interval: 20 })
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'brain-backup-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

const backup = (source: string, target: string): ReturnType<typeof backupDataDirectory> =>
  backupDataDirectory({
    source,
    target,
    journal: archiveJournal,
    onStep: () => {},
    onDetail: () => {},
    signal: new AbortController().signal,
  })

/** A closed journal with one session of 60 records. */
async function smallJournal(directory: string): Promise<void> {
  await using journal = await openSqliteJournal({ directory, limits: defaultLimits })
  const records = Array.from({ length: 60 }, (_, n) => event(`${n} ${'q'.repeat(1000)}`))
  await journal.append({ session: newSessionId(), create: { tenant: 'local' as TenantId, labels: {} }, records })
}

describe('`brain backup`', () => {
  it('copies a running server; one on the copy, with a session of `brain export` and `brain import`, goes on with all of it', async () => {
    await using server = await startServer()
    const called = { name: 'tool', input: { text: 'a b' } }
    const session = await server.sessionWith('wordcount', {
      script: [{ text: 'looking', tool_calls: [called, { ...called, input: {} }] }, { text: 'done' }],
    })
    await session.put('notes/a.txt', 'one two three')
    await session.send('hello')
    const before = await session.value({ text: 'one two three' })
    const host = await HostClient.register(server)
    const stream = await host.connect()
    const hosted = await host.session()
    await until(session, 'turn_ended')
    const place = temporaryDirectory()
    const directory = join(place, 'copy')
    const from = ['--data-dir', join(server.directory, 'data')]

    const done = await brain('backup', directory, ...from, '--json')
    expect(done).toMatchObject({ code: 0, err: '' })
    const [records, hostedRecords] = [await session.records(), await hosted.records()]
    expect(JSON.parse(done.out)).toMatchObject({
      directory,
      sessions: 2,
      records: records.length + hostedRecords.length,
    })
    expect(readdirSync(directory).toSorted()).toEqual([
      'components',
      'credentials',
      'hosts',
      'journal',
      'native-workspaces',
    ])
    for (const path of ['', 'journal', 'credentials', 'hosts'])
      expect(statSync(join(directory, path)).mode & 0o777, path).toBe(0o700)
    for (const path of ['journal/journal.sqlite', 'credentials/secret-key', `hosts/${host.id}.json`])
      expect(statSync(join(directory, path)).mode & 0o777, path).toBe(0o600)
    // What comes after it is not in it.
    await session.send('again')
    expect((await session.records()).length).toBeGreaterThan(records.length)

    const later = await server.sessionWith('wordcount', { script: [{ text: 'later' }] })
    expect(await later.value({ text: 'one two three' })).toEqual(before)
    const file = join(place, 'session.jsonl')
    expect(await brain('export', later.id, ...from, '--out', file)).toEqual({ code: 0, out: '', err: '' })
    const laterRecords = await later.records()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain('secret-model-key')
    await server.kill('SIGTERM')
    await stream.ended
    const key = { MODEL_KEY: 'another-key' }
    const imported = await brainWith(key, 'import', file, '--data-dir', directory, '--api-key-env', 'MODEL_KEY')
    const said = `session ${later.id}: ${laterRecords.length} records, idle\n`
    expect(imported).toEqual({ code: 0, out: said, err: '' })

    await using restored = new TestServer(temporaryDirectory(), { BRAIN_DATA_DIR: directory })
    await restored.start()
    // The token opens the host there too, and its sessions call it.
    const moving = new HostClient(restored, { host_id: host.id, token: host.token })
    const commands = await moving.connect()
    const calling = new TestSession(restored, hosted.id, hosted.tool).call({}, { wait: 'finished' })
    await moving.finish(await commands.command(), 'moved')
    expect((await calling).results).toMatchObject([{ output: 'moved' }])
    commands.close()
    const same = new TestSession(restored, session.id, session.tool)
    const moved = new TestSession(restored, later.id, later.tool)
    expect(await same.records()).toEqual(records)
    expect(await moved.records()).toEqual(laterRecords)
    expect((await same.file('notes/a.txt')).text).toBe('one two three')
    for (const each of [same, moved]) {
      expect(await each.value({ text: 'one two three' })).toEqual(before)
      const turns = (await each.records()).filter(({ event_type: type }) => type === 'turn_ended').length
      expect((await each.send('go on')).status).toBe(200)
      await until(each, 'turn_ended', turns + 1)
      expectSoundJournal(await each.records())
    }
  })

  it('of a journal that is written all the time has every record that was acknowledged before it', async () => {
    const directory = temporaryDirectory()
    const writer = spawn(process.execPath, [under_load, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void writer.kill('SIGKILL'))
    const acknowledged = new Map<string, number>()
    let rest = ''
    const hear = (text: string): void => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { session, sequence } = JSON.parse(line) as { session?: string; sequence?: number }
        if (session !== undefined && sequence !== undefined) acknowledged.set(session, sequence)
      }
    }
    writer.stdout.setEncoding('utf8').on('data', hear)
    while (acknowledged.size < 8) await once(writer.stdout, 'data')
    const target = join(temporaryDirectory(), 'copy')
    const atStart = new Map(acknowledged)
    expect(await brain('backup', target, '--data-dir', directory)).toMatchObject({ code: 0, err: '' })
    writer.kill('SIGKILL')
    using snapshot = archiveJournal.openIn(target)
    for (const [id, sequence] of atStart) {
      const { lastSequence = 0 } = snapshot.session(id as SessionId) ?? {}
      expect(lastSequence).toBeGreaterThanOrEqual(sequence)
      expect([...snapshot.records(id as SessionId)]).toHaveLength(lastSequence)
    }
  })

  it('never overwrites, and refuses what is no data directory or lies in it, leaving nothing behind', async () => {
    const [directory, place] = [temporaryDirectory(), temporaryDirectory()]
    await smallJournal(directory)
    const there = join(place, 'there')
    mkdirSync(there)
    const cases: readonly (readonly [target: string, source: string, message: string])[] = [
      [there, directory, 'it is there, and nothing is overwritten; choose a name that is not in use'],
      [join(place, 'new'), place, 'there is no journal/journal.sqlite in it; name the data directory of the server'],
      [join(directory, 'inside'), directory, 'it lies in the data directory itself; choose a place outside of it'],
      [join(place, 'no/such'), directory, 'ENOENT'],
    ]
    for (const [target, source, message] of cases) await expect(backup(source, target)).rejects.toThrow(message)
    const { code, out, err } = await brain('backup', there, '--data-dir', directory)
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(
      `Cannot write the backup ${JSON.stringify(there)}: it is there, and nothing is overwritten; choose a name that is not in use\n`,
    )
    expect(readdirSync(place)).toEqual(['there'])
    expect(readdirSync(there)).toEqual([])
    expect(readdirSync(directory).toSorted()).toEqual(['journal', 'lock.sqlite'])
  })

  it('of a damaged journal fails, names the damage, and leaves nothing behind', async () => {
    const [directory, place] = [temporaryDirectory(), temporaryDirectory()]
    await smallJournal(directory)
    const database = new DatabaseSync(databaseIn(directory))
    database.exec('DELETE FROM records WHERE id & 0xffffffff = 7')
    database.close()
    await expect(backup(directory, join(place, 'copy'))).rejects.toThrow(
      /^Cannot vouch for the journal ".*": it is damaged: session "ses_\w+" has 59 of 60 records$/,
    )
    expect(readdirSync(place)).toEqual([])
  })

  it('copies links of guests as links, and reads nothing outside', async () => {
    const [directory, place] = [temporaryDirectory(), temporaryDirectory()]
    await smallJournal(directory)
    const workspace = join(directory, 'native-workspaces/ses_x/box')
    mkdirSync(workspace, { recursive: true })
    symlinkSync('/etc/passwd', join(workspace, 'link'))
    symlinkSync('/etc', join(workspace, 'directory'))
    execFileSync('mkfifo', [join(workspace, 'pipe')])
    writeFileSync(join(workspace, 'program'), '#!')
    chmodSync(join(workspace, 'program'), 0o750)
    const copy = join(place, 'copy')
    expect(await backup(directory, copy)).toMatchObject({ sessions: 1, records: 60, files: 1, bytes: 2 })
    const listed = execFileSync('find', ['native-workspaces', '-type', 'l', '-printf', '%p %l\n'], { cwd: copy })
    expect(listed.toString().trim().split('\n').toSorted()).toEqual([
      'native-workspaces/ses_x/box/directory /etc',
      'native-workspaces/ses_x/box/link /etc/passwd',
    ])
    expect(existsSync(join(copy, 'native-workspaces/ses_x/box/pipe'))).toBe(false)
    expect(statSync(join(copy, 'native-workspaces/ses_x/box/program')).mode & 0o777).toBe(0o750)
    expect(readFileSync(join(copy, 'native-workspaces/ses_x/box/program'), 'utf8')).toBe('#!')
  })

  it('that is stopped takes away what it had made', async () => {
    const [directory, place] = [temporaryDirectory(), temporaryDirectory()]
    await smallJournal(directory)
    mkdirSync(join(directory, 'components'))
    // A file that never ends keeps the copy at work until the signal comes.
    execFileSync('truncate', ['-s', '4G', join(directory, 'components/endless')])
    const child = spawn(process.execPath, args('backup', join(place, 'copy'), '--data-dir', directory), {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    while (!existsSync(join(place, 'copy.partial/components'))) await new Promise((resolve) => setTimeout(resolve, 5))
    child.kill('SIGINT')
    const [code] = (await once(child, 'exit')) as [number]
    expect([code, err]).toEqual([1, 'Cannot finish the backup: stopped by SIGINT; nothing of it is left\n'])
    expect(readdirSync(place)).toEqual([])
  })
})
