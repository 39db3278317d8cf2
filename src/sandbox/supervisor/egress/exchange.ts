import { type ClientRequest, type IncomingMessage, request as makeRequest } from 'node:http'
import type { Socket } from 'node:net'
import { authorityOf } from '../../../contract/network-origin.ts'
import { EGRESS_CHUNK_BYTES, EGRESS_PHASE } from '../../wire/egress.ts'
import { EgressFailure, toEgressFailure } from './egress-failure.ts'
import { endToEndFields } from './end-to-end-fields.ts'
import { openSocket } from './open-socket.ts'
import { type EgressLimits, MOST_HEADER_BYTES, MOST_HEADERS, type RequestHead } from './request-head.ts'
import { type Lookup, resolveChecked } from './resolve.ts'
import type { WorkMeter } from './work-meter.ts'

/** Bytes and pieces of a body that are held for the guest; then the server waits. */
const MOST_PIECES = 256

export type ExchangeSurroundings = {
  readonly limits: EgressLimits
  readonly lookup: Lookup
  /** Counts what is computed beside the steps that the guest asks for. */
  readonly meter: WorkMeter
  /** Something that a guest may wait for has changed. */
  readonly onChange: () => void
}

const NOTHING = Buffer.alloc(0)

/** One request and its answer, on a connection of its own. The first failure is the one that counts. */
export class Exchange {
  readonly #head: RequestHead
  readonly #surroundings: ExchangeSurroundings
  #socket: Socket | undefined
  #request: ClientRequest | undefined
  #response: IncomingMessage | undefined
  #failure: EgressFailure | undefined
  #timer: NodeJS.Timeout | undefined
  #sentBytes = 0
  #sentAll = false
  #drained = true
  #held: Buffer[] = []
  #heldBytes = 0
  #receivedBytes = 0
  #receivedAll = false

  constructor(head: RequestHead, surroundings: ExchangeSurroundings) {
    this.#head = head
    this.#surroundings = surroundings
    this.#sentAll = head.length === 0
    this.#expect(head.connectMs, 'connection-timeout')
    this.#open().catch((error: unknown) => this.#fail(error))
  }

  get failure(): EgressFailure | undefined {
    return this.#failure
  }

