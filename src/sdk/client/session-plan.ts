import type { Json, JsonObject } from '../../kernel/json.ts'
import type { EnvironmentMethods, EnvironmentTemplate } from '../../contract/environment.ts'
import type { Message } from '../../contract/message.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { isPlacedAgentloop } from '../declare/agentloop.ts'
import {
  defaultHost,
  isEnvironment,
  isSameEnvironment,
  type Environment,
  type HttpEnv,
} from '../declare/environments.ts'
import type { Executable } from '../declare/implementation.ts'
import { isPlacedTool, type HostExecutable, type PlacedTool } from '../declare/tool.ts'
import { canonicalText } from '../json-value.ts'
import { isPlainObject, membersOf } from '../strict-members.ts'
import { SESSION_OPTIONS, type Lifecycle, type SessionOptions } from './session-options.ts'

/** The body of `POST /v1/sessions`, as the client composes it (contract 2.1, 2.3). */
export type CreateSessionRequest = {
  readonly agentloop?: {
    readonly implementation: Json
    readonly configuration: Json
    readonly environment: string
    readonly environments?: readonly EnvironmentGrant[]
  }
  readonly model: { provider: string; name: string; api_key: string; script?: readonly Json[] }
  readonly system: string
  readonly tools: readonly {
    readonly name: string
    readonly description: string
    readonly input_schema: JsonObject
    readonly output_schema?: JsonObject
    readonly placements: Readonly<Record<string, { readonly implementation: Json }>>
    readonly environments?: readonly EnvironmentGrant[]
  }[]
  readonly environments: readonly {
    readonly name: string
    readonly driver: string
    readonly host_id?: string
    readonly url?: string
    readonly credential?: string
    readonly configuration?: Json
    readonly methods?: EnvironmentMethods
    readonly template?: EnvironmentTemplate
    readonly lifecycle: Lifecycle
    readonly environments?: readonly EnvironmentGrant[]
  }[]
  readonly config?: { readonly tools: readonly string[] }
  readonly transcript?: readonly Message[]
  readonly response_format?: JsonObject
  readonly idle_ttl_ms?: number
  readonly labels?: Readonly<Record<string, string>>
}

/** A function of the application in its place. */
export type HostTool = { readonly tool: PlacedTool; readonly environment: string; readonly executable: HostExecutable }

/** What a plan asks for where only the server has the answer. */
export type Resolve = (executable: Executable, role: 'tool' | 'agentloop') => Promise<Json>

const WHAT = 'Cannot create a session'
const DEFAULT_HOST = 'brain-sdk-host'

/** Everything about a new session that can be checked before any request. */
export class SessionPlan {
  readonly #options: SessionOptions
  readonly #environments = new Map<string, Environment>()
  readonly #tools = new Map<string, Map<string, PlacedTool>>()
  readonly hostTools: HostTool[] = []

  /** @throws TypeError for unknown members, two environments of one name, two tools of one name in one environment */
  constructor(options: SessionOptions) {
    membersOf(options, SESSION_OPTIONS, WHAT)
    if (options.config !== undefined) membersOf(options.config, ['tools'], `${WHAT}: config`)
    membersOf(options.model, ['provider', 'name', 'apiKey', 'script'], `${WHAT}: model`)
    this.#options = options
    const { agentloop, tools = [], environments = [] } = options
    if (agentloop !== undefined && !isPlacedAgentloop(agentloop))
      throw new TypeError(`${WHAT}: agentloop must be placed: call what agentloop() gives`)
    for (const tool of tools) checkPlaced(tool)
    for (const environment of environments)
      if (!isEnvironment(environment))
        throw new TypeError(`${WHAT}: environments must be made by brainEnv(), hostEnv() or what environment() gives`)
    const named = [...(agentloop ? [agentloop.env] : []), ...environments, ...tools.flatMap(({ env }) => env ?? [])]
    const fallback = defaultHost(freeName(named))
    if (agentloop !== undefined) this.#addEnvironment(agentloop.env)
    for (const environment of environments) this.#addEnvironment(environment)
    for (const tool of tools) this.#addTool(tool, tool.env ?? fallback)
    this.#checkLifecycle()
  }

  get needsHost(): boolean {
    return [...this.#environments.values()].some(({ driver }) => driver === 'host')
  }

  #addEnvironment(environment: Environment): void {
    const before = this.#environments.get(environment.name)
    if (before !== undefined && !isSameEnvironment(before, environment))
      throw new TypeError(`${WHAT}: there are two different environments named "${environment.name}"`)
    this.#environments.set(environment.name, before ?? environment)
  }

