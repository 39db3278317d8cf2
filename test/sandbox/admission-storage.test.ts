import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BrainError } from '../../src/kernel/errors.ts'
import type { ComponentId } from '../../src/kernel/ids.ts'
import { artifactDirectory, componentFile, readArtifact, SCRIPT_FILE } from '../../src/sandbox/admission/artifact.ts'
import type { SpawnChild } from '../../src/sandbox/admission/admission-child.ts'
import { isAlive } from '../support/processes.ts'
import { soakOr } from '../support/soak.ts'
import { custom, toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import {
  chunksOf,
  idOf,
  type OpenedStore,
  openStore,
  refusalOf,
  spawnInBox,
  type StoreShape,
} from './admission-store.ts'

const tool = (number: number): Buffer => toBuffer(toolComponent({ after: [custom('number', String(number))] }))
/** A tool of exactly so many bytes. */
function toolOf(size: number): Buffer {
  const padded = (padding: number) => toBuffer(toolComponent({ after: [custom('padding', Buffer.alloc(padding))] }))
  const guess = size - padded(size - 1000).length + size - 1000
  return padded(guess)
}

const opened: OpenedStore[] = []
async function open(shape: StoreShape = {}): Promise<OpenedStore> {
  const one = await openStore(shape)
  opened.push(one)
  return one
}
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'brain-admission-'))
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
  await rm(directory, { recursive: true })
})

/** A new process on the same directory. */
const reopen = (shape: StoreShape = {}) => open({ ...shape, directory })

describe('admit()', () => {
  test('answers what get() and list() answer, also after a restart', async () => {
    const metadata = { name: 'tool', description: 'Does nothing', input_schema: { type: 'object' } }
    const bytes = toBuffer(toolComponent({ after: [custom('brain:tool-metadata', JSON.stringify(metadata))] }))
    const first = await reopen({ now: () => 1_700_000_000_000 })
    const admitted = await first.admit(bytes)
    const expected = {
      id: idOf(bytes),
      role: 'tool',
      bytes: bytes.length,
      imports: ['brain:tool/types'],
      metadata,
      admittedAtMs: 1_700_000_000_000,
    }
    expect(admitted).toEqual(expected)
    for (const { store } of [first, await reopen()]) {
      expect(await store.get('local', admitted.id)).toEqual(expected)
      expect(await store.list('local')).toEqual([expected])
    }
  })

  test('does no work for bytes that it has', async () => {
    const { admit, spawned, paths, store } = await reopen()
    const first = await admit(tool(1))
    const before = await paths()
    expect(await admit(tool(1))).toEqual(first)
    expect(spawned()).toBe(1)
    expect(await paths()).toEqual(before)
    await store[Symbol.asyncDispose]()
    const again = await reopen()
    expect(await again.admit(tool(1))).toEqual(first)
    expect(again.spawned()).toBe(0)
  })

  test('transpiles once when the same bytes come many times at once', async () => {
    const { admit, spawned, store } = await reopen()
    const admitted = await Promise.all(Array.from({ length: 12 }, (_, i) => admit(tool(1), `tenant-${i % 3}`)))
    expect(new Set(admitted.map(({ id }) => id))).toEqual(new Set([idOf(tool(1))]))
    expect(spawned()).toBe(1)
    for (const tenant of ['tenant-0', 'tenant-1', 'tenant-2']) expect(await store.list(tenant)).toHaveLength(1)
  })

  test('tells all who wait for the same bad bytes', async () => {
    const { admit, spawned } = await reopen()
    const bad = toBuffer(toolComponent({ run: [0x42, 0x00] }))
    const refused = await Promise.all(Array.from({ length: 5 }, () => refusalOf(admit(bad))))
    expect(refused.map(({ fault }) => fault)).toEqual(Array.from({ length: 5 }, () => 'malformed'))
    expect(spawned()).toBe(1)
  })

  test('transpiles two at once, lets sixteen wait and turns the rest away', async () => {
    let running = 0
    let most = 0
    const counting: SpawnChild = (start, events) => {
      most = Math.max(most, ++running)
      let over = false
      const end = () => {
        if (!over) running--
        over = true
      }
      const box = spawnInBox(start, {
        ...events,
        onExit: (how) => {
          end()
          events.onExit(how)
        },
      })
      return {
        ...box,
        kill: () => {
          end()
          box.kill()
        },
      }
    }
    const { admit, store } = await reopen({ spawn: counting })
    const ends = await Promise.allSettled(Array.from({ length: 22 }, (_, i) => admit(tool(i))))
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
    expect(failures).toHaveLength(4)
    for (const failure of failures) expect(failure).toMatchObject({ code: 'overloaded', retryable: true })
    expect(most).toBe(2)
    expect(await store.list('local')).toHaveLength(18)
    expect((await admit(tool(99))).id).toBe(idOf(tool(99)))
  })

  test('accepts exactly the limit, and stops reading one byte later', async () => {
    const limit = 1024 * 1024
    const { store, admit, paths } = await reopen({ limits: { packageBytes: limit } })
    const exact = toolOf(limit)
    expect(exact).toHaveLength(limit)
    expect((await admit(exact)).bytes).toBe(limit)
    const before = await paths()
    const above = await refusalOf(admit(toolOf(limit + 1)))
    expect(above).toMatchObject({ code: 'invalid_request', body: 'too_large', fault: 'too_large' })

    let pulled = 0
    let closed = false
    async function* endless() {
      try {
        for (;;) {
          pulled += 64 * 1024
          yield await Promise.resolve(Buffer.alloc(64 * 1024))
        }
      } finally {
        closed = true
      }
    }
    expect(await refusalOf(store.admit('local', endless()))).toMatchObject({ body: 'too_large' })
    expect(pulled).toBe(limit + 64 * 1024)
    expect(closed).toBe(true)
    expect(await paths()).toEqual(before)
  })

  test('keeps nothing of an upload that breaks off', async () => {
    const { store, paths } = await reopen()
    const before = await paths()
    async function* broken() {
      yield await Promise.resolve(tool(1).subarray(0, 50))
      throw new Error('connection reset')
    }
    await expect(store.admit('local', broken())).rejects.toThrow('connection reset')
    expect(await paths()).toEqual(before)
  })

  test('refuses when uploads alone fill the allowance, saying what to do', async () => {
    const { admit, store } = await reopen({ limits: { componentsBytes: tool(1).length + 10 } })
    await admit(tool(1))
    const refused = await refusalOf(admit(tool(2)))
    expect(refused.code).toBe('storage_unavailable')
    expect(refused.message).toMatch(/BRAIN_MAX_COMPONENTS_BYTES.*Delete some/)
    await store.remove('local', idOf(tool(1)))
    expect((await admit(tool(2))).id).toBe(idOf(tool(2)))
  })

  test('is ended by the end of the store, which leaves no process', async () => {
    let pid = 0
    const silent: SpawnChild = (start, events) => {
      const box = spawnInBox(start, { ...events, onChannel: { onBytes: () => {} } })
      pid = box.pid
      return box
    }
    const { admit, store, paths } = await reopen({ spawn: silent })
    const before = await paths()
    const admission = refusalOf(admit(tool(1)))
    while (pid === 0) await new Promise((resolve) => setImmediate(resolve))
    await store[Symbol.asyncDispose]()
    expect(await admission).toMatchObject({ code: 'overloaded' })
    expect(await refusalOf(admit(tool(1)))).toMatchObject({ code: 'overloaded' })
    expect(await paths()).toEqual(before)
    await expect.poll(() => isAlive(pid)).toBe(false)
  })
})

