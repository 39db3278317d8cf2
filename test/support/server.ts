import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CallAnswer } from '../../src/session/direct-calls.ts'
import type { JournalRecord } from '../../src/journal/record.ts'

export type Response = { readonly status: number; readonly headers: Headers; readonly body: any; readonly text: string }

type RequestOptions = {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly bytes?: Uint8Array | ReadableStream
  readonly type?: string
}

/** Most servers of tests run few components or none: boxes that nobody asks for are half of what their start costs. */
const WARM_BOXES = process.env['BRAIN_TEST_WARM_BOXES'] ?? '0'

/** A real server process, and what a client of it needs. */
export class TestServer {
  readonly directory: string
  readonly #env: Readonly<Record<string, string>>
  readonly #hostConfig: string | undefined
  #child: ChildProcess | undefined
  url = ''
  /** Sent with every request that has no other. */
  token: string | undefined
  log = ''

  constructor(directory: string, env: Readonly<Record<string, string>>, hostConfig?: string) {
    this.directory = directory
    this.#env = env
    this.#hostConfig = hostConfig
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...this.#program()], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.directory,
      env: {
        PATH: process.env['PATH'] ?? '',
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
        BRAIN_LISTEN: '127.0.0.1:0',
        // As operators write it, and as it is by default: from where the server stands.
        BRAIN_DATA_DIR: 'data',
        BRAIN_SCRIPTED_MODEL: '1',
        BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace,scratch',
        BRAIN_ENV_WORKERS: WARM_BOXES,
        ...this.#env,
      },
    })
    this.#child = child
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.log += text))
    let out = ''
    for await (const chunk of child.stdout ?? []) {
      out += String(chunk)
      const match = /listens on (http:\S+?),/.exec(out)
      if (match?.[1] !== undefined) {
        this.url = match[1]
        child.stdout?.resume()
        return
      }
    }
    throw new Error(`the server did not start: ${out}${this.log}`)
  }

  /** The server alone, or the command where it is given a host config. */
  #program(): string[] {
    const source = join(import.meta.dirname, '../../src')
    return this.#hostConfig === undefined
      ? [join(source, 'main.ts')]
      : [join(source, 'cli/brain.ts'), 'serve', '--config', this.#hostConfig]
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
    return child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.directory, { recursive: true, force: true })
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    const isBody = options.json !== undefined || options.bytes !== undefined
    const type = options.type ?? (options.json === undefined ? 'application/octet-stream' : 'application/json')
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(isBody ? { 'content-type': type } : {}),
        ...(method === 'GET' ? {} : { 'idempotency-key': options.key ?? randomUUID() }),
        ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
        ...options.headers,
      },
      ...(isBody ? { body: (options.bytes ?? JSON.stringify(options.json)) as never, duplex: 'half' } : {}),
    } as RequestInit)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : text }
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request('GET', path, { headers })
  }

  post(path: string, json?: unknown, options: RequestOptions = {}): Promise<Response> {
    return this.request('POST', path, json === undefined ? options : { ...options, json })
  }

  async admit(bytes: Uint8Array, resource: 'tools' | 'agentloops' = 'tools'): Promise<string> {
    const response = await this.request('POST', `/v1/${resource}`, { bytes, type: 'application/wasm' })
    if (response.status !== 200) throw new Error(`not admitted: ${response.status} ${response.text}`)
    return response.body.id as string
  }

  /** Admits a committed component and makes a session with it as its one tool. */
  async sessionWith(component: string | Uint8Array, options: SessionOptions = {}): Promise<TestSession> {
    const bytes = typeof component === 'string' ? await fixture(component) : component
    const id = await this.admit(bytes)
    return this.session([{ name: options.name ?? 'tool', id, configuration: options.configuration ?? {} }], options)
  }

  async session(
    tools: readonly {
      name: string
      id: string
      configuration?: unknown
      description?: string
      input_schema?: unknown
    }[],
    options: SessionOptions = {},
  ): Promise<TestSession> {
    const created = await this.post('/v1/sessions', {
      model: {
        provider: 'scripted',
        name: 'script',
        api_key: 'secret-model-key',
        script: options.script ?? [{ text: 'done' }],
      },
      tools: tools.map(({ name, id, configuration = {}, description, input_schema }) => ({
        name,
        ...(description === undefined ? {} : { description }),
        ...(input_schema === undefined ? {} : { input_schema }),
        placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration } } },
      })),
      environments: [
        {
          name: 'box',
          driver: 'brain',
          lifecycle: 'automatic',
          configuration: options.grants ?? { filesystem: { workspace: 'write', scratch: 'write' } },
        },
      ],
      ...options.request,
    })
    if (created.status !== 200) throw new Error(`no session: ${created.status} ${created.body.message}`)
    return new TestSession(this, created.body.session_id as string, tools[0]?.name ?? 'tool')
  }
}

