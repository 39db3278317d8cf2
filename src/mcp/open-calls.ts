import { BrainError } from '../kernel/errors.ts'

/** Calls that may be open at once through MCP, of all clients together; and cancellations that wait for their calls. */
const MOST_OPEN = 1024

/** How much earlier than its call a cancellation may be here: both are under way at once, on two connections. */
const EARLY_MS = 10_000

/**
 * The calls of MCP clients that wait for their answers, so that a message of its own can cancel one. Between calls
 * nothing is kept of a client: its name only keeps its request ids apart from those of others.
 */
export class OpenCalls {
  readonly #most: number
  readonly #named = new Map<string, AbortController>()
  /** When calls were cancelled that are not known yet. */
  readonly #early = new Map<string, number>()
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
    if (key !== undefined && this.#wasCancelled(key)) stop.abort()
    if (key !== undefined) this.#named.set(key, stop)
    this.#open++
    try {
      return await work(stop.signal)
    } finally {
      this.#open--
      if (key !== undefined) this.#named.delete(key)
    }
  }

  /** Harmless when there is no such call any more. One that comes in a moment is cancelled at once. */
  cancel(call: CallName): void {
    const key = keyOf(call)
    if (key === undefined) return
    const stop = this.#named.get(key)
    if (stop !== undefined) return stop.abort()
    this.#early.delete(key)
    this.#early.set(key, performance.now())
    const [oldest] = this.#early.keys()
    if (this.#early.size > this.#most && oldest !== undefined) this.#early.delete(oldest)
  }

  #wasCancelled(key: string): boolean {
    const at = this.#early.get(key)
    this.#early.delete(key)
    return at !== undefined && performance.now() - at < EARLY_MS
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
