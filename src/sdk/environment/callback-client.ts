import { messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import type { Callback } from '../../contract/environment-protocol.ts'
import { answerError } from '../answer-error.ts'
import { boundedText } from '../bounded-text.ts'
import { BrainError } from '../brain-error.ts'
import type { Fetch } from '../client/transport.ts'
import { Slots } from '../host/slots.ts'

/** More of them at once are refused by the server (contract 4.2). */
const MOST_IN_HAND = 8
const MOST_ANSWER_BYTES = 32 * 2 ** 20

export type CallbackOptions = {
  /** Absent: nothing was granted. */
  readonly callback: Callback | undefined
  /** What has these services, for messages, such as `the operation`. */
  readonly owner: string
  /** Ends them; its reason is what they reject with. */
  readonly over: AbortSignal
  /** The platform's when absent. */
  readonly fetch?: Fetch | undefined
}

/** Services of Brain that one operation, execution or environment was given (contract 5.2, 5.3). */
export class CallbackClient {
  readonly #options: CallbackOptions
  readonly #inHand = new Slots(MOST_IN_HAND)

  constructor(options: CallbackOptions) {
    this.#options = options
  }

  get methods(): readonly string[] {
    return this.#options.callback?.methods ?? []
  }

  /**
   * Asks once.
   *
   * @param body of the request; `{ method, input }` when absent
   * @throws BrainError `not_granted`; as Brain refuses it; `ambiguous` when no answer came back: Brain may have done it
   */
  async call(method: string, input: Json, body: Json = { method, input }): Promise<Json> {
    const { callback, owner, over } = this.#options
    over.throwIfAborted()
    if (callback === undefined || !callback.methods.includes(method))
      throw new BrainError(0, 'not_granted', `Cannot call "${method}": Brain has not granted it to ${owner}`)
    return this.#inHand.run(() => this.#ask(callback, method, body))
  }

  async #ask({ url, token }: Callback, method: string, body: Json): Promise<Json> {
    const { over, fetch = globalThis.fetch } = this.#options
    over.throwIfAborted()
    const { response, text } = await this.#exchange(method, () =>
      fetch(url, {
        method: 'POST',
        // Not every platform has 'error'; a redirect is an answer that is no success.
        redirect: 'manual',
        signal: over,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    )
    if (!response.ok) throw answerError(response.status, text, `The service "${method}"`)
    try {
      return text === '' ? null : (JSON.parse(text) as Json)
    } catch (cause) {
      throw new BrainError(response.status, 'ambiguous', `Cannot read the answer to "${method}": not JSON`, { cause })
    }
  }

  async #exchange(method: string, send: () => Promise<Response>): Promise<{ response: Response; text: string }> {
    const { over } = this.#options
    try {
      const response = await send()
      const text = await boundedText(response.body, MOST_ANSWER_BYTES)
      if (text === undefined) throw new TypeError(`it takes more than ${MOST_ANSWER_BYTES} bytes`)
      return { response, text }
    } catch (cause) {
      over.throwIfAborted()
      throw new BrainError(0, 'ambiguous', `Cannot read the answer to "${method}": ${messageOf(cause)}`, { cause })
    }
  }
}

/** The sequence that a service answered, bare or as `{ sequence }`. @throws BrainError `http_error` */
export function sequenceOf(answer: Json, method: string): number {
  const sequence = isJsonObject(answer) ? answer['sequence'] : answer
  if (typeof sequence === 'number') return sequence
  throw new BrainError(0, 'http_error', `Cannot read the answer to "${method}": it holds no sequence`)
}
