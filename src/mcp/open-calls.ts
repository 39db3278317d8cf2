import { BrainError } from '../kernel/errors.ts'

/** Calls that may be open at once through MCP, of all clients together. */
const MOST_OPEN = 1024

/**
 * The calls of MCP clients that wait for their answers, so that a message of its own can cancel one. Between calls
 * nothing is kept of a client: its name only keeps its request ids apart from those of others.
 */
export class OpenCalls {
  readonly #most: number
  readonly #named = new Map<string, AbortController>()
  #open = 0

  constructor(most = MOST_OPEN) {
    this.#most = most
  }

  /**
   * Makes a call that {@link cancel} can end while `work` goes on, when the client has a name.
   * @throws BrainError `overloaded`; `invalid_request` when the same client waits for a request with this id
   */
  async during<Result>(call: CallName, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (this.#open >= this.#most)
      throw new BrainError('overloaded', `Cannot call: ${this.#most} calls of MCP clients are open; try again`)
    const key = keyOf(call)
    if (key !== undefined && this.#named.has(key))
      throw new BrainError('invalid_request', `Cannot call: a request with id ${JSON.stringify(call.request)} is open`)
    const stop = new AbortController()
    if (key !== undefined) this.#named.set(key, stop)
    this.#open++
    try {
      return await work(stop.signal)
    } finally {
      this.#open--
      if (key !== undefined) this.#named.delete(key)
    }
  }

  /** Harmless when there is no such call any more. */
  cancel(call: CallName): void {
    const key = keyOf(call)
    if (key !== undefined) this.#named.get(key)?.abort()
  }
}

/** Which request of which client; only clients of one session share names. */
export type CallName = {
  readonly session: string
  readonly client: string | undefined
  readonly request: string | number
}

const keyOf = ({ session, client, request }: CallName): string | undefined =>
  client === undefined ? undefined : JSON.stringify([session, client, request])
