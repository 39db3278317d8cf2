import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
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
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FileBroker } from '../../src/sandbox/supervisor/files/broker.ts'
import { resolveByKernel, resolveByWalk } from '../../src/sandbox/supervisor/files/resolve.ts'
import { Workspaces } from '../../src/sandbox/supervisor/files/workspaces.ts'
import {
  clientOf,
  CREATE,
  DIRECTORY,
  EXCLUSIVE,
  FOLLOW,
  READ,
  timespecs,
  TRUNCATE,
  WRITE,
  type Fields,
  type Op,
} from './files-client.ts'

const LIMITS = { openFiles: 16, fileOps: 1_000_000, readBytes: 1024 * 1024 }
const WORKSPACE = { workspaceBytes: 1024 * 1024, workspaceEntries: 60, scratchBytes: 64 * 1024 }
const TIMES = timespecs([1n, 0n], [2n, 0n])

// The whole suite for both ways of resolving a path: what the fallback lets through would be found here.
describe.each([
  ['openat2', resolveByKernel],
  ['walk', resolveByWalk],
])('file broker against attacks, paths by %s', (_name, resolve) => {
  let base: string
  let root: string
  let workspaces: Workspaces
  let brokers: FileBroker[]

  const grant = (write: boolean) => {
    const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: 'ses/env', write }], {}, 0)
    const broker = new FileBroker(mounts, LIMITS)
    brokers.push(broker)
    return clientOf(broker)
  }

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'brain-files-'))
    root = `${base}/data/native-workspaces/ses/env`
    mkdirSync(`${root}/a/b`, { recursive: true })
    mkdirSync(`${base}/outside`)
    writeFileSync(`${base}/outside/secret`, 'HOST')
    writeFileSync(`${root}/in`, 'inside')
    symlinkSync('../../../../outside', `${root}/rel`)
    symlinkSync(`${base}/outside/secret`, `${root}/abs`)
    symlinkSync('../../../../outside/new', `${root}/dangling`)
    symlinkSync('in', `${root}/link`)
    symlinkSync('..', `${root}/up`)
    symlinkSync('loop', `${root}/loop`)
    linkSync(`${base}/outside/secret`, `${root}/hard`)
    execFileSync('mkfifo', [`${root}/fifo`])
    workspaces = new Workspaces(`${base}/data`, WORKSPACE, { resolve })
    brokers = []
  })

  afterEach(() => {
    for (const broker of brokers) broker.close()
    workspaces.close()
    expect(readFileSync(`${base}/outside/secret`, 'utf8')).toBe('HOST')
    expect(existsSync(`${base}/outside/new`)).toBe(false)
    rmSync(base, { recursive: true })
  })

  it.each([
    ['../outside/secret', 'not-permitted'],
    ['a/../../outside/secret', 'not-permitted'],
    ['a/b/../../../env2/x', 'not-permitted'],
    ['rel/secret', 'not-permitted'],
    ['abs', 'not-permitted'],
    ['up/env/in', 'not-permitted'],
    ['dangling', 'not-permitted'],
    ['/etc/passwd', 'not-permitted'],
    ['/', 'not-permitted'],
    ['loop', 'loop'],
    ['hard', 'not-permitted'],
    ['fifo', 'not-permitted'],
    ['a\0b', 'invalid'],
    ['a\\b', 'invalid'],
    ['', 'no-entry'],
    ['missing', 'no-entry'],
    ['in/', 'not-directory'],
    ['in/x', 'not-directory'],
    ['in/..', 'not-directory'],
    ['x'.repeat(5000), 'name-too-long'],
    ['x'.repeat(256), 'name-too-long'],
    [`${'y/'.repeat(2048)}z`, 'name-too-long'],
  ])('`open` of %.40j answers %s', (one, code) => {
    const { ask } = grant(true)
    expect(ask('OPEN', { one, bits: FOLLOW | READ }).code).toBe(code)
    if (one !== 'dangling' && one !== 'abs' && one !== 'loop')
      expect(ask('OPEN', { one, bits: READ }).code).not.toBe('ok')
    expect(ask('OPEN', { one, bits: FOLLOW | READ | WRITE | TRUNCATE }).code).not.toBe('ok')
    expect(['ok', code]).toContain(ask('STAT_AT', { one, bits: FOLLOW }).code)
  })

  it('`open` refuses a path that is not UTF-8', () => {
    const { ask } = grant(true)
    expect(ask('OPEN', { one: Buffer.from([0x61, 0xff]), bits: CREATE | WRITE }).code).toBe('illegal-byte-sequence')
    expect(ask('MAKE_DIRECTORY', { one: Buffer.from([0xed, 0xa0, 0x80]) }).code).toBe('illegal-byte-sequence')
  })

  it('opens what the grant holds, links within it and dots included', () => {
    const { must } = grant(true)
    for (const one of ['in', 'link', 'a/../in', 'a/b/../../in', './in', 'a//b/./../../link', 'up/env/in'.slice(7)]) {
      const { value } = must('OPEN', { one, bits: FOLLOW | READ })
      expect(must('READ', { handle: value, a: 100 }).data.toString()).toBe('inside')
      must('CLOSE', { handle: value })
    }
    for (const one of ['.', 'a/..', 'a/b/', 'a/.', './'])
      expect(must('OPEN', { one, bits: FOLLOW | DIRECTORY }).kind).toBe('directory')
  })

  it('a sibling whose name begins like the workspace is out of reach', () => {
    mkdirSync(`${base}/data/native-workspaces/ses/env-secret`)
    writeFileSync(`${base}/data/native-workspaces/ses/env-secret/s.txt`, 'other')
    const { ask } = grant(true)
    expect(ask('OPEN', { one: '../env-secret/s.txt', bits: FOLLOW | READ }).code).toBe('not-permitted')
    expect(ask('OPEN', { one: 'up/env-secret/s.txt', bits: FOLLOW | READ }).code).toBe('not-permitted')
  })

  it('creates nothing outside through links', () => {
    const { ask } = grant(true)
    for (const one of ['dangling', 'rel/new', 'abs', 'up/new', '../new'])
      for (const bits of [CREATE | WRITE, FOLLOW | CREATE | WRITE, FOLLOW | CREATE | EXCLUSIVE | WRITE])
        expect(ask('OPEN', { one, bits }).code).not.toBe('ok')
    for (const op of ['MAKE_DIRECTORY', 'UNLINK', 'REMOVE_DIRECTORY', 'READ_LINK', 'SET_TIMES_AT'] as const)
      expect(ask(op, { one: 'rel/secret', two: TIMES }).code).not.toBe('ok')
    expect(ask('RENAME', { one: 'in', other: 0, two: 'rel/in' }).code).toBe('not-permitted')
    expect(ask('RENAME', { one: 'rel/secret', other: 0, two: 'stolen' }).code).toBe('not-permitted')
    expect(ask('SYMLINK', { one: 'rel/x', two: 'y' }).code).toBe('not-permitted')
    expect(ask('SET_TIMES_AT', { one: 'abs', bits: FOLLOW, two: TIMES }).code).toBe('not-permitted')
  })

  it('refuses absolute links, made or read', () => {
    const { ask } = grant(true)
    expect(ask('SYMLINK', { one: 'l', two: '/etc' }).code).toBe('not-permitted')
    expect(ask('READ_LINK', { one: 'abs' }).code).toBe('not-permitted')
    expect(ask('READ_LINK', { one: 'link' }).data.toString()).toBe('in')
  })

  it('a file with a second name is neither opened, truncated nor touched', () => {
    const { ask } = grant(true)
    const before = statSync(`${base}/outside/secret`)
    for (const bits of [READ, WRITE, READ | WRITE, WRITE | TRUNCATE, READ | TRUNCATE, CREATE | WRITE | TRUNCATE])
      expect(ask('OPEN', { one: 'hard', bits }).code).toBe('not-permitted')
    for (const bits of [0, FOLLOW])
      expect(ask('SET_TIMES_AT', { one: 'hard', bits, two: TIMES }).code).toBe('not-permitted')
    expect(statSync(`${base}/outside/secret`)).toMatchObject({ mtimeMs: before.mtimeMs, size: 4 })
  })

  it('a pipe is never opened, so that nothing waits for its other end', () => {
    const { ask } = grant(true)
    for (const bits of [READ, WRITE, READ | WRITE, WRITE | TRUNCATE, FOLLOW | READ])
      expect(ask('OPEN', { one: 'fifo', bits }).code).toBe('not-permitted')
    expect(ask('STAT_AT', { one: 'fifo' }).kind).toBe('fifo')
  })

  it.each(['.', '..', 'a/.', 'a/..', './', ''])('does not remove or rename %j', (one) => {
    const { ask } = grant(true)
    for (const op of ['REMOVE_DIRECTORY', 'UNLINK'] as const)
      expect(['invalid', 'no-entry']).toContain(ask(op, { one }).code)
    expect(['invalid', 'no-entry']).toContain(ask('RENAME', { one, other: 0, two: 'z' }).code)
    expect(['invalid', 'no-entry']).toContain(ask('RENAME', { one: 'in', other: 0, two: one }).code)
    expect(statSync(root).isDirectory()).toBe(true)
  })

  it('a read grant changes nothing', () => {
    const { ask, must } = grant(false)
    const requests: [Op, Fields][] = [
      ['OPEN', { one: 'n', bits: CREATE | WRITE }],
      ['OPEN', { one: 'n', bits: CREATE | READ }],
      ['OPEN', { one: 'in', bits: WRITE }],
      ['OPEN', { one: 'in', bits: READ | TRUNCATE }],
      ['OPEN', { one: 'a', bits: DIRECTORY | 128 }],
      ['MAKE_DIRECTORY', { one: 'n' }],
      ['UNLINK', { one: 'in' }],
      ['REMOVE_DIRECTORY', { one: 'a/b' }],
      ['RENAME', { one: 'in', other: 0, two: 'n' }],
      ['SYMLINK', { one: 'n', two: 'in' }],
      ['SET_TIMES_AT', { one: 'in', two: TIMES }],
      ['SET_TIMES', { two: TIMES }],
    ]
    for (const [op, fields] of requests) expect(ask(op, fields).code, op).toBe('read-only')
    const { value: handle } = must('OPEN', { one: 'in', bits: READ })
    expect(ask('SET_TIMES', { handle, two: TIMES }).code).toBe('read-only')
    expect(ask('WRITE', { handle, two: 'x' }).code).toBe('bad-descriptor')
    expect(ask('APPEND', { handle, two: 'x' }).code).toBe('bad-descriptor')
    expect(ask('SET_SIZE', { handle, a: 0 }).code).toBe('invalid')
    expect(must('READ', { handle, a: 10 }).data.toString()).toBe('inside')
    const { value: sub } = must('OPEN', { one: 'a', bits: DIRECTORY | READ })
    expect(ask('MAKE_DIRECTORY', { handle: sub, one: 'n' }).code).toBe('read-only')
  })

  it('F3: a held directory means the directory, not its name', () => {
    const { ask, must } = grant(true)
    must('MAKE_DIRECTORY', { one: 'd' })
    const { value: handle } = must('OPEN', { one: 'd', bits: DIRECTORY | READ })
    must('REMOVE_DIRECTORY', { one: 'd' })
    must('SYMLINK', { one: 'd', two: 'rel' })
    expect(ask('OPEN', { handle, one: 'secret', bits: READ }).code).toBe('no-entry')
    expect(ask('OPEN', { handle, one: 'x', bits: CREATE | WRITE }).code).toBe('no-entry')
    expect(ask('UNLINK', { handle, one: 'secret' }).code).toBe('no-entry')
    expect(ask('LIST', { handle }).code).toMatch(/ok|no-entry/)
  })

  it('a directory that was moved out of the workspace by the host does not lead further out', () => {
    const { ask, must } = grant(true)
    const { value: handle } = must('OPEN', { one: 'a', bits: DIRECTORY | READ })
    execFileSync('mv', [`${root}/a`, `${base}/outside/a`])
    expect(ask('OPEN', { handle, one: '../secret', bits: READ }).code).toBe('not-permitted')
  })

  it.each([-1, NaN, Infinity, -Infinity, 0.5])('refuses the number %d as length, size and offset', (number) => {
    const { ask, must } = grant(true)
    const { value: handle } = must('OPEN', { one: 'in', bits: READ | WRITE })
    expect(ask('READ', { handle, a: number }).code).toBe('invalid')
    expect(ask('READ', { handle, a: 1, b: number }).code).toBe('invalid')
    expect(ask('WRITE', { handle, b: number, two: 'x' }).code).toBe('invalid')
    expect(ask('SET_SIZE', { handle, a: number }).code).toBe('invalid')
    expect(statSync(`${root}/in`).size).toBe(6)
  })

  it('clamps a read before it allocates', () => {
    const { must } = grant(true)
    const { value: handle } = must('OPEN', { one: 'in', bits: READ })
    const before = process.memoryUsage().rss
    for (const a of [2 ** 30, 2 ** 31 - 1, 2 ** 32, 2 ** 52]) expect(must('READ', { handle, a }).data.length).toBe(6)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })

  it('huge offsets and sizes never grow a file past its quota', () => {
    const { ask, must } = grant(true)
    const { value: handle } = must('OPEN', { one: 'q', bits: CREATE | READ | WRITE })
    for (const b of [2 ** 20, 2 ** 43, 2 ** 52])
      expect(ask('WRITE', { handle, b, two: 'x' }).code).toBe('insufficient-space')
    expect(ask('WRITE', { handle, b: 2 ** 63, two: 'x' }).code).toBe('file-too-large')
    expect(ask('SET_SIZE', { handle, a: 2 ** 40 }).code).toBe('insufficient-space')
    expect(ask('SET_SIZE', { handle, a: 2 ** 60 }).code).toBe('file-too-large')
    expect(must('READ', { handle, a: 10, b: 2 ** 52 }).data.length).toBe(0)
    expect(statSync(`${root}/q`).size).toBe(0)
  })

  it('malformed requests are answered, never thrown', () => {
    const { ask } = grant(true)
    for (const op of [0, 20, 99, 200, 255]) expect(ask(op, { one: 'in' }).code).toBe('unsupported')
    for (const op of ['READ', 'WRITE', 'STAT', 'LIST', 'CLOSE', 'SYNC', 'OPEN'] as const)
      expect(ask(op, { handle: 9999, one: 'x' }).code).toBe('bad-descriptor')
    expect(ask('LIST', { other: 77 }).code).toBe('bad-descriptor')
    expect(ask('END_LIST', { other: 77 }).code).toBe('ok')
    expect(ask('SET_TIMES', { two: 'short' }).code).toBe('invalid')
    expect(ask('SET_TIMES', { two: timespecs([0n, 2n ** 40n], [0n, 0n]) }).code).toBe('invalid')
    const broker = brokers[0]!
    for (const size of [0, 1, 35])
      expect(broker.answer(Buffer.alloc(size))[0]![0]).toBe(broker.answer(Buffer.alloc(size))[0]![0])
  })

  it('F4: a race of renames lets nothing out', async () => {
    const { ask } = grant(true)
    mkdirSync(`${root}/real`)
    writeFileSync(`${root}/real/secret`, 'mine')
    // Another process swaps a directory and a link that leads out, as fast as it can.
    const swap = `
      const fs = require('node:fs'), root = ${JSON.stringify(root)}
      fs.symlinkSync('../../../../outside', root + '/evil')
      process.on('message', () => process.exit())
      process.send('up')
      ;(function turn() {
        for (let i = 0; i < 200; i++) {
          fs.renameSync(root + '/real', root + '/keep'); fs.renameSync(root + '/evil', root + '/real')
          fs.renameSync(root + '/real', root + '/evil'); fs.renameSync(root + '/keep', root + '/real')
        }
        setImmediate(turn)
      })()`
    const { fork } = await import('node:child_process')
    const script = `${base}/swap.cjs`
    writeFileSync(script, swap)
    const child = fork(script)
    await new Promise((up) => child.once('message', up))
    let escapes = 0
    let hits = 0
    // Until the directory itself was found many times in between, however busy the machine is.
    const began = performance.now()
    const elapsed = (): number => performance.now() - began
    while (elapsed() < 1500 || (hits <= 100 && elapsed() < 30_000)) {
      const { code, value } = ask('OPEN', { one: 'real/secret', bits: FOLLOW | READ })
      if (code === 'ok') {
        if (ask('READ', { handle: value, a: 10 }).data.toString() === 'mine') hits++
        else escapes++
        ask('CLOSE', { handle: value })
      }
      const planted = ask('OPEN', { one: 'real/planted', bits: FOLLOW | CREATE | WRITE })
      if (planted.code === 'ok') ask('CLOSE', { handle: planted.value })
      ask('UNLINK', { one: 'real/planted' })
    }
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.send('stop')
    await exited
    expect(escapes).toBe(0)
    expect(existsSync(`${base}/outside/planted`)).toBe(false)
    expect(hits).toBeGreaterThan(100)
  })
})
