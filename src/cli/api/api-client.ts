import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'

export type ApiOptions = {
  readonly signal?: AbortSignal
  /** BRAIN_API_TOKEN of the server, if it has one. */
  readonly token?: string | undefined
}

/** The routes of a server that commands use, with JSON in and out. */
export class ApiClient {
  readonly #base: string
  readonly #options: ApiOptions

  /** @param base where the server is, such as `http://127.0.0.1:8080` */
  constructor(base: string, options: ApiOptions = {}) {
    this.#base = base.replace(/\/+$/, '')
    this.#options = options
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

  async putFile(session: string, path: string, content: Uint8Array | string): Promise<void> {
    await this.#json(`/v1/sessions/${session}/environments/box/files/${path}`, { method: 'PUT', body: content })
  }

  /** The stream of a session's events, from the first record after a sequence on. */
  async events(session: string, after = 0): Promise<ReadableStream<Uint8Array>> {
    const query = after === 0 ? '' : `?after=${after}`
    return await this.bytes(`/v1/sessions/${session}/events${query}`, { headers: { accept: 'text/event-stream' } })
  }

  /** The body of an answer, as it arrives. */
  async bytes(path: string, init: RequestInit = {}): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#fetch(path, init)
    if (response.body === null) throw new Error(`Cannot read ${path}: the answer has no body`)
    return response.body
  }

  /** Sends bytes as they come. */
  put<Answer>(path: string, body: Readable): Promise<Answer> {
    const stream = Readable.toWeb(body) as ReadableStream<Uint8Array>
    return this.#json(path, { method: 'PUT', body: stream, duplex: 'half' })
  }

  async #json<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.#fetch(path, init)
    return (response.status === 204 ? undefined : await response.json()) as Answer
  }

  /** @throws BrainError with what the server said, or that it cannot be reached */
  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const { signal, token } = this.#options
    const headers = new Headers(init.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    const what = `${init.method ?? 'GET'} ${path}`
    const response = await fetch(`${this.#base}${path}`, {
      ...init,
      headers,
      ...(signal === undefined ? {} : { signal }),
    }).catch((cause: unknown) => {
      if (signal?.aborted === true) throw cause
      const why = cause instanceof Error ? (cause.cause ?? cause) : cause
      throw new BrainError('executor_failed', `Cannot reach ${this.#base}: ${messageOf(why)}; is the server running?`, {
        cause,
      })
    })
    if (response.ok) return response
    const problem = (await response.text()).slice(0, 2000)
    throw new BrainError('executor_failed', `Cannot ${what}: ${response.status} ${problem}`)
  }
}
