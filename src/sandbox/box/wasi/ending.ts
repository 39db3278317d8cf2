/** `wasi:cli/exit`: leaves the guest, whatever it is doing. Private to the box: no guest can throw or catch it. */
export class Exit extends Error {
  override readonly name = 'Exit'
  readonly success: boolean

  constructor(success: boolean) {
    super(`exit with ${success ? 'success' : 'failure'}`)
    this.success = success
  }
}

/** The invocation used up a limit (contract A27). A trap: the guest cannot go on. */
export class LimitReached extends Error {
  override readonly name = 'LimitReached'
  readonly code: 'handle_limit' | 'file_limit'

  constructor(code: 'handle_limit' | 'file_limit', message: string) {
    super(message)
    this.code = code
  }
}
