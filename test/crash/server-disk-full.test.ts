import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { TestServer } from '../support/server.ts'

const main = join(import.meta.dirname, '../../src/main.ts')

/** A server whose files may be kept from growing: what is over the limit is an error then, and no signal. */
async function start(directory: string) {
  const data = join(directory, 'data')
  const child = spawn(
    'sh',
    ['-c', `trap '' XFSZ; exec "$0" "$@"`, process.execPath, '--disable-warning=ExperimentalWarning', main],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'] ?? '',
        BRAIN_LISTEN: '127.0.0.1:0',
        BRAIN_DATA_DIR: data,
        BRAIN_SCRIPTED_MODEL: '1',
        BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace,scratch',
        BRAIN_LOG_LEVEL: 'silent',
      },
    },
  )
  onTestFinished(async () => {
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const url = /listens on (http:\S+?),/.exec(String(line))?.[1] ?? ''
  const limit = (bytes: number | 'unlimited'): void =>
    void execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:`])
  return {
    server: Object.assign(new TestServer(directory, {}), { url }),
    limit,
    log: join(data, 'journal/journal.sqlite-wal'),
  }
}

it('a server whose disk is full refuses work, says so, reads on, and is ready again without a restart or a request', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'brain-full-'))
  const { server, limit, log } = await start(directory)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = await server.session([], { script: [{ text: 'hello' }] })
  expect((await server.get('/health/ready')).status).toBe(204)
  const before = await session.records()
  limit(statSync(log).size)
  const refused = await session.send('x'.repeat(50_000))
  expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable'])
  expect(refused.body.message).toContain('; ')
  expect((await server.get('/health/ready')).status).toBe(503)
  expect((await server.get('/health/ready?verbose')).body.journal).toMatchObject({ state: 'degraded' })
  expect(await session.records()).toEqual(before)
  limit('unlimited')
  await vi.waitUntil(async () => (await server.get('/health/ready')).status === 204, { timeout: 20_000 })
  expect((await session.send('again')).status).toBe(200)
  await vi.waitUntil(async () => (await session.records()).some(({ event_type: type }) => type === 'turn_ended'))
  expectSoundJournal(await session.records())
})
