import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadScripts } from '../../src/sandbox/bundle.ts'
import type { LaunchOrder } from '../../src/sandbox/launch/launcher.ts'
import { BOOT, bootMessage, BOX_NODE_FLAGS } from '../../src/sandbox/launch/node-flags.ts'
import { probeLevel } from '../../src/sandbox/level.ts'
import { spawnConnected } from '../../src/sandbox/wire/spawn-connected.ts'

/** Never run without a box: they would end the test, or its machine. */
const HARMFUL = ['kill the parent (TERM)', 'kill the process group', 'kill everything', 'execve', 'set a priority']
/** Succeed within a process without the flags, and stay in it. */
const INNER = ['worker', 'worker without flags', 'worker with NODE_OPTIONS', 'inspector']

const guest = new URL('../fixtures/hostile-guest.js', import.meta.url)
const runner = new URL('attack-run.ts', import.meta.url)

let server: http.Server
let abstract: net.Server
let port = 0
beforeAll(async () => {
  server = http.createServer((_request, response) => response.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  port = typeof address === 'object' && address !== null ? address.port : 0
  abstract = net.createServer().listen(`\0brain-${port}`)
  await once(abstract, 'listening')
})
afterAll(() => {
  server.close()
  abstract.close()
})

/** A directory that everybody may write, with what the guest attacks in it, and a socket that listens. */
async function prepare(): Promise<{ readonly dir: string } & AsyncDisposable> {
  const dir = mkdtempSync(join(tmpdir(), 'brain-attack-'))
  chmodSync(dir, 0o777)
  for (const name of ['unlink', 'rename', 'chmod', 'truncate', 'link', 'x.mjs', 'x.json']) {
    writeFileSync(join(dir, name), name.endsWith('json') ? '{}' : '')
    chmodSync(join(dir, name), 0o666)
  }
  const socket = net.createServer().listen(join(dir, 'sock'))
  await once(socket, 'listening')
  chmodSync(join(dir, 'sock'), 0o777)
  return {
    dir,
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

type Outcome = Readonly<Record<string, string>>

async function control(): Promise<Outcome> {
  await using target = await prepare()
  const skip = [...HARMFUL, ...INNER]
  const source = readFileSync(guest, 'utf8').replace(
    'T = TARGET',
    `T = ${JSON.stringify({ dir: target.dir, port, pid: process.pid, skip })}`,
  )
  const script = join(target.dir, 'control.mjs')
  writeFileSync(
    script,
    `${source}\nconst { run } = await instantiate()\nprocess.stdout.write(run(), () => process.exit())\n`,
  )
  const child = spawn(process.execPath, ['--no-warnings', '--expose-gc', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const piece of child.stdout) text += String(piece)
  return JSON.parse(text) as Outcome
}

async function boxed(uid: number | undefined): Promise<Outcome> {
  await using target = await prepare()
  const data = join(target.dir, 'tmp')
  mkdirSync(data)
  chmodSync(data, 0o777)
  const child = spawn(process.execPath, ['--no-warnings', runner.pathname, target.dir, String(port)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { TMPDIR: data, PATH: '/usr/bin:/bin' },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
  const end = JSON.parse(readFileSync(join(target.dir, 'outcome.json'), 'utf8')) as { type: string; text: string }
  expect(end).toMatchObject({ type: 'returned' })
  return JSON.parse(end.text) as Outcome
}

const NOBODY = 65_534
const users: readonly (readonly [string, number | undefined])[] =
  process.getuid?.() === 0
    ? [
        ['root', undefined],
        ['an ordinary user', NOBODY],
      ]
    : [['an ordinary user', undefined]]

/** In a box whose Node has no `--permission`: what the operating system denies by itself. */
async function boxedByTheSystemAlone(): Promise<Outcome> {
  await using target = await prepare()
  const skip = [...INNER, 'import a file', 'eval', 'new Function', 'ffi', 'gc of the runtime']
  const source = readFileSync(guest, 'utf8')
    .replace('T = TARGET', `T = ${JSON.stringify({ dir: target.dir, port, pid: process.pid, skip })}`)
    .replace('export async function', 'async function')
  const program = `${source}\ninstantiate().then(({ run }) => { fs.writeSync(3, run()); process.exit() })`
  const { launcher } = await loadScripts()
  const order: LaunchOrder = {
    parent: process.pid,
    uid: process.getuid?.() === 0 ? 61_184 : 0,
    abi: probeLevel().landlockAbi,
    dataBytes: 1024 ** 3,
    cpuSecs: 30,
    args: [...BOX_NODE_FLAGS.filter((flag) => flag !== '--permission'), '-e', BOOT],
  }
  let text = ''
  const closed = Promise.withResolvers<void>()
  const ignored = { onBytes: () => {} }
  const { channels } = spawnConnected(
    ['--no-warnings', '-e', BOOT, JSON.stringify(order)],
    ['ignore', ignored, ignored, { onBytes: (bytes) => (text += bytes.toString()), onClose: closed.resolve }],
  )
  channels[2]!.write(Buffer.concat([bootMessage(launcher), bootMessage(Buffer.from(program))]))
  await closed.promise
  return JSON.parse(text) as Outcome
}

describe('hostile JavaScript in a box', () => {
  it('gets nothing past the operating system even where the flags of Node are not there', async () => {
    const [free, box] = [await control(), await boxedByTheSystemAlone()]
    const real = Object.keys(box).filter((name) => free[name] === 'THROUGH')
    expect(real.length).toBeGreaterThanOrEqual(36)
    expect(Object.keys(box).filter((name) => box[name] === 'THROUGH')).toEqual([])
  })

  it.each(users)('of %s gets nothing of what succeeds without a box', async (_name, uid) => {
    const [free, box] = [await control(), await boxed(uid)]
    const real = Object.keys(free).filter((name) => free[name] === 'THROUGH')
    // Only an attack that succeeds without a box proves something when it fails in one.
    expect(real.length).toBeGreaterThanOrEqual(40)
    expect(real.filter((name) => box[name] === undefined)).toEqual([])
    expect(Object.keys(box).filter((name) => box[name] === 'THROUGH')).toEqual([])
    for (const name of [...HARMFUL, ...INNER]) expect([name, typeof box[name]]).toEqual([name, 'string'])
  })
})
