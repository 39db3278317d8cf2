import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import type { SessionId } from '../../src/kernel/ids.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { everything } from '../contract/journal-contract.ts'

const child = new URL('../fixtures/journal/append-on-demand.ts', import.meta.url).pathname
const RECORD_BYTES = 50_000

type Answer = { readonly sequence?: number; readonly code?: string; readonly message?: string; readonly health: string }

async function ask(process_: ChildProcess, length: number): Promise<Answer> {
  const answered = once(process_, 'message')
  process_.send(length)
  return (await answered)[0] as Answer
}

/** Appends until the disk refuses, mends it, appends again, and compares with what is found by another process then. */
async function fillAndMend(directory: string, process_: ChildProcess, mend: () => void): Promise<void> {
  const [{ session }] = (await once(process_, 'message')) as [{ session: SessionId }]
  let last = 0
  let answer = await ask(process_, RECORD_BYTES)
  while (answer.sequence !== undefined) {
    expect(answer).toEqual({ sequence: ++last, health: 'ok' })
    expect(last).toBeLessThan(1000)
    answer = await ask(process_, RECORD_BYTES)
  }
  expect(last).toBeGreaterThan(5)
  for (let n = 0; n < 20; n++) {
    expect(answer).toMatchObject({ code: 'storage_unavailable', health: 'degraded' })
    answer = await ask(process_, RECORD_BYTES)
  }
  mend()
  expect(await ask(process_, RECORD_BYTES)).toEqual({ sequence: last + 1, health: 'ok' })
  const exit = once(process_, 'exit')
  process_.disconnect()
  await exit

  const journal = await openSqliteJournal({ directory, limits: defaultLimits })
  const { records } = await journal.page(session, 0, everything)
  expect(records.map(({ sequence }) => sequence)).toEqual(Array.from({ length: last + 1 }, (_, n) => n + 1))
  expect(records.every(({ data }) => data === 'x'.repeat(RECORD_BYTES))).toBe(true)
  expect(await journal.session(session)).toMatchObject({ lastSequence: last + 1 })
  await journal[Symbol.asyncDispose]()
}

function start(command: string, args: readonly string[]): ChildProcess {
  const process_ = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  onTestFinished(() => void process_.kill('SIGKILL'))
  return process_
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

it('J4 `append()` that may not grow its file is refused, loses nothing and recovers', async () => {
  const directory = temporaryDirectory()
  const script = `trap '' XFSZ; ulimit -S -f 4000; exec "$0" "$@"`
  const process_ = start('sh', ['-c', script, process.execPath, child, directory])
  await fillAndMend(directory, process_, () => {
    execFileSync('prlimit', ['--pid', String(process_.pid), '--fsize=unlimited:'])
  })
})

/** A small file system; undefined where it cannot be mounted. */
function mountSmall(): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'brain-test', directory], { stdio: 'pipe' })
    return directory
  } catch {
    rmSync(directory, { recursive: true })
    return undefined
  }
}

const small = mountSmall()
if (small === undefined)
  process.stderr.write('journal-disk-full: NOT TESTED on a full file system: that needs root, to mount a tmpfs\n')
afterAll(() => {
  if (small === undefined) return
  execFileSync('umount', ['-l', small])
  rmSync(small, { recursive: true })
})

// What a machine cannot do is no test there, rather than a skipped one.
if (small !== undefined)
  it('J4 `append()` on a full disk is refused, loses nothing and recovers', async () => {
    const process_ = start(process.execPath, [child, small])
    await fillAndMend(small, process_, () => {
      execFileSync('mount', ['-o', 'remount,size=64m', small])
    })
  })
