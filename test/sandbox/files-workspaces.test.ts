import { randomBytes } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BrainError } from '../../src/kernel/errors.ts'
import { FileBroker } from '../../src/sandbox/supervisor/files/broker.ts'
import { resolveByKernel, resolveByWalk, type Resolve } from '../../src/sandbox/supervisor/files/resolve.ts'
import { WorkspaceStore } from '../../src/sandbox/supervisor/files/workspace-files.ts'
import { Workspaces } from '../../src/sandbox/supervisor/files/workspaces.ts'
import { clientOf, CREATE, READ, WRITE } from './files-client.ts'

const LIMITS = { workspaceBytes: 100_000, workspaceEntries: 500, scratchBytes: 10_000 }
const NAME = 'ses_1/main'
const ALL = { prefix: '', after: '', limit: 1000 }

let base: string
let root: string
let opened: Workspaces[]

function openWorkspaces(limits = LIMITS, resolve?: Resolve): { workspaces: Workspaces; store: WorkspaceStore } {
  const workspaces = resolve === undefined ? new Workspaces(base, limits) : new Workspaces(base, limits, { resolve })
  opened.push(workspaces)
  return { workspaces, store: new WorkspaceStore(workspaces) }
}

function quotaOf(workspaces: Workspaces, name = NAME) {
  const workspace = workspaces.use(name)
  workspaces.release(workspace)
  return workspace.tree.quota
}

async function put(store: WorkspaceStore, path: string, content: string | Buffer): Promise<number> {
  const file = store.create(NAME, path)
  await file.write(Buffer.from(content))
  return (await file.commit()).size
}

async function get(store: WorkspaceStore, path: string): Promise<string> {
  const file = store.open(NAME, path)
  const pieces: Buffer[] = []
  for (let piece = await file.read(7); piece.length > 0; piece = await file.read(7)) pieces.push(piece)
  file.close()
  const whole = Buffer.concat(pieces)
  expect(whole.length).toBe(file.size)
  return whole.toString()
}

/** The code of the BrainError that `run` ends with. */
async function codeOf(run: () => unknown): Promise<string> {
  try {
    await run()
  } catch (error) {
    return (error as BrainError).code
  }
  return 'ok'
}

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'brain-workspaces-'))
  root = `${base}/native-workspaces/${NAME}`
  opened = []
})

afterEach(async () => {
  for (const workspaces of opened) {
    await workspaces.settled
    workspaces.close()
  }
  rmSync(base, { recursive: true, force: true })
})

