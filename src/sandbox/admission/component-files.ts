import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { type ComponentId, isIdentifier } from '../../kernel/ids.ts'
import { isJsonObject } from '../../kernel/json.ts'
import type { Component } from '../sandbox.ts'
import { componentFile, readOwnFile } from './artifact.ts'
import { AtomicDirectory, ensureDirectory, namesIn, sync, writeDurably } from './durable-files.ts'
import { storedMetadata } from './metadata.ts'

const FORMAT = 1
const COMPONENT_ID = /^[0-9a-f]{64}$/
const MAX_RECORD_BYTES = 1024 * 1024
const MAX_MARKER_BYTES = 32
const TENANTS = 'tenants'
const RECORD = 'component.json'
/** Name of the upload inside its staged directory, as {@link componentFile} has it. */
export const UPLOAD = 'component.wasm'

/** What is the same for every tenant that admitted a component. */
export type StoredComponent = Omit<Component, 'admittedAtMs'>

const printRecord = (component: StoredComponent): string => JSON.stringify({ format: FORMAT, ...component })

function parseRecord(bytes: Buffer, id: ComponentId): StoredComponent {
  const record: unknown = JSON.parse(bytes.toString('utf8'))
  if (!isJsonObject(record) || record['format'] !== FORMAT || record['id'] !== id)
    throw new Error('it has another form')
  const { bytes: size, imports, metadata, role = 'tool' } = record
  const isRole = role === 'tool' || role === 'agentloop'
  if (typeof size !== 'number' || !Array.isArray(imports) || !isRole) throw new Error('it has another form')
  const said = metadata === undefined ? {} : { metadata: storedMetadata(metadata) }
  return { id, role, bytes: size, imports: imports.map(String), ...said }
}

const isComponentId = (name: string): name is ComponentId => COMPONENT_ID.test(name)

/**
 * Admitted components on disk, each once, with a marker for every tenant that admitted it (contract A3). The marker
 * holds when that tenant did: nobody learns from a component who else has it.
 */
export class ComponentFiles {
  readonly #data: string
  readonly #directory: AtomicDirectory
  /** Which tenant has which; the markers on disk are the truth, this saves reading them. */
  readonly #owned = new Map<string, Map<ComponentId, number>>()
  readonly #sizes = new Map<ComponentId, number>()

  private constructor(data: string, directory: AtomicDirectory) {
    this.#data = data
    this.#directory = directory
  }

  /** Opens the store of a data directory; removes what a killed process left half made or half removed. */
  static async open(data: string): Promise<ComponentFiles> {
    const directory = await AtomicDirectory.open(join(data, 'components'))
    const files = new ComponentFiles(data, directory)
    for (const id of (await directory.names()).filter(isComponentId)) await files.#load(id)
    return files
  }

  async #load(id: ComponentId): Promise<void> {
    const tenants = await namesIn(this.#path(id, TENANTS))
    if (tenants.length === 0) {
      await this.#directory.take(id)
      return
    }
    const size = await stat(componentFile(this.#data, id)).then(
      (status) => status.size,
      () => 0,
    )
    this.#sizes.set(id, size)
    for (const tenant of tenants) this.#own(tenant).set(id, await this.#markedAt(id, tenant))
  }

  async #markedAt(id: ComponentId, tenant: string): Promise<number> {
    const text = await readOwnFile(this.#path(id, TENANTS, tenant), MAX_MARKER_BYTES).catch(() => Buffer.alloc(0))
    return Number.parseInt(text.toString('latin1'), 10) || 0
  }

  #own(tenant: string): Map<ComponentId, number> {
    const owned = this.#owned.get(tenant) ?? new Map<ComponentId, number>()
    this.#owned.set(tenant, owned)
    return owned
  }

  #path(id: ComponentId, ...rest: readonly string[]): string {
    return join(this.#directory.path, id, ...rest)
  }

