/**
 * Every way in which Brain itself refuses or fails, with whether the same request may succeed later (contract 0.4).
 * Codes are public API: add freely, never rename.
 */
export const ERRORS = {
  invalid_request: { retryable: false },
  unsupported: { retryable: false },
  unauthorized: { retryable: false },
  forbidden_host: { retryable: false },
  forbidden_origin: { retryable: false },
  not_found: { retryable: false },
  conflict: { retryable: false },
  preparation_failed: { retryable: false },
  overloaded: { retryable: true },
  storage_unavailable: { retryable: true },
  sandbox_unavailable: { retryable: false },
  ambiguous: { retryable: false },
  executor_failed: { retryable: true },
  model_provider_failed: { retryable: false },
  model_output_invalid: { retryable: false },
  model_output_incomplete: { retryable: false },
  model_call_limit: { retryable: false },
  emit_limit: { retryable: false },
  output_limit: { retryable: false },
  invalid_output: { retryable: false },
  unsupported_host_call: { retryable: false },
  host_call_limit: { retryable: false },
  no_turn: { retryable: false },
  invalid_transcript: { retryable: false },
  cancelled: { retryable: false },
  environment_closed: { retryable: false },
  environment_not_ready: { retryable: false },
  environment_output_invalid: { retryable: false },
  internal: { retryable: false },
} as const satisfies Record<string, { retryable: boolean }>

export type ErrorCode = keyof typeof ERRORS

/** What is wrong with a body, where HTTP tells cases of `invalid_request` apart by status (contract 0.4). */
export type BodyFault = 'shape' | 'media_type' | 'too_large'

export type BrainErrorOptions = {
  readonly cause?: unknown
  readonly details?: unknown
  readonly retryable?: boolean
  readonly body?: BodyFault
}

/** A refusal or failure that a caller is told about. Anything else that is thrown is a defect of ours. */
export class BrainError extends Error {
  override readonly name = 'BrainError'
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly details: unknown
  readonly body: BodyFault | undefined

  constructor(code: ErrorCode, message: string, options: BrainErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? ERRORS[code].retryable
    this.details = options.details
    this.body = options.body
  }
}

/** Messages that leave the server are at most this long (contract 0.4). */
export const MAX_MESSAGE_LENGTH = 4096

export const clip = (text: string, length = MAX_MESSAGE_LENGTH): string =>
  text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '')

/** Of whatever was thrown, which may be anything, also something that has no text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'something without a message was thrown'
  }
}
