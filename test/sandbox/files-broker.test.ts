import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mount } from '../../src/sandbox/sandbox.ts'
import { FileBroker, type FileLimits } from '../../src/sandbox/supervisor/files/broker.ts'
import { resolveByKernel, resolveByWalk } from '../../src/sandbox/supervisor/files/resolve.ts'
import { Workspaces } from '../../src/sandbox/supervisor/files/workspaces.ts'
import { NO_HANDLE } from '../../src/sandbox/wire/files.ts'
import {
  clientOf,
  CREATE,
  DIRECTORY,
  EXCLUSIVE,
  FOLLOW,
  MUTATE,
  READ,
  timespecs,
  TRUNCATE,
  WRITE,
} from './files-client.ts'

const LIMITS: FileLimits = { openFiles: 16, fileOps: 0, readBytes: 1024 * 1024 }
const WORKSPACE: Mount = { guest: '/workspace', workspace: 'ses/env', write: true }
const SCRATCH: Mount = { guest: '/scratch', write: true }

describe.each([
  ['openat2', resolveByKernel],
  ['walk', resolveByWalk],
])('file broker, paths by %s', (_name, resolve) => {
  let base: string
  let root: string
  let workspaces: Workspaces
  let brokers: FileBroker[]

  const open = (mounts: readonly Mount[] = [WORKSPACE], secrets = {}, limits: Partial<FileLimits> = {}) => {
    const broker = new FileBroker(workspaces.openMounts(mounts, secrets, 1_700_000_000_123), { ...LIMITS, ...limits })
    brokers.push(broker)
    return { broker, ...clientOf(broker) }
  }
  const quota = () => {
    const workspace = workspaces.use('ses/env')
    workspaces.release(workspace)
    return workspace.tree.quota
  }

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'brain-files-'))
    root = `${base}/native-workspaces/ses/env`
    mkdirSync(`${root}/d`, { recursive: true })
    writeFileSync(`${root}/a.txt`, 'hello')
    workspaces = new Workspaces(
      base,
      { workspaceBytes: 100_000, workspaceEntries: 8000, scratchBytes: 10_000 },
      { resolve },
    )
    brokers = []
  })

  afterEach(async () => {
    for (const broker of brokers) broker.close()
    await workspaces.settled
    workspaces.close()
    rmSync(base, { recursive: true })
  })

  it('D-07: every wrong use of a handle has a code of its own', () => {
    const { ask, must } = open()
    const directory = must('OPEN', { one: 'd', bits: DIRECTORY | READ }).value
    for (const op of ['READ', 'WRITE', 'APPEND', 'SET_SIZE'] as const)
      expect(ask(op, { handle: directory, a: 1, two: 'x' }).code, op).toBe('is-directory')
    expect(ask('SYNC', { handle: directory }).code).toBe('ok')
    const writeOnly = must('OPEN', { one: 'a.txt', bits: WRITE }).value
    expect(ask('READ', { handle: writeOnly, a: 1 }).code).toBe('bad-descriptor')
    const readOnly = must('OPEN', { one: 'a.txt', bits: READ }).value
    expect(ask('WRITE', { handle: readOnly, two: 'x' }).code).toBe('bad-descriptor')
    expect(ask('OPEN', { one: 'a.txt', bits: DIRECTORY | READ }).code).toBe('not-directory')
    expect(ask('OPEN', { one: 'a.txt/', bits: READ }).code).toBe('not-directory')
    expect(ask('STAT_AT', { one: 'a.txt/' }).code).toBe('not-directory')
    expect(ask('UNLINK', { one: 'a.txt/' }).code).toBe('not-directory')
    expect(ask('OPEN', { one: 'new/', bits: CREATE | WRITE }).code).toBe('is-directory')
    expect(ask('OPEN', { one: 'd', bits: WRITE }).code).toBe('is-directory')
    expect(ask('OPEN', { one: 'd', bits: READ | TRUNCATE }).code).toBe('is-directory')
    expect(ask('OPEN', { one: 'd', bits: CREATE | DIRECTORY | READ }).code).toBe('invalid')
    expect(ask('OPEN', { one: 'a.txt', bits: CREATE | EXCLUSIVE | WRITE }).code).toBe('exist')
    must('OPEN', { one: 'd/x', bits: CREATE | WRITE })
    expect(ask('REMOVE_DIRECTORY', { one: 'd' }).code).toBe('not-empty')
    expect(ask('UNLINK', { one: 'd' }).code).toBe('is-directory')
    expect(ask('REMOVE_DIRECTORY', { one: 'a.txt' }).code).toBe('not-directory')
    expect(ask('MAKE_DIRECTORY', { one: 'd' }).code).toBe('exist')
    expect(ask('MAKE_DIRECTORY', { one: 'no/e' }).code).toBe('no-entry')
    expect(ask('RENAME', { one: 'd', other: 0, two: 'd/sub' }).code).toBe('invalid')
    expect(ask('RENAME', { one: 'a.txt', other: 0, two: 'd' }).code).toBe('is-directory')
    expect(ask('LIST', { handle: readOnly }).code).toBe('not-directory')
    expect(ask('OPEN', { handle: readOnly, one: 'x', bits: READ }).code).toBe('not-directory')
  })

  it('reads, writes, truncates and appends where it is told to', () => {
    const { must } = open()
    const handle = must('OPEN', { one: 'f', bits: CREATE | READ | WRITE }).value
    expect(must('WRITE', { handle, b: 3, two: 'abc' }).value).toBe(3)
    expect(must('READ', { handle, a: 100, b: 0 })).toMatchObject({ atEnd: true, data: Buffer.from('\0\0\0abc') })
    expect(must('READ', { handle, a: 2, b: 3 })).toMatchObject({ atEnd: false, data: Buffer.from('ab') })
    expect(must('READ', { handle, a: 2, b: 60 })).toMatchObject({ atEnd: true, data: Buffer.alloc(0) })
    must('SET_SIZE', { handle, a: 4 })
    expect(readFileSync(`${root}/f`, 'latin1')).toBe('\0\0\0a')
    must('SET_SIZE', { handle, a: 6 })
    expect(must('STAT', { handle })).toMatchObject({ size: 6, kind: 'regular-file' })
    must('OPEN', { one: 'f', bits: READ | TRUNCATE })
    expect(must('STAT', { handle }).size).toBe(0)
    expect(quota().bytes).toBe(5)
  })

  it('two appenders never overwrite each other', () => {
    const one = open()
    const two = open()
    const first = one.must('OPEN', { one: 'log', bits: CREATE | WRITE }).value
    const second = two.must('OPEN', { one: 'log', bits: CREATE | WRITE }).value
    for (let i = 0; i < 50; i++) {
      one.must('APPEND', { handle: first, two: `a${i};` })
      two.must('APPEND', { handle: second, two: `b${i};` })
    }
    const expected = Array.from({ length: 50 }, (_, i) => `a${i};b${i};`).join('')
    expect(readFileSync(`${root}/log`, 'utf8')).toBe(expected)
  })

  it('D-02: names and contents come back code point by code point', () => {
    const { must, names } = open()
    const wanted = ['é', '你好', '😀', '\ufeffbom', 'a\u0301', 'with space\n', '�']
    for (const one of wanted) {
      const handle = must('OPEN', { one: `d/${one}`, bits: CREATE | READ | WRITE }).value
      must('WRITE', { handle, two: one })
      must('CLOSE', { handle })
    }
    const { value: handle } = must('OPEN', { one: 'd', bits: DIRECTORY | READ })
    expect(names(handle).toSorted()).toEqual(wanted.toSorted())
    for (const one of wanted) expect(readFileSync(`${root}/d/${one}`, 'utf8')).toBe(one)
  })

  it('leaves out names that no path can express', () => {
    writeFileSync(Buffer.concat([Buffer.from(`${root}/bad-`), Buffer.from([0xff])]), '')
    writeFileSync(`${root}/back\\slash`, '')
    expect(open().names().toSorted()).toEqual(['a.txt', 'd'])
  })

  it('lists thousands of entries in pages that stay right while entries come and go', () => {
    const { ask, must } = open()
    const nameOf = (i: number) => `file-${i}-`.padEnd(200, 'x')
    for (let i = 0; i < 600; i++) writeFileSync(`${root}/d/${nameOf(i)}`, '')
    const handle = must('OPEN', { one: 'd', bits: DIRECTORY | READ }).value
    const first = must('LIST', { handle })
    expect(first.atEnd).toBe(false)
    expect(first.data.length).toBeLessThanOrEqual(64 * 1024)
    // A second listing of the same directory does not disturb the first.
    const other = must('LIST', { handle })
    must('END_LIST', { other: other.value })
    const seen = new Map<string, number>()
    let pages = 0
    for (let page = first; ; page = must('LIST', { handle, other: first.value })) {
      pages++
      for (let at = 0; at < page.data.length;) {
        const end = at + 48 + page.data.readUInt16LE(at + 2)
        const name = page.data.toString('utf8', at + 48, end)
        seen.set(name, (seen.get(name) ?? 0) + 1)
        // What was listed goes, as in "rm -r"; and new entries come.
        rmSync(`${root}/d/${name}`)
        at = end
      }
      if (page.atEnd) break
      writeFileSync(`${root}/d/late-${pages}`, '')
    }
    expect(pages).toBeGreaterThan(2)
    for (let i = 0; i < 600; i++) expect(seen.get(nameOf(i))).toBe(1)
    expect(ask('LIST', { handle, other: first.value }).code).toBe('bad-descriptor')
  })

  it('sets times exactly, to now, or not at all', () => {
    const { must } = open()
    const stat = () => must('STAT_AT', { one: 'a.txt' })
    const NOW = 0x3fffffffn
    const OMIT = 0x3ffffffen
    must('SET_TIMES_AT', { one: 'a.txt', two: timespecs([1_000_000n, 123_456_789n], [15_000_000_000n, 1n]) })
    expect(stat()).toMatchObject({ atime: [1_000_000, 123_456_789], mtime: [15_000_000_000, 1] })
    const handle = must('OPEN', { one: 'a.txt', bits: WRITE }).value
    must('SET_TIMES', { handle, two: timespecs([0n, OMIT], [5n, 999_999_999n]) })
    expect(stat()).toMatchObject({ atime: [1_000_000, 123_456_789], mtime: [5, 999_999_999] })
    must('SET_TIMES_AT', { one: 'a.txt', bits: FOLLOW, two: timespecs([0n, NOW], [0n, OMIT]) })
    expect(Math.abs(stat().atime[0] - Date.now() / 1000)).toBeLessThan(30)
    expect(stat().mtime).toEqual([5, 999_999_999])
    const directory = must('OPEN', { one: 'd', bits: DIRECTORY | READ }).value
    must('SET_TIMES', { handle: directory, two: timespecs([7n, 0n], [8n, 0n]) })
    expect(must('STAT', { handle: directory })).toMatchObject({ atime: [7, 0], mtime: [8, 0] })
  })

  it('sets the times of a link, or of what it leads to', () => {
    const { must } = open()
    must('SYMLINK', { one: 'l', two: 'a.txt' })
    must('SET_TIMES_AT', { one: 'l', two: timespecs([1n, 0n], [2n, 0n]) })
    must('SET_TIMES_AT', { one: 'l', bits: FOLLOW, two: timespecs([3n, 0n], [4n, 0n]) })
    expect(must('STAT_AT', { one: 'l' })).toMatchObject({ kind: 'symbolic-link', mtime: [2, 0] })
    expect(must('STAT_AT', { one: 'l', bits: FOLLOW })).toMatchObject({ kind: 'regular-file', mtime: [4, 0] })
  })

  it('tells objects apart without telling their inode', () => {
    const { must } = open()
    const { ino } = statSync(`${root}/a.txt`, { bigint: true })
    const facts = must('STAT_AT', { one: 'a.txt' })
    const text = Buffer.alloc(8)
    text.writeBigUInt64LE(ino)
    expect(facts.identity).not.toBe(text.toString('hex'))
    expect(must('STAT_AT', { one: 'd/../a.txt' }).identity).toBe(facts.identity)
    expect(must('OPEN', { one: 'a.txt', bits: READ }).identity).toBe(facts.identity)
    expect(must('STAT_AT', { one: 'd' }).identity).not.toBe(facts.identity)
    must('RENAME', { one: 'a.txt', other: 0, two: 'b.txt' })
    expect(must('STAT_AT', { one: 'b.txt' }).identity).toBe(facts.identity)
  })

  it('makes links of at most 1024 bytes', () => {
    const { ask } = open()
    expect(ask('SYMLINK', { one: 'long', two: 'a/'.repeat(512) }).code).toBe('ok')
    expect(ask('SYMLINK', { one: 'longer', two: `${'a/'.repeat(512)}b` }).code).toBe('name-too-long')
  })

  it('POSIX: creating through a link makes its target; exclusively, it does not', () => {
    const { ask, must } = open()
    must('SYMLINK', { one: 'd/l', two: '../made' })
    expect(ask('OPEN', { one: 'd/l', bits: FOLLOW | CREATE | EXCLUSIVE | WRITE }).code).toBe('exist')
    expect(ask('OPEN', { one: 'd/l', bits: CREATE | WRITE }).code).toBe('loop')
    expect(existsSync(`${root}/made`)).toBe(false)
    must('OPEN', { one: 'd/l', bits: FOLLOW | CREATE | WRITE })
    expect(statSync(`${root}/made`).isFile()).toBe(true)
    must('SYMLINK', { one: 'x', two: 'y' })
    must('SYMLINK', { one: 'y', two: 'x' })
    expect(ask('OPEN', { one: 'x', bits: FOLLOW | CREATE | WRITE }).code).toBe('loop')
  })

  it('counts bytes and entries in all ways in which they come and go', () => {
    const { ask, must } = open()
    expect(quota()).toMatchObject({ bytes: 5, entries: 2 })
    const handle = must('OPEN', { one: 'f', bits: CREATE | READ | WRITE }).value
    must('WRITE', { handle, two: Buffer.alloc(1000) })
    must('WRITE', { handle, b: 500, two: Buffer.alloc(1000) })
    must('MAKE_DIRECTORY', { one: 'd/e' })
    must('SYMLINK', { one: 'l', two: 'f' })
    expect(quota()).toMatchObject({ bytes: 1505, entries: 5 })
    must('CLOSE', { handle })
    must('RENAME', { one: 'f', other: 0, two: 'f' })
    must('RENAME', { one: 'f', other: 0, two: 'a.txt' })
    expect(quota()).toMatchObject({ bytes: 1500, entries: 4 })
    must('UNLINK', { one: 'l' })
    must('REMOVE_DIRECTORY', { one: 'd/e' })
    must('OPEN', { one: 'a.txt', bits: WRITE | TRUNCATE })
    expect(quota()).toMatchObject({ bytes: 0, entries: 2 })
    for (const failing of [
      () => ask('MAKE_DIRECTORY', { one: 'd' }),
      () => ask('MAKE_DIRECTORY', { one: 'no/x' }),
      () => ask('SYMLINK', { one: 'd', two: 'x' }),
      () => ask('OPEN', { one: 'no/x', bits: CREATE | WRITE }),
      () => ask('OPEN', { one: 'd', bits: CREATE | WRITE }),
      () => ask('UNLINK', { one: 'zz' }),
      () => ask('REMOVE_DIRECTORY', { one: 'a.txt' }),
    ])
      expect(failing().code).not.toBe('ok')
    expect(quota()).toMatchObject({ bytes: 0, entries: 2 })
  })

  it('an unlinked file keeps its place in the quota until its last handle is closed', () => {
    const { ask, must } = open()
    const one = must('OPEN', { one: 'f', bits: CREATE | READ | WRITE }).value
    const two = must('OPEN', { one: 'f', bits: READ | WRITE }).value
    must('WRITE', { handle: one, two: Buffer.alloc(90_000) })
    must('UNLINK', { one: 'f' })
    expect(quota()).toMatchObject({ bytes: 90_005, entries: 3 })
    const next = must('OPEN', { one: 'f', bits: CREATE | WRITE }).value
    expect(ask('WRITE', { handle: next, two: Buffer.alloc(20_000) }).code).toBe('insufficient-space')
    must('WRITE', { handle: two, b: 90_000, two: Buffer.alloc(100) })
    must('CLOSE', { handle: one })
    expect(quota().bytes).toBe(90_105)
    must('CLOSE', { handle: two })
    expect(quota()).toMatchObject({ bytes: 5, entries: 3 })
    must('WRITE', { handle: next, two: Buffer.alloc(20_000) })
    // A file that is renamed over is gone in the same way.
    must('RENAME', { one: 'a.txt', other: 0, two: 'f' })
    expect(quota()).toMatchObject({ bytes: 20_005, entries: 3 })
    must('CLOSE', { handle: next })
    expect(quota()).toMatchObject({ bytes: 5, entries: 2 })
  })

  it('what an invocation holds is given back when it ends', () => {
    const { broker, must } = open()
    const before = readdirSync('/proc/self/fd').length
    const handle = must('OPEN', { one: 'f', bits: CREATE | WRITE }).value
    must('WRITE', { handle, two: Buffer.alloc(50) })
    must('OPEN', { one: 'd', bits: DIRECTORY | READ })
    must('UNLINK', { one: 'f' })
    broker.close()
    expect(quota()).toMatchObject({ bytes: 5, entries: 2 })
    expect(readdirSync('/proc/self/fd').length).toBeLessThan(before)
    expect(clientOf(broker).ask('STAT', { handle }).code).toBe('bad-descriptor')
    broker.close()
  })

  it("room for what a box keeps back is one writer's alone until it closes, and only where there is plenty", () => {
    const MIB = 1024 * 1024
    const limits = { workspaceBytes: 18 * MIB, workspaceEntries: 100, scratchBytes: 10_000 }
    const ample = new Workspaces(base, limits, { resolve })
    const broker = new FileBroker(ample.openMounts([WORKSPACE], {}, 0), LIMITS)
    try {
      const { must, ask } = clientOf(broker)
      const one = must('OPEN', { one: 'one', bits: CREATE | WRITE }).value
      const two = must('OPEN', { one: 'two', bits: CREATE | WRITE }).value
      expect(must('WRITE', { handle: one, two: 'x' }).size).toBe(MIB)
      const most = 17 * MIB - 6 // with `a.txt` and the one byte
      expect(ask('SET_SIZE', { handle: two, a: most + 1 }).code).toBe('insufficient-space')
      must('SET_SIZE', { handle: two, a: most })
      must('WRITE', { handle: one, b: 1, two: Buffer.alloc(MIB) })
      expect(ask('WRITE', { handle: one, b: 1 + MIB, two: 'x' }).code).toBe('insufficient-space')
      expect(must('WRITE', { handle: one, two: 'y' }).size).toBe(0)
      must('SET_SIZE', { handle: two, a: 0 })
      expect(must('WRITE', { handle: one, two: 'y' }).size).toBe(0) // 1 MiB is written: less than 16 would be left
      must('SET_SIZE', { handle: one, a: 0 })
      expect(must('APPEND', { handle: one, two: 'y' }).size).toBe(MIB)
      must('CLOSE', { handle: one })
      must('SET_SIZE', { handle: two, a: 18 * MIB - 6 })
    } finally {
      broker.close()
      ample.close()
    }
  })

  it('all calls share the quota of a workspace', () => {
    const one = open()
    const two = open()
    const first = one.must('OPEN', { one: 'x', bits: CREATE | WRITE }).value
    const second = two.must('OPEN', { one: 'y', bits: CREATE | WRITE }).value
    one.must('WRITE', { handle: first, two: Buffer.alloc(60_000) })
    expect(two.ask('WRITE', { handle: second, two: Buffer.alloc(60_000) }).code).toBe('insufficient-space')
    one.must('UNLINK', { one: 'x' })
    one.must('CLOSE', { handle: first })
    two.must('WRITE', { handle: second, two: Buffer.alloc(60_000) })
  })

  it('F17: entries are limited, whatever they are', () => {
    const small = new Workspaces(base, { workspaceBytes: 1000, workspaceEntries: 6, scratchBytes: 1000 }, { resolve })
    const broker = new FileBroker(small.openMounts([WORKSPACE], {}, 0), LIMITS)
    const { ask, must } = clientOf(broker)
    must('MAKE_DIRECTORY', { one: '1' })
    must('SYMLINK', { one: '2', two: 'x' })
    must('OPEN', { one: '3', bits: CREATE | WRITE })
    must('MAKE_DIRECTORY', { one: '4' })
    expect(ask('MAKE_DIRECTORY', { one: '5' }).code).toBe('insufficient-space')
    expect(ask('SYMLINK', { one: '5', two: 'x' }).code).toBe('insufficient-space')
    expect(ask('OPEN', { one: '5', bits: CREATE | WRITE }).code).toBe('insufficient-space')
    // What is there already needs no room.
    must('OPEN', { one: '3', bits: CREATE | WRITE })
    must('REMOVE_DIRECTORY', { one: '4' })
    must('MAKE_DIRECTORY', { one: '5' })
    broker.close()
    small.close()
  })

  it('open files are limited, listings counted among them; a close with the next request makes room', () => {
    const { ask, must } = open([WORKSPACE], {}, { openFiles: 3 })
    for (let i = 0; i < 200; i++) writeFileSync(`${root}/d/${i}`.padEnd(root.length + 200, 'x'), '')
    const one = must('OPEN', { one: 'a.txt', bits: READ }).value
    const directory = must('OPEN', { one: 'd', bits: DIRECTORY | READ }).value
    const { value: listing, atEnd } = must('LIST', { handle: directory })
    expect(atEnd).toBe(false)
    expect(ask('OPEN', { one: 'a.txt', bits: READ }).code).toBe('insufficient-memory')
    expect(ask('LIST', { handle: directory }).code).toBe('insufficient-memory')
    must('END_LIST', { other: listing })
    must('OPEN', { one: 'a.txt', bits: READ })
    expect(ask('OPEN', { one: 'a.txt', bits: READ }).code).toBe('insufficient-memory')
    must('OPEN', { one: 'a.txt', bits: READ, closing: one })
    expect(ask('STAT', { handle: one }).code).toBe('bad-descriptor')
    expect(ask('STAT', { closing: NO_HANDLE }).code).toBe('ok')
  })

  it('more operations than allowed end in the limit, for ever', () => {
    const { broker, ask, must } = open([WORKSPACE], {}, { fileOps: 3 })
    for (let i = 0; i < 3; i++) must('STAT')
    expect(broker.exhausted).toBe(false)
    for (let i = 0; i < 3; i++) expect(ask('STAT').code).toBe('status 255')
    expect(broker.exhausted).toBe(true)
  })

  it('a preopen survives its close', () => {
    const { must } = open()
    must('CLOSE', { handle: 0 })
    must('STAT_AT', { closing: 0, one: 'a.txt' })
  })

  it('scratch is empty, apart, bounded, and gone with its invocation', async () => {
    const one = open([WORKSPACE, SCRATCH])
    const two = open([SCRATCH])
    const handle = one.must('OPEN', { handle: 1, one: 'tmp', bits: CREATE | WRITE }).value
    one.must('WRITE', { handle, two: Buffer.alloc(9000) })
    expect(one.ask('APPEND', { handle, two: Buffer.alloc(2000) }).code).toBe('insufficient-space')
    expect(two.names(0)).toEqual([])
    expect(one.ask('RENAME', { handle: 1, one: 'tmp', other: 0, two: 'tmp' }).code).toBe('cross-device')
    expect(readdirSync(`${base}/scratch`)).toHaveLength(2)
    one.broker.close()
    expect(readdirSync(`${base}/scratch`)).toHaveLength(1)
    await workspaces.settled
    expect(readdirSync(`${base}/trash`)).toEqual([])
  })

  it('secrets are read-only files out of memory, and there is nothing else', () => {
    const { ask, must, names } = open([WORKSPACE], { TOKEN: 'gehéim', EMPTY: '' })
    const secrets = 1
    expect(names(secrets)).toEqual(['TOKEN', 'EMPTY'])
    const { value: handle } = must('OPEN', { handle: secrets, one: 'TOKEN', bits: FOLLOW | READ })
    expect(must('READ', { handle, a: 100 })).toMatchObject({ data: Buffer.from('gehéim'), atEnd: true })
    expect(must('READ', { handle, a: 3, b: 2 }).data.toString()).toBe('hé')
    expect(must('READ', { handle, a: 9, b: 2 ** 40 }).data.length).toBe(0)
    expect(must('STAT', { handle })).toMatchObject({ kind: 'regular-file', size: 7, mtime: [1_700_000_000, 0] })
    expect(must('STAT_AT', { handle: secrets, one: './TOKEN' }).identity).toBe(must('STAT', { handle }).identity)
    expect(must('STAT_AT', { handle: secrets, one: 'EMPTY' })).toMatchObject({ size: 0 })
    expect(must('OPEN', { handle: secrets, one: '.', bits: DIRECTORY | READ }).kind).toBe('directory')
    for (const [one, code] of [
      ['..', 'not-permitted'],
      ['../workspace/a.txt', 'not-permitted'],
      ['constructor', 'no-entry'],
      ['__proto__', 'no-entry'],
      ['TOKEN/', 'not-directory'],
      ['TOKEN/.', 'not-directory'],
      ['TOKEN/x', 'not-directory'],
      ['TOKEN/../TOKEN', 'not-directory'],
      ['token', 'no-entry'],
    ] as const)
      expect(ask('OPEN', { handle: secrets, one, bits: READ }).code, one).toBe(code)
    for (const bits of [WRITE, CREATE | WRITE, READ | TRUNCATE, MUTATE])
      expect(ask('OPEN', { handle: secrets, one: 'TOKEN', bits }).code).toBe('read-only')
    for (const op of ['MAKE_DIRECTORY', 'UNLINK', 'REMOVE_DIRECTORY', 'SYMLINK', 'SET_TIMES_AT', 'SET_TIMES'] as const)
      expect(ask(op, { handle: secrets, one: 'TOKEN', two: 'x' }).code, op).toBe('read-only')
    expect(ask('RENAME', { handle: secrets, one: 'TOKEN', other: 0, two: 'x' }).code).toBe('read-only')
    expect(ask('RENAME', { one: 'a.txt', other: secrets, two: 'x' }).code).toBe('read-only')
    expect(ask('WRITE', { handle, two: 'x' }).code).toBe('bad-descriptor')
    expect(ask('SET_SIZE', { handle, a: 0 }).code).toBe('invalid')
    expect(ask('READ_LINK', { handle: secrets, one: 'TOKEN' }).code).toBe('invalid')
    const onDisk = readdirSync(base, { recursive: true, encoding: 'utf8' })
    expect(onDisk.filter((path) => path.includes('TOKEN'))).toEqual([])
  })
})
