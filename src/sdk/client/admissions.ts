import { isJsonObject } from '../../kernel/json.ts'
import { BrainError } from '../brain-error.ts'
import type { Component } from '../declare/component.ts'
import type { Transport } from './transport.ts'

/** What a component is admitted as. */
export type Role = 'tool' | 'agentloop'

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
    return this.#once(role, component, async () => {
      const bytes = await this.#bytesOf(component)
      return this.#upload(role, bytes, await sha256(bytes))
    })
  }

  /** As {@link admit}, of what may be there already: it is looked up before it is sent. */
  ensure(role: Role, component: Component): Promise<string> {
    return this.#once(role, component, async () => {
      const bytes = await this.#bytesOf(component)
      const id = await sha256(bytes)
      return (await this.#isAdmitted(role, id)) ? id : this.#upload(role, bytes, id)
    })
  }

  #once(role: Role, component: Component, work: () => Promise<string>): Promise<string> {
    const known = this.#known[role]
    const before = known.get(component)
    if (before !== undefined) return before
    const admission = work()
    known.set(component, admission)
    admission.catch(() => known.delete(component))
    return admission
  }

  async #isAdmitted(role: Role, id: string): Promise<boolean> {
    try {
      await this.#transport.json('GET', `/v1/${role}s/${id}`)
      return true
    } catch (error) {
      if (error instanceof BrainError && error.status === 404) return false
      throw error
    }
  }

  async #upload(role: Role, bytes: Uint8Array<ArrayBuffer>, digest: string): Promise<string> {
    const key = `${role}-${digest}`
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
