import type { ToolDefinition } from '../../contract/message.ts'
import type { Json } from '../../kernel/json.ts'
import { isPlacedAgentloop, type PlacedAgentloop } from '../declare/agentloop.ts'
import { isComponent, type Component } from '../declare/component.ts'
import { isPlacedTool, type PlacedTool } from '../declare/tool.ts'
import type { HostCredentials } from '../host/host-connection.ts'
import { Host } from '../host/host.ts'
import { membersOf } from '../strict-members.ts'
import { Admissions } from './admissions.ts'
import { prepareAll, type Preparable } from './preparation.ts'
import type { LiveEvent } from './session-event.ts'
import type { SessionOptions } from './session-options.ts'
import { liveEvents } from './session-reader.ts'
import { Sessions } from './sessions.ts'
import { Transport, type Fetch } from './transport.ts'

/** What a client is made of (contract 9.1); times are milliseconds. */
export type BrainOptions = {
  /** Of the server: http or https, without credentials, query and fragment. */
  readonly baseUrl: string
  /** Of the tenant; none where the server wants none. */
  readonly token?: string
  /** Milliseconds that a request may take; no limit when absent. */
  readonly timeoutMs?: number
  /** Milliseconds without work after which the connection of application tools rests; 0, the default, is never. */
  readonly connectionIdleTimeoutMs?: number
  /** In place of the platform's `fetch`. */
  readonly fetch?: Fetch
  /** What `credentials()` of an earlier client answered, to take its sessions up again. */
  readonly credentials?: HostCredentials
}

/** A provider of models, with what the server knows of its models. */
export type ModelProviderInfo = {
  readonly id: string
  readonly dialect: string
  readonly media_inputs: readonly string[]
  readonly models: readonly { readonly id: string; readonly [member: string]: Json }[]
}

/** Providers of models (contract 1.1); `snapshot_digest` changes with what is listed. */
export type ModelList = { readonly snapshot_digest: string; readonly providers: readonly ModelProviderInfo[] }

/** Arguments of `brain.request`, in their order (contract 9.1). */
export type RequestArguments = [
  method: string,
  path: string,
  body?: unknown,
  key?: string,
  contentType?: string,
  signal?: AbortSignal,
  headers?: Readonly<Record<string, string>>,
]

const WHAT = 'Cannot make a client'
const LONGEST_IDLE_MS = 2 ** 31 - 1
const MEMBERS = ['baseUrl', 'token', 'timeoutMs', 'connectionIdleTimeoutMs', 'fetch', 'credentials']

/**
 * A client of one server. Functions of the application are called through one connection, which all its sessions share
 * and which stays open until {@link close}: create sessions in `try`, and close the client in `finally`.
 */
export class Brain {
  readonly sessions: Sessions
  readonly #options: BrainOptions
  readonly #closed = new AbortController()
  readonly #transport: Transport
  readonly #admissions: Admissions
  readonly #host: Host

