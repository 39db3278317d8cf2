import { join } from 'node:path'
import type { Clock } from '../../kernel/clock.ts'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { ComponentId } from '../../kernel/ids.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import type { SchemaChecker } from '../../contract/schema-checker.ts'
import type { Component, ComponentRole, Components, SandboxLevel } from '../sandbox.ts'
import type { SpawnChild } from './admission-child.ts'
import { AdmissionChildren } from './admission-children.ts'
import { componentFile, digestOf, readOwnFile } from './artifact.ts'
import { ArtifactCache } from './artifact-cache.ts'
import { ComponentFiles, type StoredComponent, UPLOAD } from './component-files.ts'
import { codeOf, onStorage } from './durable-files.ts'
import { type Gated, gate } from './gate.ts'
import { KeyedQueue } from './keyed-queue.ts'
import { Limiter } from './limiter.ts'
import { readMetadata } from './metadata.ts'
import type { ScriptCheck } from './script-check.ts'
import { SingleFlight } from './single-flight.ts'
import type { TranspileSettings } from './transpile.ts'
import type { TranspilerProgram } from './transpiler/program.ts'
import { receiveUpload, type Upload } from './upload.ts'

/** Admissions that wait for one of BRAIN_MAX_ADMISSIONS places (contract A13). */
const MAX_WAITING = 16
/** Uploads that are received or admitted at the same time; each holds a file of at most BRAIN_MAX_PACKAGE_BYTES. */
const MAX_UPLOADS = 64
/** How often a grant starts again because another tenant removed the component meanwhile. */
const MAX_ROUNDS = 8

export type ComponentsSettings = {
  /** The data directory; `components/` and `artifacts/` beneath it are ours. */
  readonly directory: string
  readonly limits: Limits
  readonly schemas: SchemaChecker
  readonly level: SandboxLevel
  /** Asked for when an artifact is made, which most opened stores never do. */
  readonly transpiler: () => Promise<TranspilerProgram>
  /** Starts the children of admission in boxes of the level. */
  readonly spawn: SpawnChild
  readonly clock: Clock
}

/** The `Components` port, and what the binding needs to run them. */
export interface ComponentStore extends Components {
  /** Says that `readArtifact` failed: the next {@link ensureArtifact} checks every byte and makes it again. */
  distrustArtifact(id: ComponentId): void
  /** Starts now what the next admission would start. What goes wrong with that is told by the admission. */
  prepare(): Promise<void>
}

/**
 * Opens the components of a data directory and removes what a killed process left unfinished there.
 *
 * @throws BrainError `storage_unavailable` when the directory cannot be used.
 */
export async function openComponents(settings: ComponentsSettings): Promise<ComponentStore> {
  return await onStorage('open the components', async () => {
    const files = await ComponentFiles.open(settings.directory)
    const artifacts = await ArtifactCache.open(settings.directory, files.ids, settings.clock)
    return new StoredComponents(settings, files, artifacts)
  })
}

/** One upload on its way. */
type Attempt = Upload & {
  readonly role: ComponentRole
  readonly staged: string
  readonly tenant: string
  readonly atMs: number
  installed: boolean
}

class StoredComponents implements ComponentStore {
  readonly #settings: ComponentsSettings
  readonly #files: ComponentFiles
  readonly #artifacts: ArtifactCache
  readonly #places: Limiter
  readonly #admissions = new SingleFlight<StoredComponent>()
  readonly #rebuilds = new SingleFlight<void>()
  /** Changes to the files of one component. */
  readonly #changes = new KeyedQueue()
  readonly #closing = new AbortController()
  readonly #children = new AdmissionChildren()
  #uploads = 0

  constructor(settings: ComponentsSettings, files: ComponentFiles, artifacts: ArtifactCache) {
    this.#settings = settings
    this.#files = files
    this.#artifacts = artifacts
    this.#places = new Limiter(settings.limits.admissions, MAX_WAITING)
  }

