// Properties of the file broker over random trees and requests. fast-check prints the seed of a failure.
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { FileBroker } from '../../src/sandbox/supervisor/files/broker.ts'
import { codeOf } from '../../src/sandbox/supervisor/files/refusal.ts'
import { type Resolve, resolveByKernel, resolveByWalk } from '../../src/sandbox/supervisor/files/resolve.ts'
import * as system from '../../src/sandbox/supervisor/files/system.ts'
import { WorkspaceStore } from '../../src/sandbox/supervisor/files/workspace-files.ts'
import { Workspaces } from '../../src/sandbox/supervisor/files/workspaces.ts'
import { FILE_OP, NO_HANDLE } from '../../src/sandbox/wire/files.ts'
import { clientOf, CREATE, DIRECTORY, EXCLUSIVE, FOLLOW, READ, type Op, TRUNCATE, WRITE } from './files-client.ts'

const base = mkdtempSync(join(tmpdir(), 'brain-properties-'))
afterAll(() => rmSync(base, { recursive: true }))

let made = 0
const freshDirectory = (): string => {
  const path = `${base}/${made++}`
  mkdirSync(path)
  return path
}

const name = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof({ weight: 6, arbitrary: name }, { weight: 1, arbitrary: fc.constantFrom('.', '..', '', '...') })
const path = fc.array(step, { minLength: 1, maxLength: 5 }).map((steps) => steps.join('/'))
const relativePath = path.filter((text) => text !== '' && !text.startsWith('/'))

type Planted = { readonly at: string; readonly kind: 'file' | 'directory' | 'link'; readonly target: string }
const planted: fc.Arbitrary<Planted> = fc.record({
  at: fc.array(name, { minLength: 1, maxLength: 3 }).map((steps) => steps.join('/')),
  kind: fc.constantFrom('file', 'directory', 'link'),
  target: fc.oneof(
    path.filter((text) => text !== ''),
    fc.constantFrom('/etc', '../../outside'),
  ),
})

function plant(root: string, things: readonly Planted[]): void {
  for (const { at, kind, target } of things) {
    try {
      if (kind === 'directory') mkdirSync(`${root}/${at}`, { recursive: true })
      else if (kind === 'file') writeFileSync(`${root}/${at}`, at)
      else symlinkSync(target, `${root}/${at}`)
    } catch {
      // Its place is taken, or there is none: the tree is what the others make of it.
    }
  }
}

it('both ways of resolving find the same object, or refuse with the same code', () => {
  fc.assert(
    fc.property(
      fc.array(planted, { maxLength: 14 }),
      fc.array(relativePath, { minLength: 8, maxLength: 8 }),
      (things, paths) => {
        const root = freshDirectory()
        plant(root, things)
        const directory = openSync(root, system.O_PATH | system.O_DIRECTORY)
        const outcome = (resolve: Resolve, text: string, flags: number): string => {
          try {
            const fd = resolve(directory, Buffer.from(text), flags)
            const { inode, kind } = system.statOf(fd)
            closeSync(fd)
            return `${kind} ${inode}`
          } catch (error) {
            return codeOf(error)
          }
        }
        for (const text of paths)
          for (const flags of [0, system.O_NOFOLLOW, system.O_DIRECTORY, system.O_DIRECTORY | system.O_NOFOLLOW])
            expect(outcome(resolveByWalk, text, flags), `${text} ${flags}`).toBe(outcome(resolveByKernel, text, flags))
        closeSync(directory)
      },
    ),
    { numRuns: 150 },
  )
})

type Action = {
  readonly who: 0 | 1
  readonly op: Op
  readonly path: string
  readonly second: string
  readonly bits: number
  readonly handle: number
  readonly size: number
  readonly at: number
}
/** Few names, so that requests meet: mostly plain ones in the directory itself. */
const place = fc.oneof(
  { weight: 5, arbitrary: name },
  { weight: 2, arbitrary: fc.tuple(name, name).map((steps) => steps.join('/')) },
  { weight: 1, arbitrary: relativePath },
)
const bits = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(CREATE | WRITE, FOLLOW | CREATE | READ | WRITE, READ | WRITE, WRITE | TRUNCATE),
  },
  { weight: 1, arbitrary: fc.nat(FOLLOW | CREATE | DIRECTORY | EXCLUSIVE | TRUNCATE | READ | WRITE) },
)
const action: fc.Arbitrary<Action> = fc.record({
  who: fc.constantFrom(0, 1),
  op: fc.constantFrom<Op>(
    ...([
      'OPEN',
      'OPEN',
      'OPEN',
      'OPEN',
      'CLOSE',
      'WRITE',
      'WRITE',
      'WRITE',
      'APPEND',
      'SET_SIZE',
      'SET_SIZE',
    ] as const),
    ...(['MAKE_DIRECTORY', 'REMOVE_DIRECTORY', 'UNLINK', 'UNLINK', 'RENAME', 'RENAME', 'SYMLINK', 'LIST'] as const),
  ),
  path: place,
  second: place,
  bits,
  handle: fc.nat(12),
  size: fc.nat(3000),
  at: fc.nat(5000),
})

