import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import type { SessionId } from '../../src/kernel/ids.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { everything } from '../contract/journal-contract.ts'
import { soakOr } from '../support/soak.ts'

const TRIALS = soakOr(20, 6)
const child = new URL('../fixtures/journal/append-under-load.ts', import.meta.url).pathname

/** mulberry32: the moments of a run come back with its seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

type Told = {
  readonly ready?: true
  readonly session: SessionId
  readonly created?: true
  readonly sequence: number
  readonly n: number
}

/**
 * Runs the child on the directory, kills it `afterMs` after its journal is open and not before it had been told more than
 * `least` answers, and gives all of them back.
 */
async function killedRun(directory: string, afterMs: number, least: number): Promise<readonly Told[]> {
  const process_ = spawn(process.execPath, [child, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const told: Told[] = []
  const lines = createInterface({ input: process_.stdout })
  const closed = once(process_, 'close')
  const ready = Promise.withResolvers<void>()
  const enough = Promise.withResolvers<void>()
  if (least === 0) enough.resolve()
  lines.on('line', (line) => {
    // The last line may be cut: then the answer did not reach anybody.
    if (!line.endsWith('}')) return
    const said = JSON.parse(line) as Told
    if (said.ready) ready.resolve()
    else if (told.push(said) > least) enough.resolve()
  })
  const ended = closed.then(() => Promise.reject(new Error('the child ended by itself')))
  ended.catch(() => undefined)
  await Promise.race([ready.promise, ended])
  await sleep(afterMs)
  await Promise.race([enough.promise, ended])
  process_.kill('SIGKILL')
  await closed
  return told
}

async function verify(journal: Journal, told: readonly Told[]): Promise<number> {
  let records = 0
  const acknowledged = Map.groupBy(told, ({ session }) => session)
  for (const [session, answers] of acknowledged) {
    const row = await journal.session(session)
    const page = await journal.page(session, 0, everything)
    records += page.records.length
    expect(page.records.map(({ sequence }) => sequence)).toEqual(page.records.map((_, index) => index + 1))
    expect(row?.lastSequence).toBe(page.records.length)
    expect(row?.labels).toEqual({ session })
    // The child counts as the journal does, so what is there tells what must be.
    expect(page.records.map(({ data }) => (data as { n: number }).n)).toEqual(page.records.map((_, index) => index + 1))
    expect(row?.status).toBe(page.records.length % 2 === 1 ? 'running' : 'idle')
    expect(page.records.length).toBeGreaterThanOrEqual(Math.max(0, ...answers.map(({ sequence }) => sequence ?? 0)))
    for (let n = 1; n <= page.records.length + 2; n += 2) {
      const claimed = await journal.claimed({ scope: session, key: `key ${n}` })
      const answer = { type: 'body', status: 200, body: `answer ${n}` }
      if (n > page.records.length) expect(claimed).toBeUndefined()
      else if (n === page.records.length) expect(claimed).toEqual({ state: 'open', digest: 'd' })
      else expect(claimed).toEqual({ state: 'answered', digest: 'd', answer })
    }
  }
  return records
}

it(`J1 J2 J3 J6 J7: everything acknowledged is there after SIGKILL, ${TRIALS} times at random moments`, async () => {
  const seed = Number(process.env['BRAIN_TEST_SEED'] ?? Date.now() % 1_000_000)
  process.stdout.write(`journal-sigkill: seed ${seed} (set BRAIN_TEST_SEED to repeat)\n`)
  const random = randomFrom(seed)
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const told: Told[] = []
  let acknowledged = 0
  for (let trial = 0; trial < TRIALS; trial++) {
    // All moments may be early, on a slow machine all the more: the last comes after many answers.
    const least = trial === TRIALS - 1 ? TRIALS * 8 : 0
    const now = await killedRun(directory, Math.floor(random() ** 2 * 250), least)
    told.push(...now)
    const journal = await openSqliteJournal({ directory, limits: defaultLimits })
    await verify(journal, now)
    await journal[Symbol.asyncDispose]()
    acknowledged += now.length
  }
  const journal = await openSqliteJournal({ directory, limits: defaultLimits })
  onTestFinished(() => journal[Symbol.asyncDispose]())
  const records = await verify(journal, told)
  process.stdout.write(`journal-sigkill: ${acknowledged} answers acknowledged, ${records} records found\n`)
  expect(acknowledged).toBeGreaterThan(TRIALS * 8)
})