describe('tenants', () => {
  test('see only what they admitted, and the bytes go with the last of them', async () => {
    const { admit, store, spawned, paths } = await reopen()
    const empty = await paths()
    const { id } = await admit(tool(1), 'one')
    expect(await store.get('two', id)).toBeUndefined()
    expect(await store.list('two')).toEqual([])
    expect(await store.remove('two', id)).toBe(false)
    await admit(tool(1), 'two')
    expect(spawned()).toBe(1)
    expect(await store.remove('one', id)).toBe(true)
    expect(await store.get('one', id)).toBeUndefined()
    expect(await store.get('two', id)).toMatchObject({ id })
    expect((await readArtifact(directory, id)).id).toBe(id)
    expect(await store.remove('two', id)).toBe(true)
    expect(await store.remove('two', id)).toBe(false)
    expect(await paths()).toEqual(empty)
    await expect(store.ensureArtifact(id)).rejects.toMatchObject({
      code: 'environment_not_ready',
      message: `Cannot load component "${id}": it is not here; upload it again`,
    })
  })

  test('do not learn from a component when another had it', async () => {
    let now = 1_700_000_000_000
    const { admit, store } = await reopen({ now: () => now })
    const first = await admit(tool(1), 'one')
    now += 1000
    const second = await admit(tool(1), 'two')
    expect([first.admittedAtMs, second.admittedAtMs]).toEqual([1_700_000_000_000, 1_700_000_001_000])
    now += 1000
    expect(await admit(tool(1), 'one')).toEqual(first)
    for (const opened of [store, (await reopen()).store]) {
      expect(await opened.get('one', first.id)).toEqual(first)
      expect(await opened.get('two', first.id)).toEqual(second)
    }
  })

  test('may take away what they are still admitting', async () => {
    const { admit, store, paths } = await reopen()
    const empty = await paths()
    for (let round = 0; round < 5; round++) {
      const admission = admit(tool(round))
      let removed = false
      while (!removed) {
        removed = await store.remove('local', idOf(tool(round)))
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect((await admission).id).toBe(idOf(tool(round)))
      expect(await store.list('local')).toEqual([])
    }
    expect(await paths()).toEqual(empty)
  })

  test('are the same after a restart', async () => {
    const { admit, store } = await reopen()
    await admit(tool(1), 'one')
    await admit(tool(1), 'two')
    await admit(tool(2), 'two')
    await store.remove('one', idOf(tool(1)))
    const again = await reopen()
    expect(await again.store.list('one')).toEqual([])
    expect((await again.store.list('two')).map(({ id }) => id)).toEqual([idOf(tool(1)), idOf(tool(2))].toSorted())
  })

  test('admitting and removing at the same time end in one of the two states', async () => {
    const { admit, store } = await reopen()
    const { id } = await admit(tool(1))
    for (let round = 0; round < 10; round++) {
      await Promise.all([admit(tool(1), 'other'), store.remove('local', id), store.remove('other', id)])
      await admit(tool(1))
      expect(await store.get('local', id)).toMatchObject({ id })
      await store.ensureArtifact(id)
      expect((await readArtifact(directory, id)).id).toBe(id)
    }
  })
})

async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at]! ^= 1
  await writeFile(path, bytes)
}