it('counters equal what is on the disk, after any requests of two calls', () => {
  fc.assert(
    fc.property(
      fc.array(planted, { maxLength: 6 }),
      fc.array(action, { minLength: 10, maxLength: 80, size: 'max' }),
      (things, actions) => {
        const data = freshDirectory()
        mkdirSync(`${data}/native-workspaces/s/e`, { recursive: true })
        plant(`${data}/native-workspaces/s/e`, things)
        const limits = { workspaceBytes: 20_000, workspaceEntries: 25, scratchBytes: 1000 }
        const workspaces = new Workspaces(data, limits)
        const brokers = [0, 1].map(
          () =>
            new FileBroker(workspaces.openMounts([{ guest: '/workspace', workspace: 's/e', write: true }], {}, 0), {
              openFiles: 8,
              fileOps: 0,
              readBytes: 1000,
            }),
        )
        const clients = brokers.map(clientOf)
        const quota = workspaces.use('s/e').tree.quota
        const opened: number[][] = [[], []]
        for (const { who, op, path: one, second, bits, handle: pick, size, at } of actions) {
          const named = op === 'WRITE' || op === 'APPEND' || op === 'SET_SIZE' || op === 'CLOSE'
          const handle = named ? (opened[who]!.at(pick % Math.max(1, opened[who]!.length)) ?? pick) : 0
          const two = op === 'WRITE' || op === 'APPEND' ? Buffer.alloc(size) : second
          const { code, value } = clients[who]!.ask(op, {
            handle,
            other: op === 'RENAME' ? 0 : NO_HANDLE,
            one,
            two,
            bits,
            a: size,
            b: at,
          })
          if (code === 'ok' && op === 'OPEN') opened[who]!.push(value)
          if (op === 'CLOSE') opened[who] = opened[who]!.filter((open) => open !== handle)
          expect(quota.bytes).toBeLessThanOrEqual(limits.workspaceBytes)
          expect(quota.entries).toBeLessThanOrEqual(limits.workspaceEntries)
        }
        for (const broker of brokers) broker.close()
        const recount = new Workspaces(data, limits)
        const { bytes, entries } = recount.use('s/e').tree.quota
        expect({ bytes: quota.bytes, entries: quota.entries }).toEqual({ bytes, entries })
        workspaces.close()
        recount.close()
      },
    ),
    { numRuns: 150 },
  )
})

it('answers any bytes, and never throws', () => {
  const data = freshDirectory()
  const workspaces = new Workspaces(data, { workspaceBytes: 1000, workspaceEntries: 20, scratchBytes: 1000 })
  const mounts = workspaces.openMounts([{ guest: '/workspace', workspace: 's/e', write: true }], { A: 'secret' }, 0)
  const broker = new FileBroker(mounts, { openFiles: 8, fileOps: 0, readBytes: 1000 })
  const ops = Object.values(FILE_OP)
  const bytes = fc
    .tuple(fc.constantFrom(...ops), fc.uint8Array({ maxLength: 90 }), fc.nat(3), fc.nat(60))
    .map(([op, rest, handle, one]) => {
      const request = Buffer.from([op, ...rest])
      if (request.length >= 36) {
        request.writeUInt32LE(handle, 4)
        request.writeUInt32LE(one, 32)
      }
      return request
    })
  fc.assert(
    fc.property(bytes, (request) => {
      const [head, ...more] = broker.answer(request)
      expect(head).toHaveLength(48)
      expect(more.length).toBeLessThanOrEqual(1)
    }),
    { numRuns: 3000 },
  )
  broker.close()
  workspaces.close()
})

it('uploads to one path at a time leave one whole file, and counters that are right', async () => {
  const data = freshDirectory()
  const limits = { workspaceBytes: 1_000_000, workspaceEntries: 100, scratchBytes: 1000 }
  const workspaces = new Workspaces(data, limits)
  const store = new WorkspaceStore(workspaces)
  await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const file = store.create('s/e', 'd/f')
      for (let i = 0; i < 5; i++) await file.write(Buffer.alloc(1000, 97 + index))
      if (index % 4 === 3) file.abort()
      else await file.commit()
    }),
  )
  const file = store.open('s/e', 'd/f')
  const content = await file.read(10_000)
  file.close()
  expect(content).toHaveLength(5000)
  expect(new Set(content).size).toBe(1)
  expect(workspaces.use('s/e').tree.quota).toMatchObject({ bytes: 5000, entries: 2 })
  workspaces.close()
})
