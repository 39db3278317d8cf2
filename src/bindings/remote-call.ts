import { BrainError } from '../kernel/errors.ts'
import type { CallServices, Receipt } from '../dispatch/tool-binding.ts'

/** So many updates and events of one call, and so many of its other requests, may be in hand at once (contract 4.2). */
const MOST_IN_HAND = 8

const finished = (): BrainError =>
  new BrainError('conflict', 'Cannot use this call: it is not pending, its execution is finished')

/** One call that somebody elsewhere was given: what they say of it, in order, until the call is over. */
export class RemoteCall {
  readonly #services: CallServices
  readonly #receipt = Promise.withResolvers<Receipt>()
  readonly #onOver: () => void
  #isOver = false
  /** Apart from each other: a call whose model calls take long may finish all the same. */
  readonly #inHand = { ordered: 0, other: 0 }
  #last: Promise<unknown> = Promise.resolve()

  constructor(services: CallServices, onOver: () => void) {
    this.#services = services
    this.#onOver = onOver
  }

  get receipt(): Promise<Receipt> {
    return this.#receipt.promise
  }

  /** Serves something of which order counts: it waits for what was asked before. */
  serveInOrder<T>(work: (services: CallServices) => Promise<T>): Promise<T> {
    return this.#count('ordered', () => {
      const serving = this.#last.then(() => this.#serveClosing(work))
      this.#last = serving.catch(() => undefined)
      return serving
    })
  }

  serve<T>(work: (services: CallServices) => Promise<T>): Promise<T> {
    return this.#count('other', () => this.#serve(work))
  }

  async #count<T>(kind: 'ordered' | 'other', work: () => Promise<T>): Promise<T> {
    if (this.#inHand[kind] >= MOST_IN_HAND)
      throw new BrainError('overloaded', `Cannot serve this call: ${MOST_IN_HAND} requests of it are in hand already`)
    this.#inHand[kind]++
    try {
      return await work()
    } finally {
      this.#inHand[kind]--
    }
  }

  /** As {@link #serve}, of what may close the call. */
  async #serveClosing<T>(work: (services: CallServices) => Promise<T>): Promise<T> {
    try {
      return await this.#serve(work)
    } finally {
      // What closes a call is on record when its service answers, also where it answers with a refusal. Others may see
      // it closing, and the storage may still refuse that.
      if (!this.#services.isOpen) this.end({ type: 'result', text: '' })
    }
  }

  async #serve<T>(work: (services: CallServices) => Promise<T>): Promise<T> {
    if (this.#isOver || !this.#services.isOpen) throw finished()
    try {
      return await work(this.#services)
    } catch (error) {
      throw this.#refusal(error)
    }
  }

  #refusal(error: unknown): unknown {
    const code = error instanceof BrainError ? error.code : undefined
    // An end that came meanwhile is the reason, whatever it did to this request.
    if (!this.#services.isOpen && (code === undefined || code === 'invalid_request')) return finished()
    if (error instanceof BrainError && code === 'invalid_output')
      return new BrainError('invalid_request', error.message, { cause: error })
    return error
  }

  /** It may have been done, and nobody will say so; what was said before counts. */
  lose(message: string): void {
    void this.#last.then(() => this.end({ type: 'unknown', message }))
  }

  /** What came back at last. Whoever runs the call may go on with it, where that left it open. */
  conclude(receipt: Receipt): void {
    void this.#last.then(() => this.#receipt.resolve(receipt))
  }

  /** The call is over, here at least. The receipt is looked at only while it is open. */
  end(receipt: Receipt): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#receipt.resolve(receipt)
    this.#onOver()
  }
}