describe('ensureArtifact()', () => {
  const script = (id: ComponentId) => join(artifactDirectory(directory, id), SCRIPT_FILE)

  test('costs nothing for what this process made', async () => {
    const { admit, store, spawned } = await reopen()
    const { id } = await admit(tool(1))
    await store.ensureArtifact(id)
    expect(spawned()).toBe(1)
  })

  test('checks after a restart, and does not transpile what is intact', async () => {
    const { id } = await (await reopen()).admit(tool(1))
    const again = await reopen()
    await again.store.ensureArtifact(id)
    expect(again.spawned()).toBe(0)
  })

  test.each([
    ['a flipped byte in the script', (id: ComponentId) => flip(script(id), 5000)],
    [
      'a flipped byte in the manifest',
      (id: ComponentId) => flip(join(artifactDirectory(directory, id), 'manifest'), 70),
    ],
    ['a cut script', (id: ComponentId) => truncate(script(id), 10)],
    ['no script', (id: ComponentId) => rm(script(id))],
    ['no artifact', (id: ComponentId) => rm(artifactDirectory(directory, id), { recursive: true })],
  ])('makes an artifact again that has %s', async (_what, damage) => {
    const first = await reopen()
    const { id } = await first.admit(tool(1))
    const intact = await readArtifact(directory, id)
    await damage(id)
    await expect(readArtifact(directory, id)).rejects.toMatchObject({ code: 'environment_not_ready' })
    first.store.distrustArtifact(id)
    await Promise.all([1, 2, 3].map(() => first.store.ensureArtifact(id)))
    expect(first.spawned()).toBe(2)
    expect(await readArtifact(directory, id)).toEqual(intact)

    await damage(id)
    const again = await reopen()
    await again.store.ensureArtifact(id)
    expect(again.spawned()).toBe(1)
    expect(await readArtifact(directory, id)).toEqual(intact)
  })

  test('refuses when the stored upload is damaged, and an upload of the same bytes repairs it for all', async () => {
    const { admit, store } = await reopen()
    const { id } = await admit(tool(1), 'one')
    await admit(tool(1), 'two')
    await flip(componentFile(directory, id), 300)
    store.distrustArtifact(id)
    const error: unknown = await store.ensureArtifact(id).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(BrainError)
    expect(error).toMatchObject({ code: 'environment_not_ready', message: expect.stringMatching(/upload it again/) })
    await admit(tool(1), 'one')
    await store.ensureArtifact(id)
    expect((await readArtifact(directory, id)).id).toBe(id)
    for (const tenant of ['one', 'two']) expect(await (await reopen()).store.get(tenant, id)).toMatchObject({ id })
  })

  test('makes an artifact again that was evicted as the least recently used', async () => {
    let now = 1_700_000_000_000
    const minutes = (count: number) => {
      now += count * 60_000
    }
    const { admit, store, spawned } = await reopen({ now: () => now, limits: { componentsBytes: 300 * 1024 } })
    const ids: ComponentId[] = []
    for (const number of [1, 2, 3]) {
      ids.push((await admit(tool(number))).id) // about 100 KB each
      minutes(2)
    }
    await store.ensureArtifact(ids[0]!) // now the second is the oldest
    minutes(2)
    await admit(tool(4))
    expect(ids.map((id) => existsSync(artifactDirectory(directory, id)))).toEqual([true, false, true])
    expect(await store.list('local')).toHaveLength(4)
    await store.ensureArtifact(ids[1]!)
    expect(spawned()).toBe(5)
    expect((await readArtifact(directory, ids[1]!)).id).toBe(ids[1])
  })
})

