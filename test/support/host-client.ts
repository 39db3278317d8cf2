import { TestSession, type Response, type TestServer } from './server.ts'
import type { HostActivity, HostCommand, HostFrame, HostUpdate } from '../../src/contract/host-protocol.ts'

type HostTool = {
  readonly name: string
  readonly input_schema?: object
  readonly output_schema?: object
  readonly placements?: object
}

/** An application as the wire sees it, conducted by a test: it registers, follows its commands, and answers them. */
export class HostClient {
  readonly server: TestServer
  readonly id: string
  readonly token: string

  constructor(server: TestServer, { host_id: id, token }: { readonly host_id: string; readonly token: string }) {
    this.server = server
    this.id = id
    this.token = token
  }

  static async register(server: TestServer): Promise<HostClient> {
    const response = await server.post('/v1/hosts')
    if (response.status !== 200) throw new Error(`not registered: ${response.status} ${response.text}`)
    return new HostClient(server, response.body)
  }

  get path(): string {
    return `/v1/hosts/${this.id}`
  }

  get headers(): Readonly<Record<string, string>> {
    return { authorization: `Bearer ${this.token}` }
  }

  /** Opens a stream; its first frame has come. */
  async connect(): Promise<HostStream> {
    const stop = new AbortController()
    const response = await fetch(`${this.server.url}${this.path}/commands`, {
      headers: this.headers,
      signal: stop.signal,
    })
    if (response.status !== 200) throw new Error(`no stream: ${response.status} ${await response.text()}`)
    const stream = new HostStream(response, stop)
    const first = await stream.next()
    if (first.event !== 'activity') throw new Error(`the first frame is ${first.event}`)
    stream.connection = first.data.connection
    stream.first = first.data
    return stream
  }

  post(route: string, json: unknown): Promise<Response> {
    return this.server.post(`${this.path}/${route}`, json, { headers: this.headers })
  }

  update({ session_id, sequence }: HostCommand, update: HostUpdate): Promise<Response> {
    return this.post('results', { session_id, sequence, update })
  }

  finish(command: HostCommand, value: unknown): Promise<Response> {
    return this.update(command, { type: 'finish', outcome: { status: 'ok', value: value as never } })
  }

  emit({ session_id, sequence }: HostCommand, event_type: string, data: unknown): Promise<Response> {
    return this.post('events', { session_id, sequence, event_type, data })
  }

  /** Asks for a session whose tools are placed in this host. */
  create(tools: readonly HostTool[] = [{ name: 'lookup' }], more: object = {}): Promise<Response> {
    return this.server.post('/v1/sessions', {
      model: { provider: 'scripted', name: 'script', api_key: 'secret-model-key', script: [{ text: 'done' }] },
      tools: tools.map((tool) => ({
        description: `does ${tool.name}`,
        input_schema: { type: 'object' },
        placements: { app: { implementation: { type: 'host_function', name: tool.name } } },
        ...tool,
      })),
      environments: [{ name: 'app', driver: 'host', host_id: this.id, lifecycle: 'automatic' }],
      ...more,
    })
  }

  async session(tools?: readonly HostTool[], more?: object): Promise<TestSession> {
    const created = await this.create(tools, more)
    if (created.status !== 200) throw new Error(`no session: ${created.status} ${created.text}`)
    return new TestSession(this.server, created.body.session_id as string, tools?.[0]?.name ?? 'lookup')
  }
}

/** A stream of commands: frames wait until a test takes them. */
export class HostStream {
  connection = 0
  first: HostActivity = { connection: 0, idle: false }
  /** Resolves when the server has ended the stream, or it was lost. */
  readonly ended: Promise<void>
  readonly #stop: AbortController
  readonly #frames: HostFrame[] = []
  #wake: (() => void) | undefined
  #hasEnded = false

  constructor(response: globalThis.Response, stop: AbortController) {
    this.#stop = stop
    this.ended = this.#read(response)
  }

  async #read(response: globalThis.Response): Promise<void> {
    let pending = ''
    try {
      for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const frames = (pending + chunk).split('\n\n')
        pending = frames.pop() ?? ''
        this.#frames.push(...frames.flatMap(framesIn))
        this.#wake?.()
      }
    } catch (error) {
      if ((error as Error).name !== 'AbortError' && !(error instanceof TypeError)) throw error
    } finally {
      this.#hasEnded = true
      this.#wake?.()
    }
  }

  async next(): Promise<HostFrame> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame !== undefined) return frame
      if (this.#hasEnded) throw new Error('the stream has ended')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** The next command; activity in between is passed over. */
  async command(): Promise<HostCommand> {
    for (;;) {
      const frame = await this.next()
      if (frame.event === 'command') return frame.data
    }
  }

  /** Waits until the server says that the host is idle, or is not. */
  async until(idle: boolean): Promise<void> {
    for (;;) {
      const frame = await this.next()
      if (frame.event === 'activity' && frame.data.idle === idle) return
    }
  }

  close(): void {
    this.#stop.abort()
  }
}

/** Comments are passed over; a frame with an id, or of any other form, is none that a host is sent. */
function framesIn(text: string): HostFrame[] {
  const [, event, data = ''] = /^event: (.*)\ndata: (.*)$/.exec(text) ?? []
  if (event !== undefined) return [{ event, data: JSON.parse(data) } as HostFrame]
  if (text.startsWith(':')) return []
  throw new Error(`a frame of another form: ${text}`)
}