  async admit(tenant: string, upload: AsyncIterable<Uint8Array>, role: ComponentRole = 'tool'): Promise<Component> {
    this.#checkLevel()
    if (this.#closing.signal.aborted || this.#uploads >= MAX_UPLOADS) throw tooBusy()
    this.#uploads++
    try {
      return await this.#admit(tenant, upload, role)
    } finally {
      this.#uploads--
    }
  }

  #checkLevel(): void {
    const { level } = this.#settings
    if (level.name !== 'none' || level.unsafe) return
    const why = level.remarks.join('; ')
    throw new BrainError(
      'sandbox_unavailable',
      `Cannot admit components: this machine offers no sandbox${why === '' ? '' : ` (${why})`}. ` +
        'Use Linux 5.13 or later with landlock and seccomp, or set BRAIN_ENV_UNSAFE=1 to run components unprotected',
    )
  }

  async #admit(tenant: string, chunks: AsyncIterable<Uint8Array>, role: ComponentRole): Promise<Component> {
    const staged = await onStorage('store the upload', () => this.#files.stage())
    try {
      const { limits, clock } = this.#settings
      const upload = await receiveUpload(chunks, staged, limits)
      const attempt: Attempt = { ...upload, role, staged, tenant, atMs: clock.now(), installed: false }
      for (let round = 0; round < MAX_ROUNDS; round++) {
        // Of the same bytes at most one role is admitted: who asks for another one is told why by an attempt of its own.
        const component = await this.#admissions.run(`${role} ${upload.id}`, () => this.#prepare(attempt))
        const granted = await this.#change(upload.id, () => this.#files.grant(tenant, upload.id, attempt.atMs))
        // Installed by this very upload and gone already: its tenant took it away again.
        const admittedAtMs = granted ?? (attempt.installed ? attempt.atMs : undefined)
        if (admittedAtMs !== undefined) return { ...component, admittedAtMs }
      }
      throw tooBusy()
    } finally {
      await onStorage('remove an upload', () => this.#files.discard(staged))
    }
  }

  #change<T>(id: ComponentId, work: () => Promise<T>): Promise<T> {
    return onStorage('store the component', () => this.#changes.run(id, work))
  }

  async #prepare(attempt: Attempt): Promise<StoredComponent> {
    const stored = await this.#files.readIntact(attempt.id)
    if (stored?.role === attempt.role) return stored
    return await this.#places.run(() => this.#judge(attempt), tooBusy)
  }

