import type { Json } from '../kernel/json.ts'

/**
 * What a server refused or failed at, or what a tool may not do any more (contract 0.4).
 *
 * `status` is the HTTP status, 0 where no answer of a server stands behind it. `code` is one of the codes that the
 * server's documentation lists; `http_error` for an answer that is not Brain's. `retryable` says whether the same
 * request may succeed later.
 */
export class BrainError extends Error {
  override readonly name = 'BrainError'
  readonly status: number
  readonly code: string
  readonly retryable: boolean
  readonly details: Json | undefined

  constructor(
    status: number,
    code: string,
    message: string,
    options: { readonly retryable?: boolean; readonly details?: Json | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.status = status
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details
  }
}

/** Whether an error is one of this package, or of another copy of it. */
export const isBrainError = (error: unknown): error is BrainError =>
  error instanceof Error && error.name === 'BrainError' && 'code' in error && typeof error.code === 'string'
