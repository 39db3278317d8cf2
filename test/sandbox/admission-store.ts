import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { defaultLimits, type Limits } from '../../src/contract/limits.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { BrainError } from '../../src/kernel/errors.ts'
import type { ComponentId } from '../../src/kernel/ids.ts'
import { type ComponentStore, openComponents } from '../../src/sandbox/admission/components.ts'
import type { SpawnChild } from '../../src/sandbox/admission/admission-child.ts'
import { loadTranspiler } from '../../src/sandbox/admission/transpiler/program.ts'
import { bundleScript } from '../../src/sandbox/bundle.ts'
import { spawnBoxed } from '../../src/sandbox/launch/spawn-boxed.ts'
import { probeLevel } from '../../src/sandbox/level.ts'
import type { ComponentRole, SandboxLevel } from '../../src/sandbox/sandbox.ts'
import { ajvSchemas } from './admission-schemas.ts'

/** Landlock, which starts quickest: bwrap is not looked for. What is about levels runs at both (levels.ts). */
export const level = await probeLevel({ searchPath: '' })
if (level.name === 'none')
  throw new Error(`admission cannot be tested on this machine, it offers no sandbox: ${level.remarks.join('; ')}`)

const transpiler = await loadTranspiler()
const launcher = await bundleScript(new URL('../../src/sandbox/launch/launcher.ts', import.meta.url).pathname)

export const idOf = (bytes: Uint8Array): ComponentId => createHash('sha256').update(bytes).digest('hex') as ComponentId

/** An upload in pieces, as a socket gives it. */
export async function* chunksOf(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
}

export type OpenedStore = {
  readonly store: ComponentStore
  readonly directory: string
  /** How many transpilers were started; checks of their scripts are not counted. */
  readonly spawned: () => number
  readonly admit: (bytes: Uint8Array, tenant?: string, role?: ComponentRole) => ReturnType<ComponentStore['admit']>
  /** Every path beneath the data directory, sorted. */
  readonly paths: () => Promise<readonly string[]>
  readonly close: () => Promise<void>
}

export type StoreShape = {
  readonly limits?: Partial<Limits>
  /** Kept, and opened again, instead of a new one. */
  readonly directory?: string
  readonly level?: SandboxLevel
  /** For the transpiler alone: what checks its script always is the real one. */
  readonly spawn?: SpawnChild
  readonly now?: () => number
}

export const spawnInBox: SpawnChild = (start, events) => spawnBoxed({ ...start, launcher, level }, events)

/** A store on a real directory, whose transpilers run in real boxes. */
export async function openStore(shape: StoreShape = {}): Promise<OpenedStore> {
  const directory = shape.directory ?? (await mkdtemp(join(tmpdir(), 'brain-admission-')))
  let spawned = 0
  const store = await openComponents({
    directory,
    limits: { ...defaultLimits, ...shape.limits },
    schemas: ajvSchemas(),
    level: shape.level ?? level,
    transpiler: () => Promise.resolve(transpiler),
    spawn: (start, events) => {
      if (start.program === transpiler.scriptCheck) return spawnInBox(start, events)
      spawned++
      return (shape.spawn ?? spawnInBox)(start, events)
    },
    clock: { ...systemClock, now: () => shape.now?.() ?? systemClock.now() },
  })
  return {
    store,
    directory,
    spawned: () => spawned,
    admit: (bytes, tenant = 'local', role) => store.admit(tenant, chunksOf(bytes), role),
    paths: async () => {
      const entries = await readdir(directory, { recursive: true, withFileTypes: true })
      return entries.map((entry) => relative(directory, join(entry.parentPath, entry.name))).toSorted()
    },
    close: async () => {
      await store[Symbol.asyncDispose]()
      if (shape.directory === undefined) await rm(directory, { recursive: true })
    },
  }
}

/** The refusal that a promise ends with. */
export async function refusalOf(admission: Promise<unknown>): Promise<BrainError & { readonly fault: unknown }> {
  const error: unknown = await admission.then(
    () => new Error('it was admitted'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof BrainError)) throw error
  const { details } = error
  const fault = typeof details === 'object' && details !== null && 'fault' in details ? details.fault : undefined
  return Object.assign(error, { fault })
}
