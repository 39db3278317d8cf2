import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import { newSessionId, type SessionId, type TenantId } from '../../src/kernel/ids.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { event, everything } from '../contract/journal-contract.ts'

const SESSIONS = 50
const APPENDS = 40
const holder = new URL('../fixtures/journal/hold-snapshot.ts', import.meta.url).pathname

it('`append()` is never refused for readers, be they ours or a process with a long read transaction (D-19)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  const journal = await openSqliteJournal({ directory, limits: defaultLimits })
  onTestFinished(async () => {
    await journal[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true })
  })
  const create = { tenant: 'local' as TenantId, labels: {} }
  const sessions = Array.from({ length: SESSIONS }, newSessionId)
  await Promise.all(sessions.map((session) => journal.append({ session, create, records: [event(0)] })))

  const reader = spawn(process.execPath, [holder, join(directory, 'journal/journal.sqlite')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void reader.kill('SIGKILL'))
  const said = createInterface({ input: reader.stdout })[Symbol.asyncIterator]()
  expect((await said.next()).value).toBe(`held ${SESSIONS}`)

  let writing = true
  let listed = 0
  const listing = (async () => {
    while (writing) {
      const rows = await journal.sessions({})
      const { records } = await journal.page(sessions[listed++ % SESSIONS]!, 0, everything)
      expect(rows).toHaveLength(SESSIONS)
      expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, index) => index + 1))
    }
  })()
  const emit = async (session: SessionId): Promise<void> => {
    for (let n = 1; n <= APPENDS; n++)
      expect(await journal.append({ session, records: [event('x'.repeat(2000))] })).toMatchObject({
        committed: true,
        records: [{ sequence: n + 1 }],
      })
  }
  await Promise.all(sessions.map(emit))
  writing = false
  await listing
  expect(listed).toBeGreaterThan(0)
  expect(journal.health()).toEqual({ state: 'ok' })
  for (const session of sessions) expect(await journal.session(session)).toMatchObject({ lastSequence: APPENDS + 1 })

  reader.stdin.end()
  expect((await said.next()).value).toBe(`still ${SESSIONS}`)
  await once(reader, 'exit')
})
