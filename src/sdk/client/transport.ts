import type { Json } from '../../kernel/json.ts'
import { answerError } from '../answer-error.ts'
import { BrainError } from '../brain-error.ts'

/** What sends requests: the platform's `fetch`, or one in its place. */
export type Fetch = (input: string, init?: RequestInit) => Promise<Response>

export type TransportOptions = {
  readonly baseUrl: string
  readonly token: string | undefined
  readonly timeoutMs: number | undefined
  readonly fetch: Fetch
  /** Aborts everything that is under way. */
  readonly closed: AbortSignal
}

export type Outgoing = {
  /** Bytes go out as they are, anything else as JSON. */
  readonly body?: unknown
  readonly contentType?: string | undefined
  readonly key?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Instead of the client's token. */
  readonly token?: string
}

/** Requests of one client: its address, its token, its end. */
export class Transport {
  readonly #options: TransportOptions

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /** @returns the parsed body; undefined for 204 @throws BrainError, and the reason of the signal that aborted it */
  async json(method: string, path: string, outgoing: Outgoing = {}): Promise<Json | undefined> {
    const response = await this.send(method, path, outgoing)
    if (response.status === 204) return undefined
    try {
      return (await response.json()) as Json
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause
      throw new BrainError(response.status, 'http_error', `Cannot read the answer to ${method} ${path}: not JSON`, {
        cause,
      })
    }
  }

  /** @returns an answer that went well @throws BrainError, and the reason of the signal that aborted it */
  async send(method: string, path: string, outgoing: Outgoing = {}): Promise<Response> {
    const { timeoutMs } = this.#options
    const timeout = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]
    const signal = AbortSignal.any([this.#options.closed, ...(outgoing.signal ? [outgoing.signal] : []), ...timeout])
    for (;;) {
      try {
        return await this.#ask(method, path, outgoing, signal)
      } catch (error) {
        // With its key a request that is still at work is only asked for its answer again, never done twice.
        if (outgoing.key === undefined || !hasWaitedTooLong(error)) throw error
      }
    }
  }

  /** The body of a stream, which is not subject to the timeout once it is there. */
  async open(path: string, outgoing: Outgoing = {}): Promise<ReadableStream<Uint8Array>> {
    const { timeoutMs, closed } = this.#options
    const late = new AbortController()
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => late.abort(new DOMException('The operation timed out', 'TimeoutError')), timeoutMs)
    const signal = AbortSignal.any([closed, late.signal, ...(outgoing.signal ? [outgoing.signal] : [])])
    try {
      const headers = { accept: 'text/event-stream', ...outgoing.headers }
      const { body } = await this.#ask('GET', path, { ...outgoing, headers }, signal)
      if (body === null) throw new BrainError(200, 'http_error', `Cannot read ${path}: the answer has no body`)
      return body as ReadableStream<Uint8Array>
    } finally {
      clearTimeout(timer)
    }
  }

  /** The bytes of something that is not the server's. */
  async download(url: string): Promise<Uint8Array<ArrayBuffer>> {
    const response = await this.#options.fetch(url, { signal: this.#options.closed })
    if (!response.ok) throw new BrainError(response.status, 'http_error', `Cannot download ${url}: ${response.status}`)
    return new Uint8Array(await response.arrayBuffer())
  }

  async #ask(method: string, path: string, outgoing: Outgoing, signal: AbortSignal): Promise<Response> {
    signal.throwIfAborted()
    const { body, contentType, key } = outgoing
    const token = outgoing.token ?? this.#options.token
    const isBytes = body instanceof Uint8Array
    const type = contentType ?? (isBytes ? 'application/octet-stream' : 'application/json')
    const response = await this.#options.fetch(this.#options.baseUrl + path, {
      method,
      signal,
      redirect: 'error',
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(body === undefined ? {} : { 'content-type': type }),
        ...outgoing.headers,
      },
      ...(body === undefined ? {} : { body: isBytes ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
    })
    if (!response.ok) throw answerError(response.status, await response.text(), `${method} ${path}`)
    return response
  }
}

/** Node's fetch gives up an answer that takes five minutes, whatever its caller wants. */
const hasWaitedTooLong = (error: unknown): boolean =>
  error instanceof TypeError &&
  typeof error.cause === 'object' &&
  error.cause !== null &&
  'code' in error.cause &&
  error.cause.code === 'UND_ERR_HEADERS_TIMEOUT'
