import { createHash, randomBytes } from 'node:crypto'
import { BrainError } from '../../kernel/errors.ts'
import type { SessionId } from '../../kernel/ids.ts'
import type { Json } from '../../kernel/json.ts'
import type { Callback } from '../../contract/environment-protocol.ts'

/** Answers one request of whoever holds the token, with JSON text. */
export type Serve = (method: string, input: Json) => Promise<string>

export type OpenCallback = {
  readonly callback: Callback
  /** The token opens nothing any more: `not_found`, or the refusal that is given; the last one counts. */
  close(refusal?: () => BrainError): void
}

/** Closed callbacks of which the refusal is remembered; the oldest are forgotten, and are `not_found` then. */
const MOST_CLOSED = 4096

type Entry = { readonly methods: ReadonlySet<string>; readonly serve: Serve }

/** Nothing of what the callback was for: that may be large. */
type Closed = { readonly refusal: () => BrainError }

/** An execution has two: of what runs there, and of the controller. By its digest, what is looked up tells nothing of a token. */
const idOf = (session: SessionId, sequence: number, token: string): string =>
  `${session}/${sequence}/${createHash('sha256').update(token).digest('base64url')}`

/**
 * Tokens that environments are given for one execution, activation or operation (contract 5.2). They live in this process
 * only: what they are for does not outlive it.
 */
export class Callbacks {
  readonly #baseUrl: () => string
  readonly #open = new Map<string, Entry>()
  readonly #closed = new Map<string, Closed>()

  /** @param baseUrl under which environments reach this server; asked for when the first is told. */
  constructor(baseUrl: () => string) {
    this.#baseUrl = baseUrl
  }

  open(session: SessionId, sequence: number, methods: readonly string[], serve: Serve): OpenCallback {
    const token = `bex_${randomBytes(32).toString('base64url')}`
    const id = idOf(session, sequence, token)
    this.#open.set(id, { methods: new Set(methods), serve })
    return {
      callback: { url: `${this.#baseUrl()}/v1/sessions/${session}/executions/${sequence}/call`, token, methods },
      close: (refusal) => this.#close(id, refusal),
    }
  }

  #close(id: string, refusal: (() => BrainError) | undefined): void {
    this.#open.delete(id)
    if (refusal === undefined) return
    this.#closed.set(id, { refusal })
    const [oldest] = this.#closed.keys()
    if (this.#closed.size > MOST_CLOSED && oldest !== undefined) this.#closed.delete(oldest)
  }

  /** @throws BrainError `not_found` */
  assertToken(session: SessionId, sequence: number, token: string): void {
    this.#entry(session, sequence, token)
  }

  #entry(session: SessionId, sequence: number, token: string): Entry | Closed {
    const id = idOf(session, sequence, token)
    const entry = this.#open.get(id) ?? this.#closed.get(id)
    if (entry !== undefined) return entry
    throw new BrainError(
      'not_found',
      `Cannot find execution ${sequence} of session "${session}": this token does not open it`,
    )
  }

  /**
   * Serves a request by its token.
   * @returns JSON text
   * @throws BrainError `not_found` for another token or none that is open, `invalid_request` for a method that was not
   *   granted, what the callback was closed with, and what the service says
   */
  async call(
    session: SessionId,
    sequence: number,
    request: { readonly token: string; readonly method: string; readonly input: Json },
  ): Promise<string> {
    const entry = this.#entry(session, sequence, request.token)
    if ('refusal' in entry) throw entry.refusal()
    const { method, input } = request
    if (!entry.methods.has(method))
      throw new BrainError(
        'invalid_request',
        `Cannot call ${JSON.stringify(method.slice(0, 80))}: this execution was granted ${[...entry.methods].join(', ')}`,
      )
    return entry.serve(method, input)
  }
}
