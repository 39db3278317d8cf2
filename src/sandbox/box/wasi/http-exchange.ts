import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import type { StreamError } from '@bytecodealliance/preview2-shim/interfaces/wasi-io-streams'
import { EGRESS_PHASE } from '../../wire/egress.ts'
import type { ReceivedHead, StartFields } from './egress-requests.ts'
import { IoError } from './error.ts'
import { Failure } from './failure.ts'
import type { Invocation } from './invocation.ts'
import type { Watch } from './poll.ts'
import { closed, type Sink, type Source } from './streams.ts'

const NOTHING = Buffer.alloc(0)

/** One request at the broker, as the guest's handles of it share it. */
export class HttpExchange {
  readonly #invocation: Invocation
  readonly #handle: number
  #isClosed = false
  #ahead: Buffer = NOTHING

  /** @throws Failure with the error-code of a request that is not sent */
  constructor(invocation: Invocation, fields: StartFields) {
    this.#invocation = invocation
    this.#handle = invocation.egress.start(fields)
  }

  /** What a pollable of its answer waits for. */
  watchResponse(isTaken: () => boolean): Watch {
    return { handle: this.#handle, phase: EGRESS_PHASE.RESPONSE, isReady: isTaken }
  }

  watchBody(): Watch {
    return { handle: this.#handle, phase: EGRESS_PHASE.BODY, isReady: () => this.#ahead.length > 0 }
  }

  /** @throws Failure with the error-code */
  write(bytes: Uint8Array): void {
    this.#invocation.egress.write(this.#handle, bytes)
  }

  readonly sink: Sink = { write: (bytes) => this.#streaming(() => this.write(bytes)) }

  finish(): void {
    this.#invocation.egress.finish(this.#handle)
  }

  response(): ReceivedHead | undefined {
    return this.#invocation.egress.response(this.#handle)
  }

  readonly source: Source = (length, wait) => {
    if (this.#ahead.length === 0)
      this.#ahead = this.#streaming(() => this.#invocation.egress.read(this.#handle, wait)) ?? closed()
    const bytes = this.#ahead.subarray(0, length)
    this.#ahead = this.#ahead.subarray(bytes.length)
    return bytes
  }

  /** Hangs up. Again, and after the call: does nothing. */
  close(): void {
    if (this.#isClosed || this.#invocation.isOver) return
    this.#isClosed = true
    this.#invocation.egress.close(this.#handle)
  }

  /** Errors of a stream are an `error` that knows its error-code. */
  #streaming<Result>(step: () => Result): Result {
    try {
      return step()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const val = new IoError(this.#invocation, error.payload as Wasi.ErrorCode)
      throw new Failure<StreamError>({ tag: 'last-operation-failed', val })
    }
  }
}
