/**
 * What admission leaves for the boxes, and how it is read back. The supervisor reads artifacts by itself, so this file
 * needs nothing but the kernel and Node.
 *
 * Layout beneath the data directory:
 *
 *     components/<id>/component.wasm     the upload; kept as long as a tenant has it
 *     artifacts/<toolchain>/<id>/        a cache: `manifest`, `tool.js` and the cores that jco made itself
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { ComponentId } from '../../kernel/ids.ts'
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'

/** Names the generator, its version and our use of it: another one makes other artifacts, in another directory. */
export const TOOLCHAIN = 'jco-transpile-0.15.0-4'

const FORMAT = 1
const MANIFEST_BYTES = 1024 * 1024
const SHA256 = /^[0-9a-f]{64}$/
const CORE_NAME = /^[a-z0-9.-]{1,100}$/
const PRIVATE_FILE = /^core-\d{1,4}\.wasm$/

/** A core module by the name that the generated JavaScript asks for. Nearly all of them are slices of the upload. */
export type ArtifactCore = { readonly name: string; readonly sha256: string; readonly size: number } & (
  | { readonly offset: number }
  /** jco made it: it belongs to this artifact alone and lies beside the manifest. */
  | { readonly file: string }
)

export type ArtifactManifest = {
  readonly component: ComponentId
  readonly js: { readonly sha256: string; readonly size: number }
  readonly cores: readonly ArtifactCore[]
}

/** An artifact whose every byte was checked: these buffers, not the files, are what may be sent to a box. */
export type Artifact = {
  readonly id: ComponentId
  /** Hostile JavaScript (sandbox J1): only ever run inside a box. Exports `instantiate`. */
  readonly js: Buffer
  readonly cores: readonly { readonly name: string; readonly bytes: Buffer }[]
}

/** For small texts; {@link digestOf} does not keep the thread. */
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const DIGEST_STEP = 1024 * 1024

/** The SHA-256 of bytes that may be many: whoever else needs this thread waits for one step at most. */
export async function digestOf(bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256')
  for (let at = 0; at < bytes.length; at += DIGEST_STEP) {
    if (at > 0) await immediate()
    hash.update(bytes.subarray(at, at + DIGEST_STEP))
  }
  return hash.digest('hex')
}

export const componentDirectory = (data: string, id: ComponentId): string => join(data, 'components', id)
export const componentFile = (data: string, id: ComponentId): string =>
  join(componentDirectory(data, id), 'component.wasm')
export const artifactDirectory = (data: string, id: ComponentId): string => join(data, 'artifacts', TOOLCHAIN, id)

export const MANIFEST_FILE = 'manifest'
export const SCRIPT_FILE = 'tool.js'

/** Whether a core may have this name: it is pasted into file names and looked up by the generated code. */
export const isCoreName = (name: string): boolean => CORE_NAME.test(name)

/** The manifest as it is stored: a line with the digest of all that follows, then JSON. */
export function printManifest(manifest: ArtifactManifest): Buffer {
  const body = Buffer.from(JSON.stringify({ format: FORMAT, toolchain: TOOLCHAIN, ...manifest }))
  return Buffer.concat([Buffer.from(`${sha256(body)}\n`), body])
}

/** @throws Error naming what is wrong with it; only damage and other versions of Brain make it throw. */
export function parseManifest(bytes: Buffer, id: ComponentId): ArtifactManifest {
  const body = bytes.subarray(65)
  if (bytes.subarray(0, 65).toString('latin1') !== `${sha256(body)}\n`) throw new Error('its manifest is damaged')
  const manifest: unknown = JSON.parse(body.toString('utf8'))
  if (!isJsonObject(manifest)) throw new Error('its manifest is not an object')
  const { format, toolchain, component, js, cores } = manifest
  if (format !== FORMAT || toolchain !== TOOLCHAIN) throw new Error('its manifest has another format or toolchain')
  if (component !== id) throw new Error('its manifest belongs to another component')
  if (!hasDigest(js) || !Array.isArray(cores) || !cores.every(isCore)) throw new Error('its manifest has another shape')
  return { component: id, js: { sha256: js.sha256, size: js.size }, cores }
}

const isCount = (value: Json | undefined): value is number => Number.isSafeInteger(value) && Number(value) >= 0

type Digested = JsonObject & { readonly sha256: string; readonly size: number }

const hasDigest = (value: Json | undefined): value is Digested =>
  isJsonObject(value) && typeof value['sha256'] === 'string' && SHA256.test(value['sha256']) && isCount(value['size'])

const isCore = (value: Json): value is ArtifactCore & JsonObject =>
  hasDigest(value) &&
  typeof value['name'] === 'string' &&
  isCoreName(value['name']) &&
  (typeof value['file'] === 'string' ? PRIVATE_FILE.test(value['file']) : isCount(value['offset']))

/**
 * Reads a regular file of ours, or a slice of one, without following a link in its last part.
 *
 * @throws Error when it is missing, of another kind, too short, or (without a slice) longer than `most`.
 */
export async function readOwnFile(path: string, most: number, slice?: { offset: number; size: number }) {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const status = await file.stat()
    if (!status.isFile()) throw new Error('it is not a regular file')
    const { offset, size } = slice ?? { offset: 0, size: status.size }
    if (offset + size > status.size || size > most) throw new Error('it has another size')
    const bytes = Buffer.allocUnsafeSlow(size)
    for (let read = 0; read < size;) {
      const { bytesRead } = await file.read(bytes, read, size - read, offset + read)
      if (bytesRead === 0) throw new Error('it became shorter')
      read += bytesRead
    }
    return bytes
  } finally {
    await file.close()
  }
}

type Expected = { readonly sha256: string; readonly size: number }

async function readVerified(path: string, expected: Expected, offset?: number): Promise<Buffer> {
  const slice = offset === undefined ? undefined : { offset, size: expected.size }
  const bytes = await readOwnFile(path, expected.size, slice)
  if (bytes.length !== expected.size || (await digestOf(bytes)) !== expected.sha256)
    throw new Error('its content is damaged')
  return bytes
}

/**
 * Loads the artifact of a component for a box.
 *
 * @param data the data directory.
 * @throws BrainError `environment_not_ready` when it is missing or any byte of it is not what was written: the server
 *   then makes it again (`ensureArtifact`).
 */
export async function readArtifact(data: string, id: ComponentId): Promise<Artifact> {
  const directory = artifactDirectory(data, id)
  try {
    const manifest = parseManifest(await readOwnFile(join(directory, MANIFEST_FILE), MANIFEST_BYTES), id)
    const js = await readVerified(join(directory, SCRIPT_FILE), manifest.js)
    const cores = []
    for (const core of manifest.cores) {
      const path = 'file' in core ? join(directory, core.file) : componentFile(data, id)
      cores.push({ name: core.name, bytes: await readVerified(path, core, 'file' in core ? undefined : core.offset) })
    }
    return { id, js, cores }
  } catch (cause) {
    throw new BrainError('environment_not_ready', `Cannot load component "${id}": ${messageOf(cause)}`, { cause })
  }
}
