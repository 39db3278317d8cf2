import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { BrainError } from '../kernel/errors.ts'
import { describeLimit, type LimitName, type Limits } from '../contract/limits.ts'
import { JsonBody } from './parse.ts'

/** A body that is handed on as it arrives. */
export class StreamBody implements AsyncIterable<Uint8Array> {
  readonly #request: IncomingMessage
  readonly #expected: number | undefined

  constructor(request: IncomingMessage) {
    this.#request = request
    const length = Number(request.headers['content-length'])
    this.#expected = Number.isSafeInteger(length) ? length : undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    let received = 0
    try {
      // Whoever stops reading still has to answer on this connection (`discardRest`).
      for await (const chunk of this.#request.iterator({ destroyOnReturn: false })) {
        const bytes = chunk as Buffer
        received += bytes.length
        yield bytes
      }
    } catch (cause) {
      throw new BrainError('invalid_request', 'Cannot read the request body: the connection was lost', { cause })
    }
    if (this.#expected !== undefined && received !== this.#expected)
      throw new BrainError(
        'invalid_request',
        `Cannot read the request body: ${received} bytes came, content-length said ${this.#expected}`,
      )
  }
}

const tooLarge = (name: LimitName, limits: Limits): BrainError =>
  new BrainError('invalid_request', `Cannot take a body of this size: the limit is ${describeLimit(name, limits)}`, {
    body: 'too_large',
  })

/** Refuses an announced size before the body is read (cases D-09). */
export function refuseAnnounced(request: IncomingMessage, name: LimitName, limits: Limits): void {
  if (Number(request.headers['content-length'] ?? 0) > limits[name]) throw tooLarge(name, limits)
}

/** Bodies as routes get them: JSON as bytes under the limit, uploads as streams, anything else refused with 415. */
export function registerBodies(app: FastifyInstance, limits: Limits): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (_request: FastifyRequest, payload: IncomingMessage) =>
    readJson(payload, limits),
  )
  for (const type of ['application/octet-stream', 'application/wasm'])
    app.addContentTypeParser(type, (_request: FastifyRequest, payload: IncomingMessage) =>
      Promise.resolve(new StreamBody(payload)),
    )
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) => {
    // Workspace files have any type (contract A12: `curl -T` sends none).
    if (request.routeOptions.config.anyBody === true) return Promise.resolve(new StreamBody(payload))
    const type = String(request.headers['content-type'] ?? '').slice(0, 80)
    throw new BrainError('invalid_request', `Cannot read a body of content-type "${type}" here`, { body: 'media_type' })
  })
}

/** What all bodies that are still arriving may hold together: eight of the largest. */
const MOST_ARRIVING = 8
let arriving = 0

async function readJson(payload: IncomingMessage, limits: Limits): Promise<JsonBody> {
  refuseAnnounced(payload, 'requestBytes', limits)
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of new StreamBody(payload)) {
      size += chunk.length
      arriving += chunk.length
      if (size > limits.requestBytes) throw tooLarge('requestBytes', limits)
      if (arriving > limits.requestBytes * MOST_ARRIVING)
        throw new BrainError('overloaded', 'Cannot take the request: too many large bodies are arriving; try again')
      chunks.push(chunk)
    }
    return new JsonBody(Buffer.concat(chunks))
  } finally {
    arriving -= size
  }
}

/** How long, and how much of, what is left of a refused body is read. */
const REST_MS = 1000
const REST_BYTES = 256 * 1024 * 1024

/**
 * Reads and throws away what is left of a refused body until the client stops sending, for a second at most. A connection
 * that is closed with bytes nobody has read is reset, and a client that was still sending loses the answer (RFC 9112, 9.6).
 */
export function discardRest(request: IncomingMessage): Promise<void> {
  if (request.destroyed || request.readableEnded) return Promise.resolve()
  return new Promise((resolve) => {
    let rest = REST_BYTES
    const stop = (): void => {
      clearTimeout(late)
      request.off('data', count).off('close', stop).off('end', stop)
      request.pause()
      resolve()
    }
    const count = (chunk: Buffer): void => {
      rest -= chunk.length
      if (rest < 0) stop()
    }
    const late = setTimeout(stop, REST_MS)
    request
      .on('data', count)
      .on('close', stop)
      .on('end', stop)
      .on('error', () => {})
    request.resume()
  })
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route takes a body of any content type, as a stream. */
    readonly anyBody?: boolean
  }
}