  #addTool(tool: PlacedTool, environment: Environment): void {
    this.#addEnvironment(environment)
    const placements = this.#tools.get(tool.name) ?? new Map<string, PlacedTool>()
    if (placements.has(environment.name))
      throw new TypeError(`${WHAT}: there are two tools named "${tool.name}" in the environment "${environment.name}"`)
    const [other] = placements.values()
    if (other !== undefined && termsOf(other) !== termsOf(tool))
      throw new TypeError(`${WHAT}: there are two different tools named "${tool.name}"`)
    this.#tools.set(tool.name, placements.set(environment.name, tool))
    const { executable } = tool
    if (executable.type === 'function') this.hostTools.push({ tool, environment: environment.name, executable })
  }

  #checkLifecycle(): void {
    const { environment } = this.#options
    if (environment === undefined) return
    const { lifecycle } = membersOf(environment, ['lifecycle'], `${WHAT}: environment`)
    if (lifecycle === undefined) return
    const given = membersOf(lifecycle, ['default', 'bindings'], `${WHAT}: environment.lifecycle`)
    const bindings = given['bindings'] ?? {}
    if (!isPlainObject(bindings)) throw new TypeError(`${WHAT}: environment.lifecycle.bindings must be an object`)
    const stranger = Object.keys(bindings).find((name) => !this.#environments.has(name))
    if (stranger !== undefined)
      throw new TypeError(`${WHAT}: environment.lifecycle names "${stranger}", which is not there`)
    for (const value of [given['default'], ...Object.values(bindings)])
      if (value !== undefined && value !== 'automatic' && value !== 'manual')
        throw new TypeError(`${WHAT}: environment.lifecycle must be "automatic" or "manual"`)
  }

  /** @throws what `resolve` throws */
  async request(resolve: Resolve, hostId: string | undefined): Promise<CreateSessionRequest> {
    const { model, agentloop, system = '', config, transcript, responseFormat, idleTtlMs, labels } = this.#options
    const { provider, name, apiKey, script } = model
    const loop = agentloop && {
      implementation: await resolve(agentloop.executable, 'agentloop'),
      configuration: agentloop.executable.configuration,
      environment: agentloop.env.name,
      ...(agentloop.environments && { environments: agentloop.environments }),
    }
    return {
      ...(loop && { agentloop: loop }),
      model: { provider, name, api_key: apiKey, ...(script && { script }) },
      system,
      tools: await this.#requestedTools(resolve),
      environments: [...this.#environments.values()].map((environment) => this.#requested(environment, hostId)),
      ...(config && { config: { tools: config.tools } }),
      ...(transcript && { transcript }),
      ...(responseFormat && { response_format: responseFormat }),
      ...(idleTtlMs !== undefined && { idle_ttl_ms: idleTtlMs }),
      ...(labels && { labels }),
    }
  }

  async #requestedTools(resolve: Resolve): Promise<CreateSessionRequest['tools']> {
    const tools: CreateSessionRequest['tools'][number][] = []
    for (const [name, placed] of this.#tools) {
      const placements: Record<string, { implementation: Json }> = {}
      for (const [environment, { executable }] of placed)
        placements[environment] = {
          implementation:
            executable.type === 'function' ? { type: 'host_function', name } : await resolve(executable, 'tool'),
        }
      const [first] = placed.values()
      if (first === undefined) continue
      const { definition, environments } = first
      tools.push({ ...definition, placements, ...(environments && { environments }) })
    }
    return tools
  }

  #requested(environment: Environment, hostId: string | undefined): CreateSessionRequest['environments'][number] {
    const { name, driver, configuration, environments } = environment
    const { bindings = {}, default: usual } = this.#options.environment?.lifecycle ?? {}
    return {
      name,
      driver,
      ...(driver === 'host' && hostId !== undefined && { host_id: hostId }),
      ...(environment.driver === 'http' && remoteOf(environment)),
      ...(configuration !== undefined && { configuration: configuration as Json }),
      lifecycle: (Object.hasOwn(bindings, name) ? bindings[name] : undefined) ?? usual ?? 'automatic',
      ...(environments && { environments }),
    }
  }
}

/** The credential is no member that is copied with the others. */
const remoteOf = ({ url, credential, methods, template }: HttpEnv) => ({
  url,
  ...(credential !== undefined && { credential }),
  ...(methods && { methods }),
  ...(template && { template }),
})

/** What two placements of one tool must agree in. */
const termsOf = ({ definition, environments }: PlacedTool): string =>
  canonicalText([definition as Json, (environments ?? null) as Json])

function checkPlaced(tool: unknown): void {
  if (isPlacedTool(tool)) return
  const hint = typeof tool === 'function' ? ': call the factory, as in lookup()' : ''
  throw new TypeError(`${WHAT}: tools must be placed${hint}`)
}

/** The name of the host of tools that name none: it must be nobody else's. */
function freeName(environments: readonly Environment[]): string {
  const taken = new Set(environments.map(({ name }) => name))
  for (let i = 0; ; i++) {
    const name = i === 0 ? DEFAULT_HOST : `${DEFAULT_HOST}-${i}`
    if (!taken.has(name)) return name
  }
}
