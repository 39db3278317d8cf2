// HTTP requests of a box and the egress broker's replies. Everything little endian; a handle is a u32 of the broker's
// choice. A box is not trusted: the broker checks every field, and the box checks nothing of the replies.

/** First byte of a request. */
export const EGRESS_OP = {
  /**
   * u32 ms to connect, to the first byte and between bytes (`NO_TIMEOUT` = the server's own), f64 bytes of the body
   * (`UNKNOWN_LENGTH` = they follow until FINISH), then texts [method, scheme, authority, path, name, value…]; values of
   * headers are any bytes. Answers u32 handle.
   */
  START: 1,
  /** u32 handle, bytes of the body. Answered when they are on their way. */
  WRITE: 2,
  /** u32 handle: the body is whole. */
  FINISH: 3,
  /** u32 handle. Answers u16 status, then texts [name, value…]; PENDING while there is none. */
  RESPONSE: 4,
  /** u32 handle, u8 1 to wait. Answers at least one byte, PENDING, or END. */
  READ: 5,
  /** f64 ms to wait at most, then per subject u32 handle, u8 EGRESS_PHASE. Answers u8 1 for each that is ready. */
  POLL: 6,
  /** u32 handle: nobody asks for it any more. */
  CLOSE: 7,
} as const

/** What of an exchange is waited for. */
export const EGRESS_PHASE = { RESPONSE: 0, BODY: 1 } as const

/** First byte of a reply. ERROR: a tag of `error-code` of wasi:http, and LF and its value where it has one. */
export const EGRESS_REPLY = { OK: 0, ERROR: 1, PENDING: 2, END: 3 } as const

export const NO_TIMEOUT = 0xffff_ffff
export const UNKNOWN_LENGTH = -1
/** Bytes of START in front of its texts. */
export const START_HEAD = 21
/** Bytes of one POLL subject. */
export const SUBJECT_BYTES = 5
/** Most bytes of a body in one request of a box, and in one reply. */
export const EGRESS_CHUNK_BYTES = 64 * 1024

/** Headers that the broker makes, or that are between it and the server only. Guests neither set nor see them. */
export const HOP_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** An `error-code` of wasi:http; `value` is a size, or the name of a DNS error. */
export type EgressError = { readonly tag: string; readonly value?: string | number }

export const packEgressError = ({ tag, value }: EgressError): string => (value === undefined ? tag : `${tag}\n${value}`)
