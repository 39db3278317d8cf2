import { isJsonObject } from '../../kernel/json.ts'
import { BrainError } from '../brain-error.ts'
import type { Component } from '../declare/component.ts'
import type { Transport } from './transport.ts'

type Role = 'tool' | 'agentloop'

/** Uploads components: each object once in each role, as long as that went well. */
export class Admissions {
  readonly #transport: Transport
  readonly #known = {
    tool: new WeakMap<Component, Promise<string>>(),
    agentloop: new WeakMap<Component, Promise<string>>(),
  }

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** @returns the id, which is the SHA-256 of the bytes @throws BrainError `tool_rejected`, `agentloop_rejected` */
  admit(role: Role, component: Component): Promise<string> {
    const known = this.#known[role]
    const before = known.get(component)
    if (before !== undefined) return before
    const admission = this.#upload(role, component)
    known.set(component, admission)
    admission.catch(() => known.delete(component))
    return admission
  }

  async #upload(role: Role, component: Component): Promise<string> {
    const bytes = await this.#bytesOf(component)
    const key = `${role}-${await sha256(bytes)}`
    const answer = await this.#transport.json('POST', `/v1/${role}s`, { body: bytes, key })
    if (isJsonObject(answer) && answer['status'] === 'admitted' && typeof answer['id'] === 'string') return answer['id']
    const error = isJsonObject(answer) && isJsonObject(answer['error']) ? answer['error'] : {}
    const message =
      typeof error['message'] === 'string' ? error['message'] : `Cannot admit the ${role}: it was rejected`
    throw new BrainError(400, `${role}_rejected`, message, {
      retryable: error['retryable'] === true,
      details: error['details'],
    })
  }

  async #bytesOf({ source }: Component): Promise<Uint8Array<ArrayBuffer>> {
    if (source instanceof Uint8Array) return source as Uint8Array<ArrayBuffer>
    return source.protocol === 'file:' ? readFile(source) : this.#transport.download(source.href)
  }
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

type NodeProcess = {
  getBuiltinModule?(name: 'fs/promises'): { readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> }
}

/** Asks the process for its files instead of importing what no browser has: bundlers see nothing of Node. */
async function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const { process } = globalThis as { process?: NodeProcess }
  const files = process?.getBuiltinModule?.('fs/promises')
  if (files === undefined)
    throw new TypeError(`Cannot read ${url.href}: there are no files here; give component() bytes or an https: URL`)
  return Uint8Array.from(await files.readFile(url))
}
