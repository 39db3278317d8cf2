import { randomUUID } from 'node:crypto'
import type { Json } from '../../kernel/json.ts'

/** The routes of a server that this client uses, with JSON in and out. */
export class ApiClient {
  readonly #base: string
  readonly #signal: AbortSignal | undefined

  constructor(base: string, signal?: AbortSignal) {
    this.#base = base
    this.#signal = signal
  }

  get<Answer>(path: string): Promise<Answer> {
    return this.#json(path, { method: 'GET' })
  }

  /** A mutating request under a key of its own. */
  post<Answer>(path: string, body: Json, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#json(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers },
      body: JSON.stringify(body),
    })
  }

  /** Uploads a component. @returns its id */
  async admit(component: Uint8Array): Promise<string> {
    const admission = await this.#json<{ id: string }>('/v1/tools', {
      method: 'POST',
      headers: { 'content-type': 'application/wasm', 'idempotency-key': randomUUID() },
      body: Buffer.from(component),
    })
    return admission.id
  }

  async putFile(session: string, path: string, content: string): Promise<void> {
    await this.#json(`/v1/sessions/${session}/environments/box/files/${path}`, { method: 'PUT', body: content })
  }

  /** The stream of a session's events, from its first record on. */
  async events(session: string): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#fetch(`/v1/sessions/${session}/events`, { headers: { accept: 'text/event-stream' } })
    if (response.body === null) throw new Error('Cannot follow the events: the answer has no body')
    return response.body
  }

  async #json<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.#fetch(path, init)
    return (response.status === 204 ? undefined : await response.json()) as Answer
  }

  /** @throws Error with what the server said */
  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const signal = this.#signal === undefined ? {} : { signal: this.#signal }
    const response = await fetch(`${this.#base}${path}`, { ...init, ...signal })
    if (response.ok) return response
    const problem = (await response.text()).slice(0, 2000)
    throw new Error(`Cannot ${init.method ?? 'GET'} ${path}: ${response.status} ${problem}`)
  }
}

/** A tool of a session, placed in its one environment. */
export type PlacedTool = { readonly name: string; readonly id: string; readonly configuration?: Json }

/** Body of a create request: tools that are components, in one environment `box` that may write its workspace. */
export function sessionRequest(tools: readonly PlacedTool[], script: Json): Json {
  return {
    model: { provider: 'scripted', name: 'script', api_key: 'none', script },
    tools: tools.map(({ name, id, configuration = {} }) => ({
      name,
      placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration } } },
    })),
    environments: [
      {
        name: 'box',
        driver: 'brain',
        lifecycle: 'automatic',
        configuration: { filesystem: { workspace: 'write' } },
      },
    ],
  }
}
