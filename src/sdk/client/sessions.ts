import type { Json } from '../../kernel/json.ts'
import type { Executable } from '../declare/implementation.ts'
import type { PlacedTool } from '../declare/tool.ts'
import type { Host } from '../host/host.ts'
import { membersOf } from '../strict-members.ts'
import type { Admissions } from './admissions.ts'
import { componentDescriptor } from './component-descriptor.ts'
import { reattachedTools } from './reattach.ts'
import { sessionState, type SessionState } from './session-event.ts'
import { SessionHandle, type KeyOptions } from './session-handle.ts'
import type { SessionOptions } from './session-options.ts'
import { SessionPlan, type CreateSessionRequest } from './session-plan.ts'
import type { Transport } from './transport.ts'

/** The sessions of a client: `brain.sessions`. */
export class Sessions {
  readonly #transport: Transport
  readonly #admissions: Admissions
  readonly #host: Host

  constructor(transport: Transport, admissions: Admissions, host: Host) {
    this.#transport = transport
    this.#admissions = admissions
    this.#host = host
    Object.freeze(this)
  }

  /**
   * Creates a session: admits its components, connects the host of its functions, and asks the server.
   *
   * @param keys `idempotencyKey`: with the same one the same session comes back, from the same request
   * @throws TypeError before any request, for options that contradict each other or are not known
   * @throws BrainError as the server refuses it
   */
  async create(options: SessionOptions, { idempotencyKey }: KeyOptions = {}): Promise<SessionHandle> {
    const plan = new SessionPlan(options)
    const key = idempotencyKey ?? crypto.randomUUID()
    const create = async (hostId?: string): Promise<SessionState> => {
      const body = await plan.request((executable, role) => this.#resolve(executable, role), hostId)
      return sessionState(await this.#transport.json('POST', '/v1/sessions', { body, key }))
    }
    if (!plan.needsHost) return this.#handle(await create())
    let state: SessionState | undefined
    await this.#host.attach(async (hostId) => {
      state = await create(hostId)
      return { id: state.id, tools: plan.hostTools }
    })
    return this.#handle(state as SessionState)
  }

  /**
   * Admits the components and composes the request that `create` would send; creates nothing.
   *
   * @param hostId the host of its functions, where it has some
   * @throws TypeError as `create`, and without the host that is needed
   */
  async prepare(options: SessionOptions, hostId?: string): Promise<CreateSessionRequest> {
    const plan = new SessionPlan(options)
    if (plan.needsHost && hostId === undefined)
      throw new TypeError('Cannot prepare a session with application tools: give the hostId of credentials()')
    return plan.request((executable, role) => this.#resolve(executable, role), hostId)
  }

  /**
   * Opens a session that exists. With `tools` its functions are called here again, from the next call on: what was open
   * before is over. The client needs the credentials that the session was created under.
   *
   * @param options `tools`: exactly the functions of the session, with the same schemas
   * @throws TypeError when they are others
   * @throws BrainError `not_found`; `unauthorized` when the credentials are not known any more
   */
  async get(id: string, options: { readonly tools?: readonly PlacedTool[] } = {}): Promise<SessionHandle> {
    const { tools } = options
    membersOf(options, ['tools'], 'Cannot open a session')
    const path = `/v1/sessions/${encodeURIComponent(id)}`
    const handle = this.#handle(sessionState(await this.#transport.json('GET', path)))
    if (tools !== undefined)
      await this.#host.attach(async (hostId) => ({
        id: handle.id,
        tools: await reattachedTools(tools, handle.events(), hostId),
      }))
    return handle
  }

  /** All sessions, by id. */
  async list(): Promise<SessionState[]> {
    const answer = (await this.#transport.json('GET', '/v1/sessions')) as unknown as { sessions: unknown[] }
    return answer.sessions.map(sessionState)
  }

  #handle(state: SessionState): SessionHandle {
    return new SessionHandle(this.#transport, this.#host, state)
  }

  async #resolve(executable: Executable, role: 'tool' | 'agentloop'): Promise<Json> {
    if (executable.type === 'descriptor') return executable.descriptor
    const id = await this.#admissions.admit(role, executable.component)
    return componentDescriptor(role, id, executable.configuration)
  }
}
