import { stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../kernel/clock.ts'
import type { ComponentId } from '../../kernel/ids.ts'
import {
  type ArtifactCore,
  artifactDirectory,
  digestOf,
  MANIFEST_FILE,
  printManifest,
  readArtifact,
  SCRIPT_FILE,
  TOOLCHAIN,
} from './artifact.ts'
import { AtomicDirectory, namesIn, writeDurably } from './durable-files.ts'
import type { TranspiledComponent } from './transpile.ts'

/** An artifact used so lately may be about to be read by the supervisor. */
const IN_USE_MS = 60_000

type Entry = { readonly bytes: number; usedAtMs: number; writtenUseMs: number; trusted: boolean }

/** Artifacts on disk: a cache, of which everything can be made again from the uploads. */
export class ArtifactCache {
  readonly #data: string
  readonly #clock: Clock
  readonly #directory: AtomicDirectory
  readonly #entries = new Map<ComponentId, Entry>()

  private constructor(data: string, clock: Clock, directory: AtomicDirectory) {
    this.#data = data
    this.#clock = clock
    this.#directory = directory
  }

  /** Opens the cache; drops what belongs to other toolchains or to components that are gone. */
  static async open(data: string, components: ReadonlySet<ComponentId>, clock: Clock): Promise<ArtifactCache> {
    const root = await AtomicDirectory.open(join(data, 'artifacts'))
    for (const name of await root.names()) if (name !== TOOLCHAIN) await root.take(name)
    const directory = await AtomicDirectory.open(join(root.path, TOOLCHAIN))
    const cache = new ArtifactCache(data, clock, directory)
    const kept = new Map([...components].map((id) => [id as string, id]))
    for (const name of await directory.names()) {
      const id = kept.get(name)
      if (id === undefined) await directory.take(name)
      else await cache.#load(id)
    }
    return cache
  }

  async #load(id: ComponentId): Promise<void> {
    const path = artifactDirectory(this.#data, id)
    let bytes = 0
    let usedAtMs = 0
    for (const name of await namesIn(path)) {
      const status = await stat(join(path, name))
      bytes += status.size
      if (name === MANIFEST_FILE) usedAtMs = status.mtimeMs
    }
    this.#entries.set(id, { bytes, usedAtMs, writtenUseMs: usedAtMs, trusted: false })
  }

  get totalBytes(): number {
    let total = 0
    for (const { bytes } of this.#entries.values()) total += bytes
    return total
  }

  /** Whether this process wrote or checked it, and nobody reported damage since. */
  isTrusted(id: ComponentId): boolean {
    return this.#entries.get(id)?.trusted ?? false
  }

  distrust(id: ComponentId): void {
    const entry = this.#entries.get(id)
    if (entry !== undefined) entry.trusted = false
  }

  /** Reads every byte of it. @returns whether it is usable. */
  async verify(id: ComponentId): Promise<boolean> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return false
    try {
      await readArtifact(this.#data, id)
      entry.trusted = true
      return true
    } catch {
      return false // whatever is wrong with it, it is made again
    }
  }

  /** Notes a use, for the order of eviction. */
  async touch(id: ComponentId): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    entry.usedAtMs = this.#clock.now()
    if (entry.usedAtMs - entry.writtenUseMs < IN_USE_MS) return
    entry.writtenUseMs = entry.usedAtMs
    const seconds = entry.usedAtMs / 1000
    await utimes(join(artifactDirectory(this.#data, id), MANIFEST_FILE), seconds, seconds).catch(() => {})
  }

  /** Stores what the transpiler made of `upload`; durable on return. Digests are ours, over the bytes that we hold. */
  async write(id: ComponentId, made: TranspiledComponent, upload: Buffer): Promise<void> {
    const staged = await this.#directory.stage()
    try {
      const cores: ArtifactCore[] = []
      let bytes = made.js.length
      for (const [index, core] of made.cores.entries()) {
        const { name } = core
        if ('bytes' in core) {
          const file = `core-${index}.wasm`
          await writeDurably(join(staged, file), core.bytes)
          bytes += core.bytes.length
          cores.push({ name, sha256: await digestOf(core.bytes), size: core.bytes.length, file })
        } else {
          const { offset, size } = core
          cores.push({ name, sha256: await digestOf(upload.subarray(offset, offset + size)), size, offset })
        }
      }
      await writeDurably(join(staged, SCRIPT_FILE), made.js)
      const js = { sha256: await digestOf(made.js), size: made.js.length }
      const manifest = printManifest({ component: id, js, cores })
      await writeDurably(join(staged, MANIFEST_FILE), manifest)
      await this.#directory.place(staged, id)
      const now = this.#clock.now()
      const entry = { bytes: bytes + manifest.length, usedAtMs: now, writtenUseMs: now, trusted: true }
      this.#entries.set(id, entry)
    } finally {
      await this.#directory.discard(staged)
    }
  }

  async remove(id: ComponentId): Promise<void> {
    this.#entries.delete(id)
    await this.#directory.take(id)
  }

  /** The artifact that was not used for the longest time, if there is one that nobody is about to read. */
  leastRecentlyUsed(): ComponentId | undefined {
    const idle = [...this.#entries].filter(([, entry]) => this.#isIdle(entry))
    return idle.toSorted(([, a], [, b]) => a.usedAtMs - b.usedAtMs)[0]?.[0]
  }

  /** Removes an artifact unless it came into use meanwhile. */
  async evict(id: ComponentId): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry !== undefined && this.#isIdle(entry)) await this.remove(id)
  }

  #isIdle(entry: Entry): boolean {
    return this.#clock.now() - entry.usedAtMs >= IN_USE_MS
  }
}