  async #judge(attempt: Attempt): Promise<StoredComponent> {
    const { id, role, bytes: size, staged } = attempt
    const { limits, schemas } = this.#settings
    const bytes = await onStorage('read the upload', () => readOwnFile(join(staged, UPLOAD), limits.packageBytes))
    const gated = gate(bytes, limits, role)
    const isSaid = role === 'tool' && gated.metadata !== undefined
    const said = isSaid ? { metadata: await readMetadata(gated.metadata, schemas) } : {}
    const component: StoredComponent = { id, role, bytes: size, imports: gated.imports, ...said }
    this.#checkRoom(size)
    try {
      // The artifact first: whoever sees the component can run it at once.
      await this.#makeArtifact(id, bytes, gated)
      await this.#change(id, () => this.#files.install(staged, component, attempt))
      attempt.installed = true
      return component
    } catch (error) {
      await this.#artifacts.remove(id).catch(() => {}) // the first error is the one to tell
      throw error
    }
  }

  /** Uploads are never evicted: when they alone fill the allowance, nothing more is taken. */
  #checkRoom(bytes: number): void {
    const { limits } = this.#settings
    if (this.#files.totalBytes + bytes <= limits.componentsBytes) return
    throw new BrainError(
      'storage_unavailable',
      `Cannot store the component: all components would take more than ${describeLimit('componentsBytes', limits)}. ` +
        'Delete some that are not used',
    )
  }

  async #makeArtifact(id: ComponentId, bytes: Buffer, gated: Gated): Promise<void> {
    const settings = await this.#childSettings()
    let check: ScriptCheck | undefined
    const checking = (): ScriptCheck => (check ??= this.#children.takeCheck(settings))
    try {
      // The check loads while the generator works, and judges while that compiles cores. Not sooner: starting a process
      // keeps this thread, and two in one go would keep it twice as long.
      const onScript = (js: Buffer): void => checking().judge(js)
      const generator = this.#children.takeGenerator(settings, bytes.length)
      const work = { upload: bytes, modules: gated.modules }
      const { cores } = await generator.transpile(work, { onReady: checking, onScript })
      const js = await checking().script
      await this.#change(id, () => this.#artifacts.write(id, { js, cores }, bytes))
    } finally {
      check?.close()
    }
    await this.#evict()
  }

  async #childSettings(): Promise<TranspileSettings> {
    return { ...this.#settings, transpiler: await this.#settings.transpiler(), signal: this.#closing.signal }
  }

  async prepare(): Promise<void> {
    const settings = await this.#childSettings().catch(() => undefined)
    if (settings !== undefined && !this.#closing.signal.aborted) this.#children.prepare(settings)
  }

  /** Makes artifacts fit beside the uploads again; the ones in use stay whatever they take. */
  async #evict(): Promise<void> {
    const { componentsBytes } = this.#settings.limits
    while (this.#artifacts.totalBytes + this.#files.totalBytes > componentsBytes) {
      const id = this.#artifacts.leastRecentlyUsed()
      if (id === undefined) return
      await this.#change(id, () => this.#artifacts.evict(id))
    }
  }

  async get(tenant: string, id: ComponentId): Promise<Component | undefined> {
    const admittedAtMs = this.#files.admittedAtMs(tenant, id)
    return admittedAtMs === undefined ? undefined : { ...(await this.#files.read(id)), admittedAtMs }
  }

  async list(tenant: string): Promise<readonly Component[]> {
    const components: Component[] = []
    for (const id of this.#files.list(tenant)) {
      // One damaged record must not hide the others; `get` tells what is wrong with it.
      const component = await this.get(tenant, id).catch(() => undefined)
      if (component !== undefined) components.push(component)
    }
    return components
  }

  async remove(tenant: string, id: ComponentId): Promise<boolean> {
    return await this.#change(id, async () => {
      if (this.#files.admittedAtMs(tenant, id) === undefined) return false
      const isLeft = await this.#files.release(tenant, id)
      if (!isLeft) await this.#artifacts.remove(id)
      return true
    })
  }

  async ensureArtifact(id: ComponentId): Promise<void> {
    if (!this.#artifacts.isTrusted(id)) await this.#rebuilds.run(id, () => this.#restore(id))
    await this.#artifacts.touch(id)
  }

  distrustArtifact(id: ComponentId): void {
    this.#artifacts.distrust(id)
  }

  async #restore(id: ComponentId): Promise<void> {
    if (await this.#artifacts.verify(id)) return
    try {
      this.#checkLevel()
      await this.#places.run(async () => {
        const { limits, directory } = this.#settings
        const bytes = await readOwnFile(componentFile(directory, id), limits.componentsBytes)
        if ((await digestOf(bytes)) !== id) throw new Error('its stored bytes are damaged; upload it again')
        const { role } = await this.#files.read(id)
        await this.#makeArtifact(id, bytes, gate(bytes, limits, role))
      }, tooBusy)
    } catch (cause) {
      if (cause instanceof BrainError && cause.code === 'overloaded') throw cause
      throw new BrainError('environment_not_ready', `Cannot load component "${id}": ${reasonOf(cause)}`, { cause })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all([this.#admissions.idle(), this.#rebuilds.idle()])
  }
}

/** What the system says of a file names our directories: a session that names a component that is gone is told none. */
function reasonOf(cause: unknown): string {
  const code = cause instanceof BrainError ? undefined : codeOf(cause)
  return code === 'ENOENT' ? 'it is not here; upload it again' : (code ?? messageOf(cause))
}

const tooBusy = (): BrainError =>
  new BrainError('overloaded', 'Cannot admit the component: too many uploads are being admitted. Try again later')
