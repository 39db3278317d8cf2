import type { LookupAddress } from 'node:dns'
import { request as requestPlain, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestSecure } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { messageOf } from '../errors.ts'
import { setLongTimeout, type LongTimeout } from '../long-timeout.ts'
import { lookUp } from './lookups.ts'

export type GuardedRequest = {
  /** http or https; where it leads is checked at the socket, whatever its name means by then. */
  readonly url: URL
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Whether an address may be connected to. All addresses of a name must be fit. */
  readonly isFit: (address: string) => boolean
  /** Milliseconds for the lookup, the connection and its TLS. */
  readonly connectMs: number
  /** Milliseconds until the whole answer is there; undefined = unlimited. */
  readonly totalMs: number | undefined
  /** Bytes of the answer's body. */
  readonly mostBytes: number
  readonly signal?: AbortSignal
}

export type GuardedAnswer = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Why there is no answer. */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure'
  readonly reason: 'prohibited' | 'unreachable' | 'timeout' | 'aborted' | 'too_large' | 'broken'
  /** Whether the other side may have read of the request: what it has done then is not known. */
  readonly isSent: boolean

  constructor(reason: RequestFailure['reason'], isSent: boolean, message: string, options: ErrorOptions = {}) {
    super(message, options)
    this.reason = reason
    this.isSent = isSent
  }
}

/**
 * One request to a URL that somebody else has named: sent once, over a connection of its own, to an address that was
 * checked. Redirects are answers like any other, and no proxy is used.
 *
 * @throws RequestFailure
 */
export function guardedRequest(request: GuardedRequest): Promise<GuardedAnswer> {
  return new Exchange(request).answer
}

/** A literal address as sockets know it. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

class Exchange {
  readonly #request: GuardedRequest
  readonly #done = Promise.withResolvers<GuardedAnswer>()
  readonly #over = new AbortController()
  readonly #timers: LongTimeout[] = []
  #isSent = false

  constructor(request: GuardedRequest) {
    this.#request = request
    const { signal } = request
    const onAbort = (): void => this.#fail('aborted', 'the caller gave it up')
    signal?.addEventListener('abort', onAbort, { once: true })
    void this.#done.promise
      .catch(() => undefined)
      .finally(() => {
        signal?.removeEventListener('abort', onAbort)
        for (const timer of this.#timers) timer.clear()
        this.#over.abort()
      })
    if (signal?.aborted === true) onAbort()
    else void this.#run().catch((error: unknown) => this.#fail('unreachable', messageOf(error), error))
  }

  get answer(): Promise<GuardedAnswer> {
    return this.#done.promise
  }

  #fail(reason: RequestFailure['reason'], message: string, cause?: unknown): void {
    this.#done.reject(
      new RequestFailure(reason, this.#isSent, `Cannot ask ${this.#request.url.origin}: ${message}`, { cause }),
    )
  }

  async #run(): Promise<void> {
    const { url, connectMs, totalMs } = this.#request
    const connecting = setLongTimeout(() => this.#fail('timeout', `no connection within ${connectMs} ms`), connectMs)
    this.#timers.push(connecting)
    if (totalMs !== undefined)
      this.#timers.push(setLongTimeout(() => this.#fail('timeout', `no answer within ${totalMs} ms`), totalMs))
    const addresses = await this.#addresses()
    if (this.#over.signal.aborted) return
    const unfit = addresses.find(({ address }) => !this.#request.isFit(address))
    if (unfit !== undefined || addresses.length === 0)
      return this.#fail('prohibited', 'its address may not be connected to')
    this.#send(url, addresses, () => connecting.clear())
  }

  async #addresses(): Promise<readonly LookupAddress[]> {
    const host = hostOf(this.#request.url)
    const family = isIP(host)
    return family === 0 ? lookUp(host, this.#over.signal) : [{ address: host, family }]
  }

  #send(url: URL, addresses: readonly LookupAddress[], onConnected: () => void): void {
    const { method = 'POST', headers, body, isFit } = this.#request
    const isSecure = url.protocol === 'https:'
    const options: RequestOptions = {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }) },
      agent: false,
      signal: this.#over.signal,
      lookup: (_name, { all }, callback) => {
        const [first] = addresses
        if (all === true) callback(null, [...addresses])
        else callback(null, first?.address ?? '', first?.family)
      },
    }
    const outgoing = (isSecure ? requestSecure : requestPlain)(url, options)
    outgoing.once('socket', (socket: Socket) =>
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        if (!isFit(socket.remoteAddress ?? '')) return this.#fail('prohibited', 'its address may not be connected to')
        this.#isSent = true
        onConnected()
      }),
    )
    outgoing.once('response', (response) => void this.#read(response))
    // Nobody listens to what is not HTTP/1.1 any more once an answer was promised.
    outgoing.once('upgrade', (_response, socket: Socket) => {
      socket.destroy()
      this.#fail('broken', 'it answered with another protocol')
    })
    outgoing.on('error', (error) => this.#fail(this.#isSent ? 'broken' : 'unreachable', messageOf(error), error))
    outgoing.end(body)
  }

  async #read(response: IncomingMessage): Promise<void> {
    const { mostBytes } = this.#request
    const chunks: Buffer[] = []
    let size = 0
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > mostBytes) return this.#fail('too_large', `its answer takes more than ${mostBytes} bytes`)
        chunks.push(chunk)
      }
    } catch (error) {
      return this.#fail('broken', messageOf(error), error)
    }
    const { statusCode: status = 0, headers } = response
    this.#done.resolve({ status, headers, body: Buffer.concat(chunks, size) })
  }
}
