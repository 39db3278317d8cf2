import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Json } from '../src/kernel/json.ts'
import type { SandboxStatus } from '../src/sandbox/sandbox.ts'
import { ApiClient } from '../src/cli/api/api-client.ts'
import { sessionRequest } from '../src/cli/demo/session-request.ts'
import { startServer, type ServerProcess } from '../src/cli/demo/server-process.ts'
import type { Lane, LoadPlan, LoadResult } from './load/plan.ts'

const LOAD = fileURLToPath(new URL('./load/main.ts', import.meta.url))

/** A load process that goes on until it is told to stop. */
export type RunningLoad = { stop(): Promise<LoadResult> }

/** Servers with their directories that an exit of ours would leave behind. */
const living = new Map<ServerProcess, string>()
process.once('exit', () => {
  for (const [server, directory] of living) {
    server.kill()
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
})
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code))

/** The server of one run, and the ways in which groups use it. */
export class BenchServer implements AsyncDisposable {
  readonly api: ApiClient
  readonly dataDirectory: string
  readonly #directory: string
  readonly #process: ServerProcess
  readonly #ids = new Map<Uint8Array, string>()

  private constructor(directory: string, process: ServerProcess) {
    this.#directory = directory
    this.#process = process
    this.dataDirectory = join(directory, 'data')
    this.api = new ApiClient(process.url)
  }

  /** @param parent where the data is kept, and so what the floor of durable writes is measured on */
  static async start(parent = tmpdir(), nodeFlags: readonly string[] = [], hostConfig?: Json): Promise<BenchServer> {
    const directory = await mkdtemp(join(parent, 'brain-bench-'))
    try {
      const file = join(directory, 'brain.json')
      if (hostConfig !== undefined) await writeFile(file, JSON.stringify(hostConfig))
      const server = await startServer({
        dataDirectory: join(directory, 'data'),
        logFile: join(directory, 'server.log'),
        settings: { BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace' },
        nodeFlags,
        ...(hostConfig === undefined ? {} : { hostConfig: file }),
      })
      living.set(server, directory)
      return new BenchServer(directory, server)
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw error
    }
  }

  get pid(): number {
    return this.#process.pid
  }

  get port(): number {
    return Number(new URL(this.#process.url).port)
  }

  /** The id of a component, uploaded once. */
  async admit(component: Uint8Array): Promise<string> {
    const known = this.#ids.get(component)
    if (known !== undefined) return known
    const id = await this.api.admit(component)
    this.#ids.set(component, id)
    return id
  }

  /** A session with one tool. @returns the path of its direct calls */
  async openSession(name: string, component: Uint8Array): Promise<string> {
    return (await this.openTools({ [name]: component }))[name] ?? ''
  }

  /** A session with several tools on one workspace. @returns the path of each one's direct calls */
  async openTools<Name extends string>(components: Readonly<Record<Name, Uint8Array>>): Promise<Record<Name, string>> {
    const names = Object.keys(components) as Name[]
    const tools = await Promise.all(names.map(async (name) => ({ name, id: await this.admit(components[name]) })))
    const request = sessionRequest(tools, [{ text: 'nothing to say' }])
    const { session_id: session } = await this.api.post<{ session_id: string }>('/v1/sessions', request)
    const paths = names.map((name) => [name, `/v1/sessions/${session}/tools/${name}/calls`])
    return Object.fromEntries(paths) as Record<Name, string>
  }

  /** A session whose model says one thing after another, with at most one tool. @returns its path */
  async openScripted(script: Json, tool?: { readonly name: string; readonly component: Uint8Array }): Promise<string> {
    const tools = tool === undefined ? [] : [{ name: tool.name, id: await this.admit(tool.component) }]
    const { session_id: session } = await this.api.post<{ session_id: string }>(
      '/v1/sessions',
      sessionRequest(tools, script),
    )
    return `/v1/sessions/${session}`
  }

  async status(): Promise<SandboxStatus> {
    const health = await this.api.get<{ sandbox: SandboxStatus }>('/health/ready?verbose')
    return health.sandbox
  }

  /** Waits until a call can begin in a box that is warm and nobody's, and nothing else is being started. */
  async untilWarm(): Promise<void> {
    const deadline = performance.now() + 20_000
    for (;;) {
      const { boxes } = await this.status()
      const isStarting = boxes.some(({ state }) => state === 'starting' || state === 'dying')
      if (!isStarting && boxes.some(({ state }) => state === 'warm')) return
      if (performance.now() > deadline) throw new Error('Cannot measure: no box became warm in 20 s')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Runs a plan in a process of its own. @throws Error when an answer is not the expected one */
  async load(plan: Omit<LoadPlan, 'port'>): Promise<LoadResult> {
    return finished(this.#spawnLoad(plan))
  }

  startLoad(plan: Omit<LoadPlan, 'port' | 'until'>): RunningLoad {
    const child = this.#spawnLoad({ ...plan, until: 'told' })
    const result = finished(child)
    result.catch(() => undefined)
    return {
      stop() {
        child.stdin.end()
        return result
      },
    }
  }

  #spawnLoad(plan: Omit<LoadPlan, 'port'>): ReturnType<typeof spawnLoad> {
    return spawnLoad({ ...plan, port: this.port })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop()
    living.delete(this.#process)
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

function spawnLoad(plan: LoadPlan) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LOAD], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.write(`${JSON.stringify(plan)}\n`)
  return child
}

async function finished(child: ReturnType<typeof spawnLoad>): Promise<LoadResult> {
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (code !== 0) throw new Error(`The load failed: ${err.trim()}`)
  return JSON.parse(out) as LoadResult
}

/** The lane of a direct call that ends well. */
export function callLane(path: string, input: Json, contains: readonly string[]): Lane {
  return {
    method: 'POST',
    path,
    body: JSON.stringify({ input }),
    status: 200,
    contains: ['"finished":true', '"status":"ok"', ...contains],
  }
}

/** The lane of a message whose turn ends. */
export const messageLane = (session: string): Lane => ({
  method: 'POST',
  path: `${session}/messages`,
  body: JSON.stringify({ input: { message: 'hello' } }),
  status: 200,
  contains: ['"status":"idle"'],
})

/** The same component with other bytes: a custom section that nobody reads goes to its end. */
export function unlike(component: Uint8Array): Buffer {
  const content = Buffer.concat([Buffer.of(5), Buffer.from('bench'), randomBytes(16)])
  return Buffer.concat([component, Buffer.of(0, content.length), content])
}