describe('workspaces', () => {
  it.each(['native-workspaces', 'scratch', 'incoming', 'trash'])(
    'a link in place of our own %j refuses the start',
    (place) => {
      mkdirSync(`${base}/elsewhere`)
      symlinkSync('elsewhere', `${base}/${place}`)
      expect(() => openWorkspaces()).toThrow('Cannot open the data directory')
      expect(readdirSync(`${base}/elsewhere`)).toEqual([])
    },
  )

  it.each(['ses_1', NAME])('a link in place of the directory %j of a workspace is refused', (path) => {
    const { workspaces } = openWorkspaces()
    mkdirSync(`${base}/elsewhere/main`, { recursive: true })
    if (path === NAME) mkdirSync(`${base}/native-workspaces/ses_1`)
    symlinkSync(`${base}/elsewhere`, `${base}/native-workspaces/${path}`)
    expect(() => workspaces.use(NAME)).toThrow('Cannot open workspace')
    expect(() => workspaces.openMounts([{ guest: '/workspace', workspace: NAME, write: true }], {}, 0)).toThrow(
      'Cannot open',
    )
  })

  it('has names of two safe parts, and no others', () => {
    const { workspaces } = openWorkspaces()
    const bad = [
      '',
      'a',
      'a/',
      '/a',
      'a/b/c',
      '../a',
      'a/..',
      './a',
      'a/.',
      '.a/b',
      'a//b',
      'a/b\0',
      'a\\b/c',
      'é/a',
      `${'x'.repeat(129)}/a`,
    ]
    for (const name of bad) expect(() => workspaces.use(name), name).toThrow('no such name')
    for (const name of [
      'ses_1/a',
      'A.b:c-d_e/9',
      'constructor/__proto__'.replace('/__', '/x__'),
      `${'x'.repeat(128)}/a`,
    ])
      workspaces.release(workspaces.use(name))
  })

  it('makes directories that nobody else can enter', () => {
    const { workspaces } = openWorkspaces()
    workspaces.release(workspaces.use(NAME))
    for (const path of [
      'native-workspaces',
      'native-workspaces/ses_1',
      `native-workspaces/${NAME}`,
      'scratch',
      'trash',
    ])
      expect(statSync(`${base}/${path}`).mode & 0o777, path).toBe(0o700)
  })

  it('counts what is there once, and its users count on from it', () => {
    mkdirSync(`${root}/a/b/c`, { recursive: true })
    writeFileSync(`${root}/a/b/c/f`, Buffer.alloc(1000))
    writeFileSync(`${root}/g`, Buffer.alloc(10))
    symlinkSync('g', `${root}/l`)
    const { workspaces } = openWorkspaces()
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 1010, entries: 6 })
    const one = workspaces.use(NAME)
    const two = workspaces.use(NAME)
    expect(one).toBe(two)
  })

  it('counts, lists and deletes a tree deeper than any path or stack', async () => {
    const { workspaces, store } = openWorkspaces({ ...LIMITS, workspaceEntries: 20_000 })
    const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: NAME, write: true }], {}, 0)
    const broker = new FileBroker(mounts, { openFiles: 64, fileOps: 0, readBytes: 1000 })
    const { must } = clientOf(broker)
    const depth = 2000
    let handle = 0
    for (let i = 0; i < depth; i++) {
      must('MAKE_DIRECTORY', { handle, one: 'deep' })
      const next = must('OPEN', { handle, one: 'deep', bits: READ }).value
      if (handle !== 0) must('CLOSE', { handle })
      handle = next
    }
    const file = must('OPEN', { handle, one: 'bottom', bits: CREATE | WRITE }).value
    must('WRITE', { handle: file, two: 'x' })
    broker.close()
    expect(await store.list(NAME, ALL)).toEqual([])
    const again = openWorkspaces({ ...LIMITS, workspaceEntries: 20_000 })
    expect(quotaOf(again.workspaces)).toMatchObject({ bytes: 1, entries: depth + 1 })
    await store.destroy(NAME)
    expect(existsSync(`${base}/native-workspaces/ses_1`)).toBe(false)
    expect(readdirSync(`${base}/trash`)).toEqual([])
  })

  it('deletes what an earlier supervisor left of scratch and uploads', async () => {
    mkdirSync(`${base}/scratch/old/a`, { recursive: true })
    mkdirSync(`${base}/incoming`)
    mkdirSync(`${base}/trash/half`, { recursive: true })
    writeFileSync(`${base}/scratch/old/a/f`, 'x')
    writeFileSync(`${base}/incoming/upload`, 'x')
    const { workspaces } = openWorkspaces()
    expect(readdirSync(`${base}/scratch`)).toEqual([])
    expect(readdirSync(`${base}/incoming`)).toEqual([])
    await workspaces.settled
    expect(readdirSync(`${base}/trash`)).toEqual([])
  })

  it('deletes links, not what they lead to', async () => {
    writeFileSync(`${base}/precious`, 'keep')
    mkdirSync(`${base}/treasure`)
    writeFileSync(`${base}/treasure/f`, 'keep')
    mkdirSync(root, { recursive: true })
    symlinkSync(`${base}/precious`, `${root}/file`)
    symlinkSync(`${base}/treasure`, `${root}/directory`)
    await openWorkspaces().store.destroy(NAME)
    expect(readFileSync(`${base}/precious`, 'utf8') + readFileSync(`${base}/treasure/f`, 'utf8')).toBe('keepkeep')
    expect(existsSync(root)).toBe(false)
  })

  it('a destroyed workspace stays with the calls that hold it, and the next user gets a new one', async () => {
    const { workspaces, store } = openWorkspaces()
    const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: NAME, write: true }], {}, 0)
    const broker = new FileBroker(mounts, { openFiles: 64, fileOps: 0, readBytes: 1000 })
    const { must } = clientOf(broker)
    const handle = must('OPEN', { one: 'f', bits: CREATE | READ | WRITE }).value
    await store.destroy(NAME)
    must('WRITE', { handle, two: 'still' })
    expect(must('READ', { handle, a: 10 }).data.toString()).toBe('still')
    expect(await store.list(NAME, ALL)).toEqual([])
    await put(store, 'new', 'n')
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 1, entries: 1 })
    broker.close()
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 1, entries: 1 })
    await store.destroy('no/such')
  })

  it('keeps no descriptor of what is done with', async () => {
    const { workspaces, store } = openWorkspaces()
    const count = () => readdirSync('/proc/self/fd').length
    await put(store, 'a/b', 'x')
    const before = count()
    for (let i = 0; i < 20; i++) {
      await put(store, `a/c${i}`, 'x')
      await get(store, `a/c${i}`)
      await store.list(NAME, ALL)
      store.remove(NAME, `a/c${i}`)
      await codeOf(() => store.open(NAME, 'none'))
      await codeOf(() => store.create(NAME, 'a/../b'))
      const mounts = workspaces.openMounts(
        [
          { guest: '/workspace', workspace: NAME, write: true },
          { guest: '/scratch', write: true },
        ],
        { S: 'x' },
        0,
      )
      new FileBroker(mounts, { openFiles: 4, fileOps: 0, readBytes: 10 }).close()
    }
    for (let i = 0; i < 200; i++) workspaces.release(workspaces.use(`ses_1/env${i}`))
    await workspaces.settled
    expect(count() - before).toBeLessThanOrEqual(130)
  })
})

