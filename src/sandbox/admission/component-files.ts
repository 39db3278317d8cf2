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
const TENANTS = 'tenants'
const RECORD = 'component.json'
/** Name of the upload inside its staged directory, as {@link componentFile} has it. */
export const UPLOAD = 'component.wasm'

function printRecord(component: Component): string {
  return JSON.stringify({ format: FORMAT, ...component })
}

function parseRecord(bytes: Buffer, id: ComponentId): Component {
  const record: unknown = JSON.parse(bytes.toString('utf8'))
  if (!isJsonObject(record) || record['format'] !== FORMAT || record['id'] !== id)
    throw new Error('it has another form')
  const { bytes: size, imports, metadata, admittedAtMs } = record
  if (typeof size !== 'number' || typeof admittedAtMs !== 'number' || !Array.isArray(imports))
    throw new Error('it has another form')
  const said = metadata === undefined ? {} : { metadata: storedMetadata(metadata) }
  return { id, bytes: size, imports: imports.map(String), admittedAtMs, ...said }
}

const isComponentId = (name: string): name is ComponentId => COMPONENT_ID.test(name)

/** Admitted components on disk, each once, with a marker for every tenant that admitted it (contract A3). */
export class ComponentFiles {
  readonly #data: string
  readonly #directory: AtomicDirectory
  /** Which tenant has which; the markers on disk are the truth, this saves reading them. */
  readonly #owned = new Map<string, Set<ComponentId>>()
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
    for (const tenant of tenants) this.#own(tenant).add(id)
  }

  #own(tenant: string): Set<ComponentId> {
    const owned = this.#owned.get(tenant) ?? new Set()
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

  has(tenant: string, id: ComponentId): boolean {
    return this.#owned.get(tenant)?.has(id) ?? false
  }

  list(tenant: string): readonly ComponentId[] {
    return [...(this.#owned.get(tenant) ?? [])].toSorted()
  }

  /** @throws BrainError `storage_unavailable` when its record cannot be read. */
  async read(id: ComponentId): Promise<Component> {
    try {
      return parseRecord(await readOwnFile(this.#path(id, RECORD), MAX_RECORD_BYTES), id)
    } catch (cause) {
      const reason = `Cannot read the record of component "${id}": ${messageOf(cause)}. Upload the component again`
      throw new BrainError('storage_unavailable', reason, { cause })
    }
  }

  /** The record of a component that is stored, and whose every byte is what was uploaded; otherwise undefined. */
  async readIntact(id: ComponentId): Promise<Component | undefined> {
    if (!this.#sizes.has(id)) return undefined
    try {
      const hash = createHash('sha256')
      for await (const chunk of createReadStream(componentFile(this.#data, id))) hash.update(chunk as Buffer)
      return hash.digest('hex') === id ? await this.read(id) : undefined
    } catch {
      return undefined // an upload of the same bytes repairs whatever is wrong with it
    }
  }

  /** Stores a staged upload for its first tenant; durable on return. */
  async install(staged: string, component: Component, tenant: string): Promise<void> {
    const tenants = new Set([tenant, ...(await namesIn(this.#path(component.id, TENANTS)))])
    await ensureDirectory(join(staged, TENANTS))
    for (const name of tenants) await writeDurably(join(staged, TENANTS, markerOf(name)), '')
    await sync(join(staged, TENANTS))
    await sync(join(staged, UPLOAD))
    await writeDurably(join(staged, RECORD), printRecord(component))
    await this.#directory.place(staged, component.id)
    this.#sizes.set(component.id, component.bytes)
    this.#own(tenant).add(component.id)
  }

  /** Gives a stored component to a tenant too; durable on return. @returns whether it is still there. */
  async grant(tenant: string, id: ComponentId): Promise<boolean> {
    if (!this.#sizes.has(id)) return false
    if (this.has(tenant, id)) return true
    await writeDurably(this.#path(id, TENANTS, markerOf(tenant)), '')
    await sync(this.#path(id, TENANTS))
    this.#own(tenant).add(id)
    return true
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
