/** Something that a component asked for and that failed with a code of its own, such as a model call (contract 6.3). */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: string
  readonly retryable: boolean

  constructor(code: string, message: string, options: { readonly cause?: unknown; readonly retryable?: boolean } = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
  }
}
