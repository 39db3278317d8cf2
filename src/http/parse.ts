import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { FastifyRequest } from 'fastify'
import { parseTraceparent } from '../kernel/traceparent.ts'
import { BrainError } from '../kernel/errors.ts'
import { parseJson, type Json } from '../kernel/json.ts'
import type { TenantId } from '../kernel/ids.ts'

/**
 * Reads a part of a request with its schema; `shape` is a body of the wrong form, which answers 422.
 * @throws BrainError `invalid_request`
 */
export function parse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  what: 'body' | 'query',
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const message = `Cannot read the request ${what}: ${z.prettifyError(parsed.error)}`
  throw new BrainError('invalid_request', message, what === 'body' ? { body: 'shape' } : {})
}

/** The bytes of a JSON body, kept until a route wants them. */
export class JsonBody {
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws BrainError `invalid_request` when the body is missing, no UTF-8, no JSON or nested too deep */
export function jsonOf(request: FastifyRequest): Json {
  if (!(request.body instanceof JsonBody))
    throw new BrainError(
      'invalid_request',
      'Cannot read the request body: send JSON with content-type application/json',
      { body: 'media_type' },
    )
  let text: string
  try {
    text = utf8.decode(request.body.bytes)
  } catch (cause) {
    throw new BrainError('invalid_request', 'Cannot read the request body: it is not valid UTF-8', { cause })
  }
  return parseJson(text, 'the request body')
}

/** @throws BrainError `invalid_request` naming a field, where a route takes none (contract 0.2) */
export function refuseQuery(request: FastifyRequest): void {
  parse(z.strictObject({}), request.query, 'query')
}

const MAX_KEY_BYTES = 256

/** The idempotency key that a mutating route must carry (contract 0.5). */
export function idempotencyKey(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  // Node gives a header's bytes as one character each.
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY_BYTES)
    throw new BrainError(
      'invalid_request',
      `Cannot take the request: send an Idempotency-Key header of 1 to ${MAX_KEY_BYTES} bytes, new for each operation`,
    )
  return key
}

/** What a request asks for, as a claim: its scope belongs to the tenant, its digest covers everything that matters. */
export function claimOf(
  request: FastifyRequest,
  tenant: TenantId,
  scope: string,
): { readonly scope: string; readonly key: string; readonly digest: string } {
  const digest = createHash('sha256')
  digest.update(`${request.method} ${request.url}\n${String(request.headers['prefer'] ?? '')}\n`)
  if (request.body instanceof JsonBody) digest.update(request.body.bytes)
  return { scope: `${tenant}:${scope}`, key: idempotencyKey(request), digest: digest.digest('hex') }
}

/** Whether the client wants its answer before the work is done; any other preference is refused (contract 1.3). */
export function respondAsync(request: FastifyRequest): boolean {
  const prefer = request.headers['prefer']
  if (prefer === undefined) return false
  if (prefer === 'respond-async') return true
  throw new BrainError(
    'invalid_request',
    `Cannot honour "Prefer: ${String(prefer).slice(0, 80)}": only respond-async is supported`,
  )
}

/** The trace that a request belongs to (contract A16). */
export const traceparentOf = (request: FastifyRequest): string | undefined =>
  parseTraceparent(request.headers['traceparent'])?.text

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route reads its query itself; on all others any field is refused. */
    readonly takesQuery?: boolean
  }
}
