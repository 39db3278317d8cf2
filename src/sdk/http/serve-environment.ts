import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { messageOf } from '../../kernel/errors.ts'
import { parseJson } from '../../kernel/json.ts'
import { isBrainError } from '../brain-error.ts'
import type { EnvironmentHandler } from '../environment/environment-contract.ts'
import { MOST_CARRIER_DEPTH } from '../json-value.ts'
import { membersOf } from '../strict-members.ts'

/** What {@link serveEnvironment} takes: exactly one of `token` and `authenticate`. */
export type ServeOptions = {
  /** What Brain must show, as a bearer: the credential of the environment. */
  readonly token?: string
  /** Whether a request may come in; false, and whatever is thrown, is 401. Nothing of its body has been read. */
  readonly authenticate?: (request: IncomingMessage) => boolean | Promise<boolean>
  /** Answers `POST /v1/callback`: the `callback` of a bridge. */
  readonly callback?: (request: Request) => Promise<Response>
  /** 127.0.0.1 when absent. */
  readonly host?: string
  /** One that is free when absent. */
  readonly port?: number
  /** Bytes of a request; 32 MiB when absent. */
  readonly maxBodyBytes?: number
}

/** A listener of {@link serveEnvironment}. */
export type ServedEnvironment = {
  /** Where it listens, as an environment's `url`. */
  readonly url: string
  /** Ends it, with everything under way: the signals of its operations abort. */
  readonly close: () => Promise<void>
}

const WHAT = 'Cannot serve an environment'
const MOST_BODY_BYTES = 32 * 2 ** 20
const MOST_CONNECTIONS = 2048
const HEADERS_MS = 10_000
const REQUEST_MS = 60_000

/**
 * Serves an environment on Node's own HTTP: `POST /v1/operations` for Brain, and `POST /v1/callback` for applications where
 * there is a `callback`. Terminate TLS before it.
 *
 * @param handle `run` of an `environmentHandler`, or `handle` of a bridge
 * @throws TypeError for options that cannot be used, and what listening fails with
 */
export async function serveEnvironment(
  handle: EnvironmentHandler['run'],
  options: ServeOptions,
): Promise<ServedEnvironment> {
  checkOptions(handle, options)
  const { host = '127.0.0.1', port = 0 } = options
  const isAuthentic = authenticator(options)
  const server = createServer((request, response) => {
    void answer(request, response, { ...options, handle, isAuthentic }).catch(() => response.destroy())
  })
  server.maxConnections = MOST_CONNECTIONS
  server.headersTimeout = HEADERS_MS
  server.requestTimeout = REQUEST_MS
  server.listen(port, host)
  await once(server, 'listening')
  const { address, port: actual, family } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  let closing: Promise<void> | undefined
  return Object.freeze<ServedEnvironment>({
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${actual}`,
    close: () => (closing ??= close()),
  })
}

function checkOptions(handle: unknown, options: ServeOptions): void {
  if (typeof handle !== 'function') throw new TypeError(`${WHAT}: give the function that does its operations`)
  membersOf(options, ['token', 'authenticate', 'callback', 'host', 'port', 'maxBodyBytes'], WHAT)
  const { token, authenticate, callback, maxBodyBytes = 1 } = options
  if ((token === undefined) === (authenticate === undefined))
    throw new TypeError(`${WHAT}: it needs either token or authenticate, and not both`)
  if (token !== undefined && (typeof token !== 'string' || token === ''))
    throw new TypeError(`${WHAT}: token must not be empty`)
  for (const [name, value] of Object.entries({ authenticate, callback }))
    if (value !== undefined && typeof value !== 'function') throw new TypeError(`${WHAT}: ${name} must be a function`)
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw new TypeError(`${WHAT}: maxBodyBytes must be a whole number of at least 1`)
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

function authenticator({ token, authenticate }: ServeOptions): (request: IncomingMessage) => Promise<boolean> {
  if (authenticate !== undefined)
    return async (request) => (await (async () => authenticate(request))().catch(() => false)) === true
  const wanted = digestOf(`Bearer ${token}`)
  return async ({ headers }) => timingSafeEqual(digestOf(headers.authorization ?? ''), wanted)
}

type Serving = ServeOptions & {
  readonly handle: EnvironmentHandler['run']
  readonly isAuthentic: (request: IncomingMessage) => Promise<boolean>
}

async function answer(request: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const { callback, maxBodyBytes = MOST_BODY_BYTES, handle, isAuthentic } = serving
  const isCallback = callback !== undefined && request.url === '/v1/callback'
  if (!isCallback && request.url !== '/v1/operations')
    return refuse(response, 404, 'not_found', 'There is nothing here')
  if (request.method !== 'POST') return refuse(response, 405, 'invalid_request', 'Only POST is served here')
  if (!isCallback && !(await isAuthentic(request)))
    return refuse(response, 401, 'unauthorized', 'The request is not authorized')
  const tooLarge = (): void =>
    refuse(response, 413, 'invalid_request', `The request takes more than ${maxBodyBytes} bytes`)
  if (isCallback) {
    const body = new BoundedBody(request, maxBodyBytes)
    const answered = await callback(webRequest(request, body))
    return body.isTooLarge ? tooLarge() : send(response, answered, request.complete)
  }
  const body = await bytesOf(request, maxBodyBytes)
  if (body === undefined) return tooLarge()
  const gone = new AbortController()
  response.once('close', () => gone.abort(new DOMException('Brain does not wait any more', 'AbortError')))
  try {
    const command = parseJson(body.toString(), 'the command', MOST_CARRIER_DEPTH)
    return send(response, Response.json(await handle(command, gone.signal)))
  } catch (error) {
    const isRefusal = isBrainError(error) && error.code === 'invalid_request'
    if (isRefusal) return refuse(response, 400, 'invalid_request', messageOf(error))
    return refuse(response, 500, 'internal', 'The environment failed')
  }
}

/** A body that is read when somebody asks for it, and to its bound. */
class BoundedBody {
  readonly #request: IncomingMessage
  readonly #most: number
  isTooLarge = false

  constructor(request: IncomingMessage, most: number) {
    this.#request = request
    this.#most = most
  }

  /** @throws TypeError when there is more; what remains is not read */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    let size = 0
    // Destroyed, it could not be answered any more.
    for await (const chunk of this.#request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > this.#most) {
        this.isTooLarge = true
        throw new TypeError(`it takes more than ${this.#most} bytes`)
      }
      yield chunk
    }
  }
}

/** @returns undefined when there is more */
async function bytesOf(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  const body = new BoundedBody(request, most)
  try {
    return Buffer.concat(await Array.fromAsync(body))
  } catch (error) {
    if (body.isTooLarge) return undefined
    throw error
  }
}

/** Nobody has checked who sends it: whoever takes it decides that before anything of the body is held. */
const webRequest = ({ headers }: IncomingMessage, body: BoundedBody): Request =>
  new Request('http://environment.invalid/v1/callback', {
    method: 'POST',
    headers: { authorization: headers.authorization ?? '', 'content-type': headers['content-type'] ?? '' },
    body: ReadableStream.from(body),
    duplex: 'half',
  })

/** @param mayGoOn whether the connection may be used again: what remains of a request is not read */
async function send(response: ServerResponse, answered: Response, mayGoOn = true): Promise<void> {
  const body = Buffer.from(await answered.arrayBuffer())
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  response.writeHead(answered.status, { ...headers, ...(!mayGoOn && { connection: 'close' }) }).end(body)
}

/** Ends the connection as well: what remains of the request is not read. */
function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json', connection: 'close' })
    .end(JSON.stringify({ code, message, retryable: false }))
}
