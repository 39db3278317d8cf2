import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, TestServer } from '../support/server.ts'

/** A data directory whose call logs have a file system of their own; undefined where it cannot be mounted. */
function mountLogs(): { readonly directory: string; readonly logs: string } | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'brain-test-'))
  const logs = join(directory, 'data/call-logs')
  mkdirSync(logs, { recursive: true, mode: 0o700 })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k,mode=700', 'brain-test', logs], { stdio: 'pipe' })
    return { directory, logs }
  } catch {
    rmSync(directory, { recursive: true })
    return undefined
  }
}

const mounted = mountLogs()
if (mounted === undefined)
  process.stderr.write('call-log-disk-full: NOT TESTED on a full file system: that needs root, to mount a tmpfs\n')
afterAll(() => {
  if (mounted === undefined) return
  execFileSync('umount', ['-l', mounted.logs])
  rmSync(mounted.directory, { recursive: true, force: true })
})

// What a machine cannot do is no test there, rather than a skipped one.
if (mounted !== undefined)
  it('a call whose log finds no room ends as it would, leaves no half of a log, and the next log is whole', async () => {
    const { directory, logs } = mounted
    const junk = join(logs, 'junk')
    const server = new TestServer(directory, {})
    await server.start()
    try {
      const id = await server.admit(await fixture('outcomes'))
      const session = await server.session([{ name: 'outcomes', id }])
      const text = 'a line of a guest'.repeat(2000)
      const steps = [
        { do: 'print', text },
        { do: 'finish', outcome: { status: 'ok', value: 1 } },
      ]
      // Just before it is used: the server sweeps away directories that are empty.
      mkdirSync(junk)
      expect(() => writeFileSync(join(junk, 'all'), Buffer.alloc(256 * 1024))).toThrow('ENOSPC')
      const answer = await session.call({ steps }, { wait: 'finished' })
      expect(answer.outcome).toEqual({ status: 'ok', value: null })
      await expect.poll(() => server.log).toContain('ENOSPC')
      const { status, body } = await session.log(answer.sequence)
      expect([status, body]).toEqual([200, { stdout: '', stderr: '', telemetry: [], warnings: [] }])
      expect((await server.get('/health/ready')).status).toBe(204)
      rmSync(join(junk, 'all'))
      const next = await session.call({ steps }, { wait: 'finished' })
      const log = await session.logWhen(next.sequence, ({ stdout }) => stdout !== '')
      expect(log.stdout).toContain(text)
      expect(readdirSync(join(logs, session.id))).toEqual([`${next.sequence}.json`])
      expectSoundJournal(await session.records())
    } finally {
      await server.kill()
    }
  })