describe.each([
  ['openat2', resolveByKernel],
  ['walk', resolveByWalk],
])('files of a workspace, paths by %s', (_name, resolve) => {
  let workspaces: Workspaces
  let store: WorkspaceStore

  beforeEach(() => {
    ;({ workspaces, store } = openWorkspaces(LIMITS, resolve))
  })

  it('are written whole, with the directories on the way, and read in pieces', async () => {
    expect(await put(store, 'a/b/naïve-😀.txt', 'first text')).toBe(10)
    expect(await get(store, 'a/b/naïve-😀.txt')).toBe('first text')
    expect(await put(store, 'a/b/naïve-😀.txt', 'other')).toBe(5)
    expect(await get(store, 'a/b/naïve-😀.txt')).toBe('other')
    expect(await put(store, 'empty', '')).toBe(0)
    expect(await get(store, 'empty')).toBe('')
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 5, entries: 4 })
    expect(statSync(`${root}/a/b/naïve-😀.txt`).mode & 0o777).toBe(0o600)
  })

  it('appear at once or not at all', async () => {
    await put(store, 'f', 'old')
    const file = store.create(NAME, 'f')
    await file.write(Buffer.from('ne'))
    expect(await get(store, 'f')).toBe('old')
    expect(readdirSync(root)).toEqual(['f'])
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 5, entries: 2 })
    file.abort()
    file.abort()
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 3, entries: 1 })
    expect(readdirSync(`${base}/incoming`)).toEqual([])
    const next = store.create(NAME, 'f')
    await next.write(Buffer.from('new'))
    await next.commit()
    next.abort()
    expect(await get(store, 'f')).toBe('new')
  })

  it('a reader goes on with the file that it opened', async () => {
    await put(store, 'f', 'before')
    const file = store.open(NAME, 'f')
    await put(store, 'f', 'after!')
    expect((await file.read(100)).toString()).toBe('before')
    file.close()
    file.close()
  })

  it.each([
    '',
    '.',
    '..',
    '/',
    '/a',
    'a/',
    'a//b',
    'a/./b',
    'a/../b',
    '../x',
    'a\0b',
    'a\\b',
    '\ud800',
    'x'.repeat(256),
    'y/'.repeat(2048) + 'z',
  ])('%.20j is no path', async (path) => {
    mkdirSync(root, { recursive: true })
    expect(await codeOf(() => store.open(NAME, path))).toBe('invalid_request')
    expect(await codeOf(() => store.create(NAME, path))).toBe('invalid_request')
    expect(await codeOf(() => store.remove(NAME, path))).toBe('invalid_request')
    expect(readdirSync(`${base}/incoming`)).toEqual([])
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 0, entries: 0 })
  })

  it('what is not there is not found', async () => {
    expect(await codeOf(() => store.open(NAME, 'f'))).toBe('not_found')
    expect(await codeOf(() => store.remove(NAME, 'f'))).toBe('not_found')
    await put(store, 'f', 'x')
    for (const path of ['g', 'f/g', 'no/g']) {
      expect(await codeOf(() => store.open(NAME, path))).toBe('not_found')
      expect(await codeOf(() => store.remove(NAME, path))).toBe('not_found')
    }
    expect(await codeOf(() => store.open('ses_2/main', 'f'))).toBe('not_found')
    expect(existsSync(`${base}/native-workspaces/ses_2`)).toBe(false)
  })

  it('D-06: links are followed within the workspace only', async () => {
    writeFileSync(`${base}/secret`, 'HOST')
    mkdirSync(`${root}/d`, { recursive: true })
    mkdirSync(`${root}-secret`)
    writeFileSync(`${root}-secret/s.txt`, 'HOST')
    writeFileSync(`${root}/a.txt`, 'mine')
    symlinkSync('a.txt', `${root}/in`)
    symlinkSync('d', `${root}/to-d`)
    symlinkSync('/etc/hostname', `${root}/abs`)
    symlinkSync('../../../secret', `${root}/rel`)
    symlinkSync('..', `${root}/up`)
    linkSync(`${base}/secret`, `${root}/hard`)
    expect(await get(store, 'in')).toBe('mine')
    for (const path of ['abs', 'rel', 'up/main-secret/s.txt', 'hard'])
      expect(await codeOf(() => store.open(NAME, path)), path).toBe('invalid_request')
    for (const path of ['up/x', 'abs/x', 'up/main-secret/s.txt'])
      expect(await codeOf(() => put(store, path, 'x')), path).not.toBe('ok')
    await put(store, 'to-d/x', 'through')
    expect(readFileSync(`${root}/d/x`, 'utf8')).toBe('through')
    // A link in the last place is replaced or removed itself.
    await put(store, 'rel', 'mine now')
    store.remove(NAME, 'abs')
    expect(readFileSync(`${base}/secret`, 'utf8') + readFileSync(`${root}-secret/s.txt`, 'utf8')).toBe('HOSTHOST')
    expect((await store.list(NAME, ALL)).map(({ path }) => path)).toEqual(['a.txt', 'd/x', 'hard', 'rel'])
  })

  it('a directory is no file', async () => {
    await put(store, 'd/f', 'x')
    for (const run of [() => store.open(NAME, 'd'), () => put(store, 'd', 'x'), () => store.remove(NAME, 'd')])
      expect(await codeOf(run)).toBe('invalid_request')
    expect(await codeOf(() => put(store, 'd/f/g', 'x'))).toBe('not_found')
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 1, entries: 2 })
    expect(readdirSync(`${base}/incoming`)).toEqual([])
  })

  it('share the quota with the calls, and say which limit is used up', async () => {
    const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: NAME, write: true }], {}, 0)
    const broker = new FileBroker(mounts, { openFiles: 64, fileOps: 0, readBytes: 1000 })
    const { ask, must } = clientOf(broker)
    await put(store, 'f', Buffer.alloc(60_000))
    const handle = must('OPEN', { one: 'g', bits: CREATE | WRITE }).value
    expect(ask('WRITE', { handle, two: Buffer.alloc(50_000) }).code).toBe('insufficient-space')
    must('WRITE', { handle, two: Buffer.alloc(39_000) })
    await expect(put(store, 'h', Buffer.alloc(2000))).rejects.toThrow(
      '100000 bytes per workspace (BRAIN_MAX_WORKSPACE_BYTES)',
    )
    // Old and new are there together until the new one takes the place.
    expect(await codeOf(() => put(store, 'f', Buffer.alloc(60_000)))).toBe('output_limit')
    store.remove(NAME, 'f')
    expect(await codeOf(() => put(store, 'f', Buffer.alloc(60_000)))).toBe('ok')
    for (let i = 0; quotaOf(workspaces).entries < 500; i++) must('MAKE_DIRECTORY', { one: `m${i}` })
    await expect(put(store, 'x', '')).rejects.toThrow('BRAIN_MAX_WORKSPACE_ENTRIES')
    expect(await codeOf(() => put(store, 'f', ''))).toBe('output_limit')
    broker.close()
  })

  it('an upload into a workspace that is destroyed meanwhile comes to nothing', async () => {
    const file = store.create(NAME, 'f')
    await file.write(Buffer.from('x'))
    await store.destroy(NAME)
    expect(await codeOf(() => file.commit())).toBe('not_found')
    expect(existsSync(root)).toBe(false)
    expect(readdirSync(`${base}/incoming`)).toEqual([])
  })

  it('a replaced file that a call holds stays its own', async () => {
    const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: NAME, write: true }], {}, 0)
    const broker = new FileBroker(mounts, { openFiles: 64, fileOps: 0, readBytes: 1000 })
    const { must } = clientOf(broker)
    const handle = must('OPEN', { one: 'f', bits: CREATE | READ | WRITE }).value
    must('WRITE', { handle, two: 'of the call' })
    await put(store, 'f', 'of the application')
    expect(must('READ', { handle, a: 100 }).data.toString()).toBe('of the call')
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 29, entries: 2 })
    broker.close()
    expect(quotaOf(workspaces)).toMatchObject({ bytes: 18, entries: 1 })
  })

  it('are listed by full path, page by page, whatever the names', async () => {
    const paths = [
      'a',
      'a.b',
      'a-b',
      'a0/x',
      'a1/x',
      'ab/c/d',
      'ab/c.d',
      'ab/c/',
      'é/x',
      '😀/y',
      '\uffee',
      'a b',
      'Z',
    ].filter((path) => !path.endsWith('/'))
    for (const path of paths) await put(store, path, path)
    const sorted = paths.toSorted((a, b) => (a < b ? -1 : 1))
    const whole = await store.list(NAME, ALL)
    expect(whole.map(({ path }) => path)).toEqual(sorted)
    for (const { path, size, mtimeMs } of whole) {
      expect(size).toBe(Buffer.byteLength(path))
      expect(Math.abs(mtimeMs - Date.now())).toBeLessThan(60_000)
    }
    const paged: string[] = []
    for (let after = ''; ; after = paged.at(-1)!) {
      const page = await store.list(NAME, { prefix: '', after, limit: 2 })
      if (page.length === 0) break
      paged.push(...page.map(({ path }) => path))
    }
    expect(paged).toEqual(sorted)
    for (const prefix of ['a', 'ab/', 'ab/c', 'ab/c/', 'zz', '😀'])
      expect((await store.list(NAME, { prefix, after: '', limit: 100 })).map(({ path }) => path)).toEqual(
        sorted.filter((path) => path.startsWith(prefix)),
      )
  })

  it('list() equals filtering and sorting of all paths, for any tree, prefix and page', async () => {
    const part = fc.stringMatching(/^[a-c.\-0 é]{1,3}$/).filter((name) => name !== '.' && name !== '..')
    const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
    await fc.assert(
      fc.asyncProperty(
        fc.array(path, { maxLength: 12 }),
        fc.tuple(path, path),
        fc.integer({ min: 1, max: 6 }),
        async (paths, [prefix, after], limit) => {
          rmSync(root, { recursive: true, force: true })
          mkdirSync(root, { recursive: true })
          const name = `p/${randomBytes(8).toString('hex')}`
          const directory = `${base}/native-workspaces/${name}`
          const written: string[] = []
          for (const one of paths) {
            try {
              mkdirSync(`${directory}/${one.split('/').slice(0, -1).join('/')}`, { recursive: true })
              writeFileSync(`${directory}/${one}`, '')
              written.push(one)
            } catch {
              // A file stands where a directory would have to be, or the reverse.
            }
          }
          const start = prefix.slice(0, 2)
          const expected = [...new Set(written)]
            .filter((one) => one.startsWith(start) && one > after)
            .toSorted((a, b) => (a < b ? -1 : 1))
            .slice(0, limit)
          const page = await store.list(name, { prefix: start, after, limit })
          expect(page.map((entry) => entry.path)).toEqual(expected)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('list() lets others have their turn, whatever the tree', async () => {
    const { store } = openWorkspaces({ ...LIMITS, workspaceEntries: 100_000 })
    let deep = `${root}/d`
    for (let i = 0; i < 300; i++) deep += '/d'
    mkdirSync(deep, { recursive: true })
    for (let i = 0; i < 3000; i++) mkdirSync(`${deep}/e${i}`)
    let longest = 0
    let last = performance.now()
    const watch = setInterval(() => {
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }, 1)
    const began = performance.now()
    expect(await store.list(NAME, ALL)).toEqual([])
    const whole = performance.now() - began
    clearInterval(watch)
    expect(longest).toBeLessThan(Math.max(whole * 0.8, 60))
  })

  it('list() ends a page of very long paths early, and goes on after it', async () => {
    const { store } = openWorkspaces()
    const long = 'n'.repeat(250)
    mkdirSync(`${root}/${[long, long, long].join('/')}`, { recursive: true })
    for (let i = 0; i < 400; i++)
      writeFileSync(`${root}/${[long, long, long].join('/')}/${String(i).padStart(3, '0')}${long.slice(3)}`, '')
    const first = await store.list(NAME, { prefix: '', after: '', limit: 1000 })
    expect(first.length).toBeLessThan(400)
    const second = await store.list(NAME, { prefix: '', after: first.at(-1)!.path, limit: 1000 })
    expect(first.length + second.length).toBe(400)
  })
})

describe('`WorkspaceStore.open()`', () => {
  it('gives as many bytes as it said, when the file grows meanwhile', async () => {
    const { store } = openWorkspaces()
    await put(store, 'file', 'before')
    const file = store.open(NAME, 'file')
    writeFileSync(`${root}/file`, ' and after', { flag: 'a' })
    expect((await file.read(100)).toString()).toBe('before')
    expect((await file.read(100)).length).toBe(0)
    file.close()
  })

  it('fails rather than end early, when the file is cut meanwhile', async () => {
    const { store } = openWorkspaces()
    await put(store, 'file', '0123456789')
    const file = store.open(NAME, 'file')
    expect((await file.read(4)).toString()).toBe('0123')
    writeFileSync(`${root}/file`, '')
    await expect(file.read(4)).rejects.toMatchObject({ code: 'storage_unavailable' })
    file.close()
  })

  it('keeps a removed file in the quota until the last byte of it is let go', async () => {
    const { workspaces, store } = openWorkspaces()
    await put(store, 'file', '0123456789')
    const file = store.open(NAME, 'file')
    store.remove(NAME, 'file')
    expect([quotaOf(workspaces).bytes, quotaOf(workspaces).entries]).toEqual([10, 1])
    const last = file.read(10)
    file.close()
    expect(quotaOf(workspaces).bytes).toBe(10)
    expect((await last).toString()).toBe('0123456789')
    expect([quotaOf(workspaces).bytes, quotaOf(workspaces).entries]).toEqual([0, 0])
  })
})
