import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'

const child = new URL('../fixtures/journal/append-under-load.ts', import.meta.url).pathname

it('`openSqliteJournal()` is refused while another process has the directory, and not after that one was killed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const other = spawn(process.execPath, [child, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(other, 'exit')
  await once(other.stdout, 'data')
  await expect(openSqliteJournal({ directory, limits: defaultLimits })).rejects.toMatchObject({
    code: 'storage_unavailable',
    message: expect.stringContaining(`${JSON.stringify(directory)}: another server uses it`),
  })
  other.kill('SIGKILL')
  await exit
  const journal = await openSqliteJournal({ directory, limits: defaultLimits })
  await journal[Symbol.asyncDispose]()
})
