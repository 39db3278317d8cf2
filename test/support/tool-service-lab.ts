import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import {
  toolServiceBinding,
  type ToolServiceBindingParts,
} from '../../src/bindings/tool-service/tool-service-binding.ts'
import type { ToolOutput } from '../../src/contract/outcome.ts'
import { TOOL_SERVICES, type ToolService } from '../../src/contract/tool-service.ts'
import type { BoundCall, CallNote, CallServices, Receipt, RunningCall } from '../../src/dispatch/tool-binding.ts'
import { BrainError } from '../../src/kernel/errors.ts'
import { localTenant, newSessionId } from '../../src/kernel/ids.ts'
import type { Json } from '../../src/kernel/json.ts'
import type { Logger } from '../../src/kernel/logger.ts'
import { parseProxyRules } from '../../src/kernel/net/proxy-rules.ts'

/** One request as its bytes came. */
export type RawRequest = { readonly head: string; readonly body: string; readonly connection: number }

/** Says what is written to a connection for a request. */
export type Script = (socket: Socket, request: RawRequest) => void

/** A service that is no more than a TCP server: it writes what it is told to, and counts what arrives. */
export class RawService implements AsyncDisposable {
  readonly requests: RawRequest[] = []
  readonly sockets = new Set<Socket>()
  connections = 0
  script: Script
  readonly #server: Server
  readonly #closed: Promise<void>[] = []

  private constructor(script: Script) {
    this.script = script
    this.#server = createServer((socket) => this.#accept(socket))
  }

  static async open(script: Script): Promise<RawService> {
    const service = new RawService(script)
    service.#server.listen(0, '127.0.0.1')
    await once(service.#server, 'listening')
    return service
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }
  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }
  /** Resolves when every connection so far is closed. */
  async closed(): Promise<void> {
    await Promise.all(this.#closed)
  }

  #accept(socket: Socket): void {
    const connection = ++this.connections
    this.sockets.add(socket)
    this.#closed.push(new Promise((resolve) => socket.once('close', () => resolve())))
    socket.once('close', () => this.sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.setNoDelay(true)
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
        if (text.length < end + 4 + length) return
        const body = Buffer.from(text.slice(end + 4, end + 4 + length), 'latin1').toString()
        text = text.slice(end + 4 + length)
        const request = { head, body, connection }
        this.requests.push(request)
        this.script(socket, request)
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

export const headOf = (status: string, headers: readonly string[]): string =>
  `HTTP/1.1 ${status}\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`

/** A whole answer with a JSON body. */
export const jsonAnswer = (body: string | Buffer, type = 'application/json', status = '200 OK'): Buffer =>
  Buffer.concat([
    Buffer.from(headOf(status, [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body)}`])),
    Buffer.from(body),
  ])

/** The head of a stream that ends with its connection. */
export const STREAM_HEAD = headOf('200 OK', ['Content-Type: text/event-stream', 'Connection: close'])

export const HELLO = '{"content":[{"type":"text","text":"hello"}]}'

/** What a call asks of Brain, kept for the test. */
export class RecordedServices implements CallServices {
  isOpen = true
  readonly progressed: Json[] = []
  readonly notes: CallNote[] = []
  readonly #ended = Promise.withResolvers<void>()
  readonly ended = this.#ended.promise
  output: ToolOutput | undefined
  /** Thrown in place of taking the result. */
  refusal: BrainError | undefined

  async finish(outcomeText: string | undefined): Promise<number> {
    if (this.refusal !== undefined) throw this.refusal
    this.output = JSON.parse(outcomeText ?? 'null') as ToolOutput
    this.end()
    return 1
  }
  /** As when the call is interrupted, or has its result. */
  end(): void {
    this.isOpen = false
    this.#ended.resolve()
  }
  progress(data: Json): void {
    this.progressed.push(data)
  }
  note(entry: CallNote): void {
    this.notes.push(entry)
  }
  emit = (): Promise<number> => Promise.reject(new Error('a service emits nothing'))
  emitResult = (): Promise<number> => Promise.reject(new Error('a service emits nothing'))
  returned = (): Promise<number> => Promise.reject(new Error('a service finishes its call'))
  model = (): Promise<string> => Promise.reject(new BrainError('unsupported_host_call', 'no'))
  environments = (): Promise<string> => Promise.reject(new BrainError('unsupported_host_call', 'no'))
}

export type LabCall = {
  readonly call: BoundCall
  readonly running: RunningCall
  readonly services: RecordedServices
  /** What the call finished with, or its receipt. */
  readonly end: Promise<ToolOutput | Receipt>
}

export type Lab = {
  readonly services: Map<string, ToolService>
  /** Everything that was logged. */
  readonly logged: string[]
  call(overrides?: Partial<BoundCall>, recorded?: RecordedServices): LabCall
  close(): void
}

export const echoAt = (url: string, more: Partial<ToolService> = {}): ToolService => ({
  name: 'echo',
  description: 'Echo text.',
  input_schema: { type: 'object' },
  url,
  timeout_seconds: 300,
  max_output_bytes: 1_048_576,
  inspect_session: false,
  ...more,
})

const session = newSessionId()

/** The binding with one tool, `echo`, whose calls a test conducts. */
export function openToolLab(service: ToolService, parts: Partial<ToolServiceBindingParts> = {}): Lab {
  const logged: string[] = []
  const log = (fields: unknown, message: string): void => void logged.push(JSON.stringify([fields, message]))
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  const services = new Map([[service.name, service]])
  const binding = toolServiceBinding({
    services: () => services,
    secret: () => undefined,
    proxies: parseProxyRules({}),
    inspect: () => {
      throw new Error('this service inspects nothing')
    },
    logger,
    ...parts,
  })
  let sequence = 0
  return {
    services,
    logged,
    close: () => binding.close(),
    call(overrides = {}, recorded = new RecordedServices()) {
      const call: BoundCall = {
        tenant: localTenant,
        session,
        sequence: ++sequence,
        tool: service.name,
        place: {
          environment: TOOL_SERVICES,
          reference: { name: TOOL_SERVICES.name, sequence: 1 },
          template: 'brain-http',
        },
        grants: [],
        implementation: null,
        input: '{"text":"hello"}',
        deadlineAtMs: 0,
        deadlineInMs: undefined,
        controllerServices: () => {
          throw new Error('a tool service has no controller')
        },
        ...overrides,
      }
      const running = binding.start(call, recorded)
      return { call, running, services: recorded, end: running.receipt.then((receipt) => recorded.output ?? receipt) }
    },
  }
}
