import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { SpawnChild } from '../../src/sandbox/admission/admission-child.ts'
import { custom, toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import { type OpenedStore, openStore, spawnInBox } from './admission-store.ts'

const MIB = 1024 * 1024
const tool = (name: string, bytes = 0): Buffer =>
  toBuffer(toolComponent({ after: [custom(name, String(bytes).padEnd(bytes + 1))] }))

/** Transpilers that were started: how each can be ended, and when it has. */
let started: { readonly kill: () => void; readonly ended: Promise<void> }[]
const spawn: SpawnChild = (start, events) => {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const child = spawnInBox(start, {
    ...events,
    onExit: (how) => {
      events.onExit(how)
      resolve()
    },
  })
  started.push({ kill: () => child.kill(), ended })
  return child
}

let opened: OpenedStore
beforeAll(async () => {
  opened = await openStore({ spawn })
})
beforeEach(() => {
  started = []
})
afterAll(() => opened.close())

test('prepare() starts the generator of the next admission, once, which then starts none', async () => {
  await opened.store.prepare()
  await opened.store.prepare()
  expect(started).toHaveLength(1)
  const { id } = await opened.admit(tool('first'))
  expect(started).toHaveLength(1)
  await opened.store.ensureArtifact(id)
  await started[0]?.ended
})

test('a generator that was prepared serves one upload alone', async () => {
  await opened.store.prepare()
  await Promise.all([opened.admit(tool('second')), opened.admit(tool('third'))])
  expect(started).toHaveLength(2)
  await Promise.all(started.map(({ ended }) => ended))
})

test('a generator that ended while it waited is replaced', async () => {
  await opened.store.prepare()
  started[0]?.kill()
  await started[0]?.ended
  // What it said last is read before it is over.
  while (started.length < 2) {
    await opened.store.prepare()
    await new Promise(setImmediate)
  }
  await opened.admit(tool('fourth'))
  expect(started).toHaveLength(2)
})

test('a large upload has a generator of its own, whose code is optimised', async () => {
  await opened.store.prepare()
  await opened.admit(tool('large', 5 * MIB))
  expect(started).toHaveLength(2)
  await opened.admit(tool('small'))
  expect(started).toHaveLength(2)
})

test('what was prepared ends with the store', async () => {
  const other = await openStore({ spawn })
  await other.store.prepare()
  await other.close()
  await Promise.all(started.map(({ ended }) => ended))
  await other.store.prepare()
  expect(started).toHaveLength(1)
})