  get ids(): ReadonlySet<ComponentId> {
    return new Set(this.#sizes.keys())
  }

  /** Bytes of all uploads that are kept. */
  get totalBytes(): number {
    let total = 0
    for (const size of this.#sizes.values()) total += size
    return total
  }

  stage(): Promise<string> {
    return this.#directory.stage()
  }

  discard(staged: string): Promise<void> {
    return this.#directory.discard(staged)
  }

  /** When a tenant admitted a component; undefined when it did not. */
  admittedAtMs(tenant: string, id: ComponentId): number | undefined {
    return this.#owned.get(tenant)?.get(id)
  }

  list(tenant: string): readonly ComponentId[] {
    return [...(this.#owned.get(tenant)?.keys() ?? [])].toSorted()
  }

  /** @throws BrainError `storage_unavailable` when its record cannot be read. */
  async read(id: ComponentId): Promise<StoredComponent> {
    try {
      return parseRecord(await readOwnFile(this.#path(id, RECORD), MAX_RECORD_BYTES), id)
    } catch (cause) {
      const reason = `Cannot read the record of component "${id}": ${messageOf(cause)}. Upload the component again`
      throw new BrainError('storage_unavailable', reason, { cause })
    }
  }

  /** The record of a component that is stored, and whose every byte is what was uploaded; otherwise undefined. */
  async readIntact(id: ComponentId): Promise<StoredComponent | undefined> {
    if (!this.#sizes.has(id)) return undefined
    try {
      const hash = createHash('sha256')
      for await (const chunk of createReadStream(componentFile(this.#data, id))) hash.update(chunk as Buffer)
      return hash.digest('hex') === id ? await this.read(id) : undefined
    } catch {
      return undefined // an upload of the same bytes repairs whatever is wrong with it
    }
  }

  /**
   * Stores a staged upload; durable on return. Where it repairs a damaged component, its tenants keep it.
   *
   * @param first the tenant that admitted it, and when.
   */
  async install(staged: string, component: StoredComponent, first: { tenant: string; atMs: number }): Promise<void> {
    const { id } = component
    const times = new Map([[first.tenant, first.atMs]])
    for (const tenant of await namesIn(this.#path(id, TENANTS))) times.set(tenant, await this.#markedAt(id, tenant))
    await ensureDirectory(join(staged, TENANTS))
    for (const [tenant, atMs] of times) await writeDurably(join(staged, TENANTS, markerOf(tenant)), String(atMs))
    await sync(join(staged, TENANTS))
    await sync(join(staged, UPLOAD))
    await writeDurably(join(staged, RECORD), printRecord(component))
    await this.#directory.place(staged, id)
    this.#sizes.set(id, component.bytes)
    for (const [tenant, atMs] of times) this.#own(tenant).set(id, atMs)
  }

  /**
   * Gives a stored component to a tenant; durable on return.
   *
   * @returns when the tenant first admitted it; undefined when the component is not there any more.
   */
  async grant(tenant: string, id: ComponentId, nowMs: number): Promise<number | undefined> {
    if (!this.#sizes.has(id)) return undefined
    const before = this.admittedAtMs(tenant, id)
    if (before !== undefined) return before
    await writeDurably(this.#path(id, TENANTS, markerOf(tenant)), String(nowMs))
    await sync(this.#path(id, TENANTS))
    this.#own(tenant).set(id, nowMs)
    return nowMs
  }

  /** Takes a component from a tenant. @returns whether anybody still has it. */
  async release(tenant: string, id: ComponentId): Promise<boolean> {
    await rm(this.#path(id, TENANTS, markerOf(tenant)), { force: true })
    await sync(this.#path(id, TENANTS))
    this.#owned.get(tenant)?.delete(id)
    if ((await namesIn(this.#path(id, TENANTS))).length > 0) return true
    await this.#directory.take(id)
    this.#sizes.delete(id)
    return false
  }
}

function markerOf(tenant: string): string {
  if (!isIdentifier(tenant)) throw new BrainError('internal', `Cannot name a file after the tenant "${tenant}"`)
  return tenant
}
