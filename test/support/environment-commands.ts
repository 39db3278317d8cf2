/** Operations of contract 5.1, as Brain composes them: one at a time, with numbers of their own. */
export class EnvironmentCommands {
  #last = 0

  /** Of the newest. */
  get last(): number {
    return this.#last
  }

  /** @param more members of the operation, in place of the usual ones */
  next(request: object, more: object = {}) {
    return {
      contract: 'environment/v1',
      operation: {
        session_id: 'ses_1',
        environment: 'remote',
        sequence: ++this.#last,
        binding: { name: 'remote', sequence: 1 },
        request,
        ...more,
      },
    }
  }
}
