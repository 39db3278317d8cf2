import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import { deniedResource } from './denied-resource.ts'
import { Failure } from './failure.ts'
import { createFields, type Fields } from './http-fields.ts'
import { type CurrentInvocation, Resource } from './invocation.ts'
import { OutputStream } from './streams.ts'

/** Without an explanation: the interfaces have `result` without an error here. */
const fail = (): never => {
  throw new Failure(undefined)
}

/** Methods of what only an answer, or a request from outside, would make: there is none. */
const neverCalled = (): never => {
  throw new Error('there is no HTTP message from outside')
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/
const NO_CONTROLS = /^[\u0021-\u007e\u0080-\u{10ffff}]*$/u

/** Takes the body of a request that will be denied, and keeps nothing of it. */
class OutgoingBody extends Resource implements Wasi.OutgoingBody {
  #written = false

  write(): OutputStream {
    if (this.#written) fail()
    this.#written = true
    return new OutputStream(this.invocation, { write() {} })
  }

  static finish(body: OutgoingBody, trailers: Fields | undefined): void {
    body[Symbol.dispose]()
    trailers?.[Symbol.dispose]()
  }
}

export class OutgoingRequest extends Resource implements Wasi.OutgoingRequest {
  readonly #headers: Fields
  #method: Wasi.Method = { tag: 'get' }
  #scheme: Wasi.Scheme | undefined
  #authority: string | undefined
  #pathWithQuery: string | undefined
  #hasBody = false

  constructor(headers: Fields) {
    super(headers.invocation)
    this.#headers = headers
  }

  protected override onDrop(): void {
    this.#headers[Symbol.dispose]()
  }

  body(): OutgoingBody {
    if (this.#hasBody) fail()
    this.#hasBody = true
    return new OutgoingBody(this.invocation)
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

/** Timeouts of a request that is never made: taken and given back. */
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

const FutureIncomingResponse = deniedResource<Wasi.FutureIncomingResponse>(neverCalled, { subscribe: true, get: true })
const FutureTrailers = deniedResource<Wasi.FutureTrailers>(neverCalled, { subscribe: true, get: true })
const IncomingResponse = deniedResource<Wasi.IncomingResponse>(neverCalled, {
  status: true,
  headers: true,
  consume: true,
})
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
const IncomingBody = Object.assign(deniedResource<Wasi.IncomingBody>(neverCalled, { stream: true }), {
  finish: neverCalled,
})

const DENIED = new Failure<Wasi.ErrorCode>({ tag: 'HTTP-request-denied' })

/** `wasi:http`: linked, because toolchains import it. A request can be made up, and is denied when it is sent. */
export function createHttp(current: CurrentInvocation) {
  return {
    types: {
      Fields: createFields(current),
      FutureIncomingResponse,
      FutureTrailers,
      IncomingBody,
      IncomingRequest,
      IncomingResponse,
      OutgoingBody,
      OutgoingRequest,
      OutgoingResponse,
      RequestOptions: createRequestOptions(current),
      ResponseOutparam,
      httpErrorCode: () => undefined,
    } satisfies Record<keyof typeof Wasi, unknown>,
    outgoingHandler: {
      handle(request: OutgoingRequest, options: Resource | undefined): never {
        current.get()
        request[Symbol.dispose]()
        options?.[Symbol.dispose]()
        throw DENIED
      },
    },
  }
}
