import type { ComponentRole, HostMethod } from '../sandbox.ts'

/** Supervisor → box. A box trusts these. */
export const TO_BOX = {
  /** The component: u32 length of a LoadHead as JSON, that, the JavaScript, the cores. */
  LOAD: 1,
  /** The texts of the entry (wire/entries.ts), then the guest paths of the mounts. */
  INVOKE: 2,
  /** The answer to the one outstanding request. */
  REPLY: 3,
} as const

/** Box → supervisor. Nothing in them is trusted. */
export const FROM_BOX = {
  /** The runtime is up, no component yet. */
  READY: 10,
  /** A file request, answered by the broker (wire/files.ts). */
  FILES: 11,
  /** A host call: u8 index in HOST_METHODS, then texts. */
  HOST: 12,
  /** The invocation is over: u8 END, f64 ms of run, u32 bytes on stdout, u32 on stderr, then a text. */
  DONE: 13,
  /** The next instance is there. */
  IDLE: 14,
  /** There will be no instance: u8 FAULT, then `code` LF `message`. */
  FAILED: 15,
  /** A step of an HTTP request, answered by the egress broker (wire/egress.ts). */
  EGRESS: 16,
} as const

/** How `run` ended, as the box says. */
export const END = {
  /** The text that the entry returned. */
  VALUE: 0,
  /** `code` LF `message` of an error that the entry returned. */
  ERROR: 1,
  /** `code` LF `message`: a trap, an exception, an exhausted limit. The box ends. */
  FATAL: 2,
  /** wasi:cli/exit: u8 1 for success. Ends the call; the box is replaced. */
  EXIT: 3,
  /** As ERROR, by a guest that says that the same may succeed later. */
  RETRYABLE_ERROR: 4,
} as const
export const DONE_HEAD = 17

/** What of a component failed before an invocation. */
export const FAULT = {
  /** Its code is not accepted by the engine. */
  CANNOT_COMPILE: 0,
  /** Its instance cannot be made: a trap in a start function, not enough memory. */
  CANNOT_START: 1,
} as const

/** First byte of a reply to a host call. */
export const REPLY_OK = 0
export const REPLY_ERROR = 1
/** As REPLY_ERROR, where the same request may succeed later. */
export const REPLY_RETRYABLE_ERROR = 2

export type LoadHead = {
  readonly role: ComponentRole
  readonly js: number
  readonly cores: readonly (readonly [name: string, bytes: number])[]
  readonly limits: {
    readonly linearMemoryBytes: number
    readonly guestHandles: number
    readonly guestReadBytes: number
    /** Longest frame that the supervisor takes from this box. */
    readonly frameBytes: number
  }
}

/** `brain:tool/host` and `brain:agentloop/host` by number. */
export const HOST_METHODS = [
  'emit',
  'emitResult',
  'returned',
  'finish',
  'model',
  'environments',
  'telemetry',
  'dispatch',
  'events',
  'setTranscript',
  'kvRead',
  'kvPut',
  'kvDelete',
] as const satisfies readonly HostMethod[]

/** An error as bytes: `code`, a line feed, the message. */
export const errorText = (code: string, message: string): string => `${code}\n${message}`

const CODE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
const MAX_MESSAGE_BYTES = 16_384

/** Reads such bytes. @param otherwise what stands for a code that is no identifier */
export function readError(
  bytes: Buffer,
  otherwise = 'tool_error',
): { readonly code: string; readonly message: string } {
  const text = bytes.toString('utf8', 0, MAX_MESSAGE_BYTES)
  const cut = text.indexOf('\n')
  const code = text.slice(0, Math.max(cut, 0))
  return { code: CODE.test(code) ? code : otherwise, message: text.slice(cut + 1).slice(0, 4096) }
}