  /** Whether bytes of the request's body can be taken, or there is no point in waiting for it. */
  get isWritable(): boolean {
    return (this.#request !== undefined && this.#drained) || this.#failure !== undefined
  }

  isReady(phase: number): boolean {
    if (this.#failure !== undefined) return true
    return phase === EGRESS_PHASE.RESPONSE ? this.#response !== undefined : this.#heldBytes > 0 || this.#receivedAll
  }

  /** @throws EgressFailure of the exchange */
  write(bytes: Buffer): void {
    const size = this.#sentBytes + bytes.length
    const { length = this.#surroundings.limits.requestBytes } = this.#head
    if (size > length || size > this.#surroundings.limits.requestBytes)
      this.#fail(new EgressFailure('HTTP-request-body-size', size))
    if (this.#failure !== undefined) throw this.#failure
    // A server may answer, and hang up, before it has read everything.
    if (this.#sentAll || this.#receivedAll || this.#request === undefined) return
    if (this.#sentBytes === 0 && this.#head.length === undefined)
      this.#request.setHeader('Transfer-Encoding', 'chunked')
    this.#sentBytes = size
    this.#drained = this.#request.write(bytes)
    if (this.#response === undefined) this.#expect(this.#head.firstByteMs, 'HTTP-response-timeout')
  }

  /** @throws EgressFailure when fewer bytes were written than were announced */
  finish(): void {
    const { length } = this.#head
    if (length !== undefined && length !== this.#sentBytes)
      this.#fail(new EgressFailure('HTTP-request-body-size', this.#sentBytes))
    if (this.#failure !== undefined) throw this.#failure
    if (this.#sentAll) return
    this.#sentAll = true
    this.#request?.end()
  }

  /** @throws EgressFailure of the exchange */
  response(): { readonly status: number; readonly fields: readonly string[] } | undefined {
    const response = this.#response
    if (response === undefined) {
      if (this.#failure !== undefined) throw this.#failure
      return undefined
    }
    const { statusCode = 0, rawHeaders } = response
    return { status: statusCode, fields: endToEndFields(rawHeaders) }
  }

  /**
   * Bytes of the body, as many as there are and a reply holds; none when there are none yet; undefined at the end.
   * @throws EgressFailure of the exchange, after all bytes that came before it
   */
  read(): Buffer | undefined {
    if (this.#heldBytes === 0) {
      if (this.#failure !== undefined) throw this.#failure
      return this.#receivedAll ? undefined : NOTHING
    }
    const all = Buffer.concat(this.#held)
    const taken = all.subarray(0, EGRESS_CHUNK_BYTES)
    const rest = all.subarray(taken.length)
    this.#held = rest.length === 0 ? [] : [rest]
    this.#heldBytes = rest.length
    if (this.#response?.isPaused() === true && !this.#isFull()) {
      this.#response.resume()
      this.#expect(this.#head.betweenBytesMs, 'connection-read-timeout')
    }
    return taken
  }

  /** Closes its connection, whatever is going on there. */
  close(): void {
    this.#fail(new EgressFailure('connection-terminated'))
    this.#held = []
    this.#heldBytes = 0
    this.#socket?.destroy()
  }

  async #open(): Promise<void> {
    const { origin } = this.#head
    const addresses = await resolveChecked(origin, this.#surroundings.lookup)
    if (this.#failure !== undefined) return
    this.#socket = openSocket(origin, addresses, (socket) => {
      try {
        if (this.#failure === undefined) this.#surroundings.meter.run(() => this.#send(socket))
      } catch (error) {
        this.#fail(error)
      }
    })
    this.#socket.on('error', (error) => this.#fail(error))
  }

  #isFull(): boolean {
    return this.#heldBytes >= EGRESS_CHUNK_BYTES || this.#held.length >= MOST_PIECES
  }

  #send(socket: Socket): void {
    const { origin, method, path, headers, length } = this.#head
    const request = makeRequest({
      // No agent: the connection is for this request, no proxy of the environment is asked.
      createConnection: () => socket,
      method,
      path,
      setHost: false,
      maxHeaderSize: MOST_HEADER_BYTES,
      insecureHTTPParser: false,
    })
    this.#request = request
    request.maxHeadersCount = 0 // more than it says would be left out unseen; they are counted below
    request.setHeader('Host', authorityOf(origin))
    for (const [name, values] of headers) request.setHeader(name, values)
    if (length !== undefined && length > 0) request.setHeader('Content-Length', length)
    // Said once the listeners of the parser are there. A server decides how much work its bytes make: a piece of the body
    // may be a byte.
    request.on('socket', () => {
      socket.prependListener('data', () => this.#surroundings.meter.begin())
      socket.on('data', () => this.#surroundings.meter.end())
    })
    request.on('error', (error) => this.#fail(error))
    request.on('response', (response) => this.#receive(response))
    request.on('upgrade', () => this.#fail(new EgressFailure('HTTP-upgrade-failed')))
    request.on('drain', () => {
      this.#drained = true
      this.#surroundings.onChange()
    })
    request.on('close', () => {
      if (this.#response === undefined) this.#fail(new EgressFailure('connection-terminated'))
    })
    if (this.#sentAll) request.end()
    this.#expect(this.#head.firstByteMs, 'HTTP-response-timeout')
    this.#surroundings.onChange()
  }

  #receive(response: IncomingMessage): void {
    const { rawHeaders } = response
    if (rawHeaders.length > 2 * MOST_HEADERS)
      return this.#fail(new EgressFailure('HTTP-response-header-section-size', rawHeaders.join('').length))
    this.#response = response
    response.on('data', (piece: Buffer) => this.#take(piece))
    response.on('error', () => this.#fail(new EgressFailure('HTTP-response-incomplete')))
    response.on('end', () => {
      if (this.#failure !== undefined) return
      this.#receivedAll = true
      clearTimeout(this.#timer)
      this.#socket?.destroy()
      this.#surroundings.onChange()
    })
    this.#expect(this.#head.betweenBytesMs, 'connection-read-timeout')
    this.#surroundings.onChange()
  }

  #take(piece: Buffer): void {
    if (this.#failure !== undefined) return
    const { responseBytes } = this.#surroundings.limits
    this.#receivedBytes += piece.length
    if (this.#receivedBytes > responseBytes)
      return this.#fail(new EgressFailure('HTTP-response-body-size', responseBytes))
    this.#held.push(piece)
    this.#heldBytes += piece.length
    if (this.#isFull()) {
      this.#response?.pause()
      clearTimeout(this.#timer)
    } else this.#expect(this.#head.betweenBytesMs, 'connection-read-timeout')
    this.#surroundings.onChange()
  }

  #expect(withinMs: number, tag: string): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#fail(new EgressFailure(tag)), withinMs)
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined || this.#receivedAll) return
    this.#failure = toEgressFailure(error)
    clearTimeout(this.#timer)
    this.#socket?.destroy()
    this.#surroundings.onChange()
  }
}
