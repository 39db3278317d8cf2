import type { Json } from '../kernel/json.ts'

/** Something that somebody asked for and that failed with a code of its own: a model call, an environment (contract 6.3). */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: string
  readonly retryable: boolean
  readonly details: Json | undefined

  constructor(
    code: string,
    message: string,
    options: { readonly cause?: unknown; readonly retryable?: boolean; readonly details?: Json | undefined } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details
  }
}
