import { covers, type NetworkOrigin, parseAuthority } from '../../../contract/network-origin.ts'
import { EGRESS_OP, HOP_HEADERS, NO_TIMEOUT, START_HEAD, UNKNOWN_LENGTH } from '../../wire/egress.ts'
import { unpackBytes } from '../../wire/texts.ts'
import { EgressFailure } from './egress-failure.ts'

/** Bounds of one invocation. */
export type EgressLimits = {
  readonly requests: number
  readonly openRequests: number
  readonly requestBytes: number
  readonly responseBytes: number
  /** No timeout of a guest is longer. */
  readonly timeoutMs: number
}

/** A request that may be sent. */
export type RequestHead = {
  readonly origin: NetworkOrigin
  readonly method: string
  readonly path: string
  /** Name as the guest wrote it, with all its values in order. */
  readonly headers: readonly (readonly [name: string, values: string[]])[]
  /** Bytes of the body; undefined when it is sent in chunks. */
  readonly length: number | undefined
  readonly connectMs: number
  readonly firstByteMs: number
  readonly betweenBytesMs: number
}

/** Contract 6.1, in both directions. */
export const MOST_HEADER_BYTES = 64 * 1024
export const MOST_HEADERS = 256
const MOST_PATH_CHARACTERS = 8192
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const PATH = /^\/[!"$-~]*$/
const VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/
/** A parser takes them away on the other side; a no-break space stays. */
const BLANKS = /^[ \t]+|[ \t]+$/g
const LENGTH = /^\d{1,15}$/

const fail = (tag: string, value?: number): never => {
  throw new EgressFailure(tag, value)
}

function readOrigin(scheme: string, authority: string, granted: readonly NetworkOrigin[]): NetworkOrigin {
  const origin = scheme === 'http' || scheme === 'https' ? parseAuthority(scheme, authority) : undefined
  if (origin === undefined || !granted.some((allowed) => covers(allowed, origin))) return fail('HTTP-request-denied')
  return origin
}

function readPath(path: string): string {
  const whole = path.startsWith('/') ? path : `/${path}`
  if (whole.length > MOST_PATH_CHARACTERS) fail('HTTP-request-URI-too-long')
  return PATH.test(whole) && (path === whole || path === '' || path.startsWith('?'))
    ? whole
    : fail('HTTP-request-URI-invalid')
}

function readHeaders(fields: readonly (Buffer | undefined)[]): Map<string, [name: string, values: string[]]> {
  if (fields.length % 2 !== 0) fail('HTTP-protocol-error')
  const bytes = fields.reduce((sum, field) => sum + (field?.length ?? 0), 0)
  if (bytes > MOST_HEADER_BYTES || fields.length > 2 * MOST_HEADERS) fail('HTTP-request-header-section-size', bytes)
  const headers = new Map<string, [name: string, values: string[]]>()
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at]?.toString('latin1') ?? ''
    const value = fields[at + 1]?.toString('latin1').replace(BLANKS, '') ?? ''
    if (!TOKEN.test(name) || !VALUE.test(value)) fail('HTTP-protocol-error')
    const key = name.toLowerCase()
    if (HOP_HEADERS.has(key)) fail('HTTP-request-denied')
    const known = headers.get(key)
    if (known === undefined) headers.set(key, [name, [value]])
    else known[1].push(value)
  }
  return headers
}

/** The length that is said in the headers and the one that is known must be one. */
function readLength(said: readonly string[] | undefined, known: number): number | undefined {
  const isKnown = Number.isSafeInteger(known) && known >= 0
  if (!isKnown && known !== UNKNOWN_LENGTH) fail('HTTP-protocol-error')
  if (said === undefined) return isKnown ? known : undefined
  const [text = ''] = said
  if (said.length > 1 || !LENGTH.test(text)) fail('HTTP-protocol-error')
  return isKnown && Number(text) !== known ? fail('HTTP-request-body-size', known) : Number(text)
}

/**
 * Reads a START.
 * @throws RangeError when it is cut short; EgressFailure for a request that is not sent
 */
export function readRequestHead(request: Buffer, granted: readonly NetworkOrigin[], limits: EgressLimits): RequestHead {
  if (request[0] !== EGRESS_OP.START) throw new RangeError('not a request')
  const timeout = (at: number): number => {
    const asked = request.readUInt32LE(at)
    return asked === NO_TIMEOUT ? limits.timeoutMs : Math.min(asked, limits.timeoutMs)
  }
  const known = request.readDoubleLE(13)
  const [method, scheme, authority, path, ...fields] = unpackBytes(request, START_HEAD)
  const textOf = (bytes: Buffer | undefined): string => bytes?.toString('utf8') ?? ''
  const origin = readOrigin(textOf(scheme), textOf(authority), granted)
  const verb = textOf(method)
  // CONNECT would make a tunnel of the connection.
  if (!TOKEN.test(verb) || verb.length > 64 || verb.toUpperCase() === 'CONNECT') fail('HTTP-request-method-invalid')
  const headers = readHeaders(fields)
  const length = readLength(headers.get('content-length')?.[1], known)
  headers.delete('content-length')
  if (length !== undefined && length > limits.requestBytes) fail('HTTP-request-body-size', length)
  return {
    origin,
    method: verb,
    path: readPath(textOf(path)),
    headers: [...headers.values()],
    length,
    connectMs: timeout(1),
    firstByteMs: timeout(5),
    betweenBytesMs: timeout(9),
  }
}