  /** @throws TypeError for an option that cannot be used or is not known */
  constructor(options: BrainOptions) {
    const baseUrl = checkedUrl(options)
    this.#options = options
    const { token, timeoutMs, connectionIdleTimeoutMs: idleTimeoutMs = 0, credentials } = options
    const closed = this.#closed.signal
    const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
    this.#transport = new Transport({ baseUrl, token, timeoutMs, fetch, closed })
    this.#admissions = new Admissions(this.#transport)
    this.#host = new Host({ transport: this.#transport, credentials, idleTimeoutMs, closed })
    this.sessions = new Sessions(this.#transport, this.#admissions, this.#host)
  }

  /**
   * Ends what this client has under way, with an AbortError, its connection, and the signals of the functions that run.
   * Sessions on the server go on. Does not wait for functions, and takes nothing from them any more.
   */
  close(): Promise<void> {
    this.#closed.abort(new DOMException('The client is closed', 'AbortError'))
    return closedAlready
  }

  /** The same server with another token: a client of its own, with its own connection and its own end. */
  withToken(token: string): Brain {
    const { credentials: _, ...options } = this.#options
    return new Brain({ ...options, token })
  }

  /** Providers of models, or one of them. @throws BrainError `invalid_request` for an unknown one */
  async models(provider?: string): Promise<ModelList> {
    const query = provider === undefined ? '' : `?provider=${encodeURIComponent(provider)}`
    return (await this.#transport.json('GET', `/v1/models${query}`)) as unknown as ModelList
  }

  /** Distributed tools of the operator's that sessions may have. @returns their names, descriptions and schemas */
  async catalog(): Promise<readonly ToolDefinition[]> {
    const { tools } = (await this.#transport.json('GET', '/v1/catalog')) as unknown as {
      tools: readonly ToolDefinition[]
    }
    return tools
  }

  /** Admits a component as a tool, once for each object. @returns its id @throws BrainError `tool_rejected` and others */
  async admitTool(component: Component): Promise<string> {
    return this.#admissions.admit('tool', checkedComponent(component))
  }

  /** Admits a component as an agentloop, once for each object. @returns its id @throws BrainError `agentloop_rejected` */
  async admitAgentloop(component: Component): Promise<string> {
    return this.#admissions.admit('agentloop', checkedComponent(component))
  }

  /**
   * Admits the component of a placed agentloop, once for each object.
   *
   * @returns its id
   * @throws TypeError for one that is no component @throws BrainError `agentloop_rejected` and others
   */
  async admit(placed: PlacedAgentloop): Promise<string> {
    if (!isPlacedAgentloop(placed) || placed.executable.type !== 'component')
      throw new TypeError('Cannot admit: it must be a placed agentloop that is a component')
    return this.#admissions.admit('agentloop', placed.executable.component)
  }

  /**
   * Has the server load what a placed tool or agentloop needs, so that its first call begins at once. A component is looked
   * up before it is uploaded. Nothing is remembered of a failure.
   *
   * @returns the same with the id of its component in place of the bytes; what is no component as it is
   * @throws BrainError `preparation_failed`, `tool_rejected`, `agentloop_rejected` and others
   */
  async prepare<Placed extends Preparable>(placed: Placed): Promise<Placed> {
    const [prepared] = await prepareAll([placed], this.#transport, this.#admissions)
    return prepared as Placed
  }

  /**
   * As {@link prepare}, of everything that a session is going to have, in one request.
   *
   * @returns `tools` and `agentloop` for `sessions.create`
   */
  async prepareEnvironment({ tools = [], agentloop }: Pick<SessionOptions, 'tools' | 'agentloop'>): Promise<{
    readonly tools: readonly PlacedTool[]
    readonly agentloop?: PlacedAgentloop
  }> {
    const all = await prepareAll([...(agentloop ? [agentloop] : []), ...tools], this.#transport, this.#admissions)
    return { tools: all.filter(isPlacedTool), ...(agentloop && { agentloop: all[0] as PlacedAgentloop }) }
  }

  /**
   * Registers the host of this client's functions and connects it, unless that was done: `sessions.create` does it of
   * itself where it is needed.
   *
   * @returns as {@link credentials}
   */
  register(): Promise<HostCredentials> {
    return this.#host.register()
  }

  /**
   * What takes the application tools of this client up again after a restart: `new Brain({ credentials })`, then
   * `sessions.get(id, { tools })`. Keep them secret. Registers a host, unless that was done.
   */
  credentials(): Promise<HostCredentials> {
    return this.#host.credentials()
  }

  /**
   * Any request: `(method, path, body?, key?, contentType?, signal?, headers?)`. Bytes go out as they are, other bodies as
   * JSON. `key` is the Idempotency-Key.
   *
   * @returns the parsed answer; undefined for 204
   * @throws BrainError for any other than a 2xx answer
   */
  request(...[method, path, body, key, contentType, signal, headers]: RequestArguments): Promise<Json | undefined> {
    return this.#transport.json(method, path, { body, key, contentType, signal, headers })
  }

  /** As the `stream` of a session's handle. */
  stream(sessionId: string, after = 0, signal?: AbortSignal): AsyncGenerator<LiveEvent, void, undefined> {
    return this.streamPath(`/v1/sessions/${encodeURIComponent(sessionId)}/events?after=${after}`, signal)
  }

  /** Any event stream, such as `/v1/sessions/ID/tool-events`. @param onOpen is called when it is there */
  streamPath(path: string, signal?: AbortSignal, onOpen?: () => void): AsyncGenerator<LiveEvent, void, undefined> {
    return liveEvents(this.#transport, path, signal, onOpen)
  }
}

const closedAlready = Promise.resolve()

function checkedUrl(options: BrainOptions): string {
  membersOf(options, MEMBERS, WHAT)
  const { baseUrl, token, timeoutMs, connectionIdleTimeoutMs: idle = 0, fetch, credentials } = options
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) throw new TypeError(`${WHAT}: baseUrl must be a URL`)
  const { protocol, username, password, search, hash } = new URL(baseUrl)
  if (!['http:', 'https:'].includes(protocol) || [username, password, search, hash].some((part) => part !== ''))
    throw new TypeError(`${WHAT}: baseUrl must be http or https, without credentials, query and fragment`)
  if (token !== undefined && (typeof token !== 'string' || token === ''))
    throw new TypeError(`${WHAT}: token must not be empty`)
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw new TypeError(`${WHAT}: timeoutMs must be positive`)
  if (!(idle >= 0 && idle <= LONGEST_IDLE_MS))
    throw new TypeError(`${WHAT}: connectionIdleTimeoutMs must be 0 to ${LONGEST_IDLE_MS}`)
  if (fetch !== undefined && typeof fetch !== 'function') throw new TypeError(`${WHAT}: fetch must be a function`)
  if (credentials !== undefined) checkCredentials(credentials)
  return baseUrl.replace(/\/+$/, '')
}

function checkCredentials(credentials: HostCredentials): void {
  const { hostId, token } = membersOf(credentials, ['hostId', 'token'], `${WHAT}: credentials`)
  if (typeof hostId !== 'string' || hostId === '' || typeof token !== 'string' || token === '')
    throw new TypeError(`${WHAT}: credentials must be what credentials() answered`)
}

function checkedComponent(component: Component): Component {
  if (!isComponent(component)) throw new TypeError('Cannot admit: it must be made by component()')
  return component
}
