import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import { NO_TIMEOUT, UNKNOWN_LENGTH } from '../../wire/egress.ts'
import { deniedResource } from './denied-resource.ts'
import type { StartFields } from './egress-requests.ts'
import { httpErrorCode } from './error.ts'
import { Failure } from './failure.ts'
import { HttpExchange } from './http-exchange.ts'
import { createFields, type Fields, FieldTable } from './http-fields.ts'
import { FutureIncomingResponse, FutureTrailers, IncomingBody, IncomingResponse } from './http-response.ts'
import { type CurrentInvocation, Resource } from './invocation.ts'
import { OutputStream } from './streams.ts'

/** Without an explanation: the interfaces have `result` without an error here. */
const fail = (): never => {
  throw new Failure(undefined)
}

/** Methods of what only a request from outside would make: there is none. */
const neverCalled = (): never => {
  throw new Error('there is no HTTP message from outside')
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/
const NO_CONTROLS = /^[\u0021-\u007e\u0080-\u{10ffff}]*$/u

/** The body of a request: kept until the request is sent, from then on handed over as it is written. */
export class OutgoingBody extends Resource implements Wasi.OutgoingBody {
  readonly #pieces: Uint8Array[] = []
  #exchange: HttpExchange | undefined
  #isTaken = false
  #isFinished = false

  /** Its bytes, when it is all there. */
  get length(): number {
    return this.#isFinished ? this.#pieces.reduce((sum, piece) => sum + piece.length, 0) : UNKNOWN_LENGTH
  }

  write(): OutputStream {
    if (this.#isTaken) fail()
    this.#isTaken = true
    return new OutputStream(this.invocation, {
      write: (bytes) => {
        if (this.#exchange === undefined) this.#pieces.push(bytes.slice())
        else this.#exchange.sink.write(bytes)
      },
    })
  }

  /** The request is on its way. What cannot be sent any more the guest learns from the answer. */
  sendThrough(exchange: HttpExchange): void {
    this.#exchange = exchange
    try {
      exchange.write(Buffer.concat(this.#pieces.splice(0)))
      if (this.#isFinished) exchange.finish()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  }

  /** @throws Failure with the error-code */
  static finish(body: OutgoingBody, trailers: Fields | undefined): void {
    const hasTrailers = (trailers?.entries().length ?? 0) > 0
    trailers?.[Symbol.dispose]()
    if (!hasTrailers) body.#isFinished = true
    body[Symbol.dispose]()
    if (hasTrailers) throw new Failure<Wasi.ErrorCode>({ tag: 'HTTP-request-trailer-section-size', val: 0 })
    body.#exchange?.finish()
  }

  /** A body that is not finished is not whole, and its request is none. */
  protected override onDrop(): void {
    if (!this.#isFinished) this.#exchange?.close()
  }
}

export class OutgoingRequest extends Resource implements Wasi.OutgoingRequest {
  readonly #headers: Fields
  #method: Wasi.Method = { tag: 'get' }
  #scheme: Wasi.Scheme | undefined
  #authority: string | undefined
  #pathWithQuery: string | undefined
  #body: OutgoingBody | undefined

  constructor(headers: Fields) {
    super(headers.invocation)
    this.#headers = headers
  }

  protected override onDrop(): void {
    this.#headers[Symbol.dispose]()
  }

  body(): OutgoingBody {
    if (this.#body !== undefined) fail()
    this.#body = new OutgoingBody(this.invocation)
    return this.#body
  }

  /** @throws Failure with the error-code of a request that is not sent */
  send(timeouts: StartFields['timeouts']): HttpExchange {
    const scheme = this.#scheme ?? { tag: 'HTTPS' }
    const exchange = new HttpExchange(this.invocation, {
      timeouts,
      length: this.#body === undefined ? 0 : this.#body.length,
      texts: [
        this.#method.tag === 'other' ? this.#method.val : this.#method.tag.toUpperCase(),
        scheme.tag === 'other' ? scheme.val : scheme.tag.toLowerCase(),
        this.#authority ?? '',
        this.#pathWithQuery ?? '',
        ...this.#headers.entries().flat(),
      ],
    })
    this.#body?.sendThrough(exchange)
    return exchange
  }

  method(): Wasi.Method {
    return this.#method
  }

  setMethod(method: Wasi.Method): void {
    if (method.tag === 'other' && !TOKEN.test(method.val)) fail()
    this.#method = method
  }

  pathWithQuery(): string | undefined {
    return this.#pathWithQuery
  }

  setPathWithQuery(path: string | undefined): void {
    if (path !== undefined && !NO_CONTROLS.test(path)) fail()
    this.#pathWithQuery = path
  }

  scheme(): Wasi.Scheme | undefined {
    return this.#scheme
  }

  setScheme(scheme: Wasi.Scheme | undefined): void {
    if (scheme?.tag === 'other' && !SCHEME.test(scheme.val)) fail()
    this.#scheme = scheme
  }

  authority(): string | undefined {
    return this.#authority
  }

  setAuthority(authority: string | undefined): void {
    if (authority !== undefined && (authority === '' || !NO_CONTROLS.test(authority))) fail()
    this.#authority = authority
  }

  headers(): Fields {
    return this.#headers.view()
  }
}

/** Timeouts of a request; the broker has its own, and takes those that are shorter. */
function createRequestOptions(current: CurrentInvocation) {
  return class RequestOptions extends Resource implements Wasi.RequestOptions {
    #connect: bigint | undefined
    #firstByte: bigint | undefined
    #betweenBytes: bigint | undefined

    constructor() {
      super(current.get())
    }

    connectTimeout(): bigint | undefined {
      return this.#connect
    }

    setConnectTimeout(duration: bigint | undefined): void {
      this.#connect = duration
    }

    firstByteTimeout(): bigint | undefined {
      return this.#firstByte
    }

    setFirstByteTimeout(duration: bigint | undefined): void {
      this.#firstByte = duration
    }

    betweenBytesTimeout(): bigint | undefined {
      return this.#betweenBytes
    }

    setBetweenBytesTimeout(duration: bigint | undefined): void {
      this.#betweenBytes = duration
    }
  }
}

const IncomingRequest = deniedResource<Wasi.IncomingRequest>(neverCalled, {
  method: true,
  pathWithQuery: true,
  scheme: true,
  authority: true,
  headers: true,
  consume: true,
})
const OutgoingResponse = deniedResource<Wasi.OutgoingResponse>(neverCalled, {
  statusCode: true,
  setStatusCode: true,
  headers: true,
  body: true,
})
const ResponseOutparam = Object.assign(deniedResource<Wasi.ResponseOutparam>(neverCalled, {}), { set: neverCalled })
const milliseconds = (duration: bigint | undefined): number => {
  if (duration === undefined) return NO_TIMEOUT
  const whole = (duration + 999_999n) / 1_000_000n
  return whole >= NO_TIMEOUT ? NO_TIMEOUT - 1 : Number(whole)
}

/** `wasi:http`: what is sent goes to the egress broker, which knows what was granted and denies the rest. */
export function createHttp(current: CurrentInvocation) {
  const Fields = createFields(current)
  const RequestOptions = createRequestOptions(current)
  return {
    types: {
      Fields,
      FutureIncomingResponse,
      FutureTrailers,
      IncomingBody,
      IncomingRequest,
      IncomingResponse,
      OutgoingBody,
      OutgoingRequest,
      OutgoingResponse,
      RequestOptions,
      ResponseOutparam,
      httpErrorCode,
    } satisfies Record<keyof typeof Wasi, unknown>,
    outgoingHandler: {
      handle(
        request: OutgoingRequest,
        options: InstanceType<typeof RequestOptions> | undefined,
      ): FutureIncomingResponse {
        const invocation = current.get()
        // What is told to others may be about files.
        invocation.files.settle()
        try {
          const exchange = request.send([
            milliseconds(options?.connectTimeout()),
            milliseconds(options?.firstByteTimeout()),
            milliseconds(options?.betweenBytesTimeout()),
          ])
          return new FutureIncomingResponse(invocation, exchange, (fields) => new Fields(FieldTable.of(fields), false))
        } finally {
          request[Symbol.dispose]()
          options?.[Symbol.dispose]()
        }
      },
    },
  }
}
