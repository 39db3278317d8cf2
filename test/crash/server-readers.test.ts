import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'
import { soakOr } from '../support/soak.ts'

const SESSIONS = 50
const EMITS = soakOr(40, 8)
/** Calls at once: each needs a box of its own. */
const LANES = 6
const HOLDER = new URL('../fixtures/journal/hold-snapshot.ts', import.meta.url).pathname

const STEPS = [
  ...Array.from({ length: EMITS }, (_, n) => ({ do: 'emit', kind: 'n', payload: { n, text: 'x'.repeat(500) } })),
  { do: 'finish', outcome: { status: 'ok', value: '$log' } },
]

/** Has every session's tool emit, some at a time; `onDone` is told of each one. */
async function emitAll(sessions: readonly TestSession[], onDone: (log: readonly any[]) => void): Promise<void> {
  const left = [...sessions]
  const lane = async (): Promise<void> => {
    for (let session = left.pop(); session !== undefined; session = left.pop())
      onDone(await session.value({ steps: STEPS }, { deadlineMs: 60_000 }))
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** Lists sessions and reads their events until told to stop. @returns how often */
async function readAlong(server: TestServer, sessions: readonly TestSession[], signal: AbortSignal): Promise<number> {
  let count = 0
  for (; !signal.aborted; count++) {
    const session = sessions[count % sessions.length]
    const [list, page] = await Promise.all([server.get('/v1/sessions'), server.get(`${session?.path}/events`)])
    expect([list.status, page.status]).toEqual([200, 200])
  }
  return count
}

it('no emission of fifty sessions is refused for readers, and after kill -9 all that was acknowledged is there (cases D-19)', async () => {
  await using server = await startServer({ BRAIN_MAX_SESSION_EXECUTIONS: '8' })
  const id = await server.admit(await fixture('outcomes'))
  const tools = [{ name: 'outcomes', id }]
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => server.session(tools)))

  const holder = spawn(process.execPath, [HOLDER, join(server.directory, 'data/journal/journal.sqlite')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void holder.kill('SIGKILL'))
  await once(createInterface({ input: holder.stdout }), 'line')

  const over = new AbortController()
  const reading = readAlong(server, sessions, over.signal)
  let emitted = 0
  await emitAll(sessions, (log) => {
    expect(log.filter((answer) => typeof answer.sequence === 'number')).toHaveLength(EMITS)
    emitted += EMITS
  }).finally(() => over.abort())
  expect(emitted).toBe(SESSIONS * EMITS)
  expect(await reading).toBeGreaterThan(0)

  const before = await Promise.all(sessions.map((session) => session.records()))
  let isKilled = false
  const cut = emitAll(sessions, () => undefined).catch((error: unknown) => {
    if (!isKilled) throw error
  })
  const grown = async (): Promise<number> => (await sessions.at(-1)?.records())?.length ?? 0
  await expect.poll(grown, { timeout: 20_000 }).toBeGreaterThan((before.at(-1)?.length ?? 0) + 5)
  isKilled = true
  await server.kill('SIGKILL')
  await cut
  await server.start()
  for (const [index, session] of sessions.entries()) {
    const records = await session.records()
    expectSoundJournal(records)
    expect(records.slice(0, before[index]?.length)).toEqual(before[index])
  }
})