export type SessionOptions = {
  readonly name?: string
  readonly configuration?: unknown
  readonly grants?: unknown
  readonly script?: unknown
  /** Further members of the create request. */
  readonly request?: object
}

export class TestSession {
  readonly server: TestServer
  readonly id: string
  readonly tool: string

  constructor(server: TestServer, id: string, tool: string) {
    this.server = server
    this.id = id
    this.tool = tool
  }

  get path(): string {
    return `/v1/sessions/${this.id}`
  }

  /** A direct call, which must be taken. */
  async call(
    input: unknown,
    options: { deadlineMs?: number; tool?: string; wait?: 'finished'; key?: string } = {},
  ): Promise<CallAnswer> {
    const query = options.wait === undefined ? '' : `?wait=${options.wait}`
    const deadline = options.deadlineMs === undefined ? {} : { deadline_ms: options.deadlineMs }
    const response = await this.server.post(
      `${this.path}/tools/${options.tool ?? this.tool}/calls${query}`,
      { input, ...deadline },
      options.key === undefined ? {} : { key: options.key },
    )
    if (response.status !== 200) throw new Error(`the call was refused: ${response.status} ${response.text}`)
    return response.body as CallAnswer
  }

  /** A direct call that must finish ok. @returns the value of its last result */
  async value(input: unknown, options: Parameters<TestSession['call']>[1] = {}): Promise<any> {
    const answer = await this.call(input, { wait: 'finished', ...options })
    if (answer.outcome?.status !== 'ok')
      throw new Error(`the call did not end ok: ${JSON.stringify(answer).slice(0, 2000)}`)
    return answer.results.at(-1)?.output
  }

  async records(): Promise<JournalRecord[]> {
    const records: JournalRecord[] = []
    for (;;) {
      const { body } = await this.server.get(`${this.path}/events?after=${records.at(-1)?.sequence ?? 0}`)
      const events = body.events as JournalRecord[]
      if (events.length === 0) return records
      records.push(...events)
    }
  }

  send(message: string): Promise<Response> {
    return this.server.post(`${this.path}/messages`, { input: { message } })
  }

  log(sequence: number): Promise<Response> {
    return this.server.get(`${this.path}/calls/${sequence}/log`)
  }

  /** The log of a call once it is there: it is written when `run` is over, which may be after the answer. */
  async logWhen(sequence: number, isThere: (log: any) => boolean): Promise<any> {
    for (let round = 0; round < 200; round++) {
      const { status, body } = await this.log(sequence)
      if (status === 200 && isThere(body)) return body
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error(`the log of call ${sequence} did not come: ${(await this.log(sequence)).text}`)
  }

  put(path: string, bytes: Uint8Array | string): Promise<Response> {
    return this.server.request('PUT', `${this.path}/environments/box/files/${path}`, { bytes: Buffer.from(bytes) })
  }

  file(path: string): Promise<Response> {
    return this.server.get(`${this.path}/environments/box/files/${path}`)
  }
}

/** Starts a server with a data directory of its own. */
export async function startServer(
  env: Readonly<Record<string, string>> = {},
  hostConfig?: object,
): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'brain-test-'))
  const file = hostConfig === undefined ? undefined : join(directory, 'brain.json')
  if (file !== undefined) await writeFile(file, JSON.stringify(hostConfig))
  const server = new TestServer(directory, env, file)
  try {
    await server.start()
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** Bytes of a committed component. */
export const fixture = (name: string): Promise<Buffer> =>
  readFile(join(import.meta.dirname, '../fixtures/components', `${name}.wasm`))

/** Resident memory of a process, in bytes. */
export async function rssOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}