describe('openComponents()', () => {
  test('removes artifacts of other toolchains and of components that are gone', async () => {
    const { admit, store, paths } = await reopen()
    await admit(tool(1))
    const before = await paths()
    await mkdir(join(directory, 'artifacts', 'jco-0.1', 'a'.repeat(64)), { recursive: true })
    await mkdir(artifactDirectory(directory, 'b'.repeat(64) as ComponentId))
    await store[Symbol.asyncDispose]()
    expect(await (await reopen()).paths()).toEqual(before)
  })

  test.each(['components', 'artifacts'])('refuses a link in the place of %s', async (name) => {
    await symlink(tmpdir(), join(directory, name))
    await expect(reopen()).rejects.toMatchObject({ code: 'storage_unavailable' })
  })

  test('shows the others when one record is damaged', async () => {
    const { admit, store } = await reopen()
    const { id } = await admit(tool(1))
    await admit(tool(2))
    await writeFile(join(directory, 'components', id, 'component.json'), '{')
    expect((await store.list('local')).map((one) => one.id)).toEqual([idOf(tool(2))])
    await expect(store.get('local', id)).rejects.toMatchObject({ code: 'storage_unavailable' })
    await admit(tool(1))
    expect(await store.get('local', id)).toMatchObject({ id })
  })
})

describe('kill -9 of the server', () => {
  const child = new URL('./admission-crash-child.ts', import.meta.url).pathname

  function start(stopAt: string): { readonly process: ChildProcess; readonly reached: AsyncIterator<string> } {
    const server = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', child, directory, stopAt], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return { process: server, reached: createInterface({ input: server.stdout! })[Symbol.asyncIterator]() }
  }

  async function until(reached: AsyncIterator<string>, place: string): Promise<string> {
    for (;;) {
      const next = await reached.next()
      if (next.done === true) throw new Error(`the server ended before "${place}"`)
      if (next.value.startsWith(place)) return next.value
    }
  }

  async function kill(server: ChildProcess): Promise<void> {
    const gone = once(server, 'exit')
    server.kill('SIGKILL')
    await gone
  }

  test.each(['upload', 'transpile'])(
    'in the middle of the %s leaves only what the next start sweeps',
    async (place) => {
      const empty = await (await open()).paths()
      const server = start(place)
      const said = await until(server.reached, place)
      await kill(server.process)
      const again = await reopen()
      expect(await again.paths()).toEqual(empty)
      expect(await again.store.list('local')).toEqual([])
      const pid = Number(said.split(' ')[1] ?? 0)
      if (pid > 0) await expect.poll(() => isAlive(pid)).toBe(false)
    },
  )

  test('at any moment leaves the whole component or none', async () => {
    const outcomes = new Set<number>()
    const rounds = soakOr(10, 5)
    for (let round = 0; round < rounds; round++) {
      const server = start('never')
      await until(server.reached, round === rounds - 1 ? 'admitted' : 'transpile')
      // The time is what is tested here: somewhere in transpiling, writing and moving.
      await new Promise((resolve) => setTimeout(resolve, 80 + (round / rounds) * 120))
      await kill(server.process)
      const again = await reopen()
      const components = await again.store.list('local')
      outcomes.add(components.length)
      for (const { id } of components) {
        await again.store.ensureArtifact(id)
        expect(again.spawned()).toBe(0)
        expect((await readArtifact(directory, id)).id).toBe(id)
        await again.store.remove('local', id)
      }
      expect((await again.paths()).filter((path) => path.includes('.wasm') || path.includes('manifest'))).toEqual([])
    }
    expect(outcomes.has(1)).toBe(true)
  })
})

test('an upload in small pieces is the same upload', async () => {
  const { store } = await reopen()
  expect((await store.admit('local', chunksOf(tool(1), 7))).id).toBe(idOf(tool(1)))
})
