/** Something that a tool asked for and that failed with a code of its own, such as a model call (contract 6.3). */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
