import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import { Failure } from './failure.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { Fields } from './http-fields.ts'
import { type Invocation, Resource } from './invocation.ts'
import { Pollable } from './poll.ts'
import { InputStream } from './streams.ts'

const fail = (): never => {
  throw new Failure(undefined)
}

/** Trailers are not handed over: there are none, at once. */
export class FutureTrailers extends Resource implements Wasi.FutureTrailers {
  #taken = false

  subscribe(): Pollable {
    return new Pollable(this.invocation)
  }

  get(): ReturnType<Wasi.FutureTrailers['get']> {
    if (this.#taken) return { tag: 'err', val: undefined }
    this.#taken = true
    return { tag: 'ok', val: { tag: 'ok', val: undefined } }
  }
}

/** The body of an answer, from the network piece by piece. Dropping it hangs up. */
export class IncomingBody extends Resource implements Wasi.IncomingBody {
  readonly #exchange: HttpExchange
  #streamed = false

  constructor(invocation: Invocation, exchange: HttpExchange) {
    super(invocation)
    this.#exchange = exchange
  }

  stream(): InputStream {
    if (this.#streamed) fail()
    this.#streamed = true
    return new InputStream(this.invocation, this.#exchange.source, this.#exchange.watchBody())
  }

  static finish(body: IncomingBody): FutureTrailers {
    body[Symbol.dispose]()
    return new FutureTrailers(body.invocation)
  }

  protected override onDrop(): void {
    this.#exchange.close()
  }
}

export class IncomingResponse extends Resource implements Wasi.IncomingResponse {
  readonly #exchange: HttpExchange
  readonly #status: number
  readonly #headers: Fields
  #consumed = false

  constructor(exchange: HttpExchange, status: number, headers: Fields) {
    super(headers.invocation)
    this.#exchange = exchange
    this.#status = status
    this.#headers = headers
  }

  status(): number {
    return this.#status
  }

  headers(): Fields {
    return this.#headers.view()
  }

  consume(): IncomingBody {
    if (this.#consumed) fail()
    this.#consumed = true
    return new IncomingBody(this.invocation, this.#exchange)
  }

  protected override onDrop(): void {
    this.#headers[Symbol.dispose]()
    if (!this.#consumed) this.#exchange.close()
  }
}

/** The answer that will come. Dropping it before hangs up. */
export class FutureIncomingResponse extends Resource implements Wasi.FutureIncomingResponse {
  readonly #exchange: HttpExchange
  readonly #makeFields: (fields: readonly (readonly [string, Uint8Array])[]) => Fields
  #taken = false

  constructor(
    invocation: Invocation,
    exchange: HttpExchange,
    makeFields: (fields: readonly (readonly [string, Uint8Array])[]) => Fields,
  ) {
    super(invocation)
    this.#exchange = exchange
    this.#makeFields = makeFields
  }

  subscribe(): Pollable {
    return new Pollable(
      this.invocation,
      undefined,
      this.#exchange.watchResponse(() => this.#taken),
    )
  }

  get(): ReturnType<Wasi.FutureIncomingResponse['get']> {
    if (this.#taken) return { tag: 'err', val: undefined }
    try {
      const head = this.#exchange.response()
      if (head === undefined) return undefined
      this.#taken = true
      const response = new IncomingResponse(this.#exchange, head.status, this.#makeFields(head.fields))
      return { tag: 'ok', val: { tag: 'ok', val: response } }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      this.#taken = true
      this.#exchange.close()
      return { tag: 'ok', val: { tag: 'err', val: error.payload as Wasi.ErrorCode } }
    }
  }

  protected override onDrop(): void {
    if (!this.#taken) this.#exchange.close()
  }
}
