/** Why a schema cannot be said in OpenAI's strict mode: the tool is sent without it. Never leaves this room. */
export class NotStrict extends Error {
  readonly path: string
  readonly remedy: string

  constructor(path: string, reason: string, remedy: string) {
    super(reason)
    this.path = path
    this.remedy = remedy
  }
}
