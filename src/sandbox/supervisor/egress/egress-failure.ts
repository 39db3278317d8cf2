import type { EgressError } from '../../wire/egress.ts'

/** Ends one exchange with an `error-code` of wasi:http that its guest gets. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly error: EgressError

  constructor(tag: string, value?: string | number) {
    super(tag)
    this.error = value === undefined ? { tag } : { tag, value }
  }
}

const TAGS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection-refused',
  ECONNRESET: 'connection-terminated',
  EHOSTUNREACH: 'destination-IP-unroutable',
  ENETUNREACH: 'destination-IP-unroutable',
  EPIPE: 'connection-terminated',
  ETIMEDOUT: 'connection-timeout',
  HPE_HEADER_OVERFLOW: 'HTTP-response-header-section-size',
  HPE_INVALID_TRANSFER_ENCODING: 'HTTP-response-transfer-coding',
}

const CERTIFICATE = /CERT|^UNABLE_TO_|SELF_SIGNED/
const TLS = /^ERR_SSL_|^ERR_TLS_|^EPROTO$/

function tagOf(code: string): string {
  const tag = TAGS[code]
  if (tag !== undefined) return tag
  if (CERTIFICATE.test(code)) return 'TLS-certificate-error'
  if (TLS.test(code)) return 'TLS-protocol-error'
  return code.startsWith('HPE_') ? 'HTTP-protocol-error' : 'internal-error'
}

/** What Node's sockets and parsers throw, in the words of wasi:http. Nothing else of the error reaches the guest. */
export function toEgressFailure(error: unknown): EgressFailure {
  if (error instanceof EgressFailure) return error
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return new EgressFailure(tagOf(code))
}
