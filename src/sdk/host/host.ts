import { errorOutcome } from '../../contract/outcome.ts'
import type { HostCommand } from '../../contract/host-protocol.ts'
import type { HostTool } from '../client/session-plan.ts'
import { Execution, type Interruption } from './execution.ts'
import { hostServices } from './host-services.ts'
import { HostConnection, type HostConnectionOptions, type HostCredentials } from './host-connection.ts'

type HostOptions = Omit<HostConnectionOptions, 'onCommand' | 'onLost' | 'isBusy'>

/** The application's side of its tools: which functions which session may call, and the calls that are open. */
export class Host {
  readonly #connection: HostConnection
  readonly #sessions = new Map<string, ReadonlyMap<string, HostTool>>()
  readonly #executions = new Map<string, Execution>()
  /** Sessions whose ids are not known yet: their calls wait. */
  readonly #arriving = new Set<Promise<unknown>>()
  readonly #waiting = new Set<string>()

  constructor(options: HostOptions) {
    this.#connection = new HostConnection({
      ...options,
      onCommand: (command) => void this.#take(command),
      onLost: () => this.#interruptAll('unknown'),
      isBusy: () => this.#executions.size > 0,
    })
    options.closed.addEventListener('abort', () => this.#interruptAll('closed'), { once: true })
  }

  credentials(): Promise<HostCredentials> {
    return this.#connection.credentials()
  }

  /** Registers, unless that was done before, and connects. */
  register(): Promise<HostCredentials> {
    return this.#connection.during(() => this.credentials())
  }

  /**
   * Makes or takes up a session whose functions may be called from then on.
   *
   * @param work gives the id and what it may call
   */
  async attach(work: (hostId: string) => Promise<{ id: string; tools: readonly HostTool[] }>): Promise<void> {
    const arrival = this.#connection.during(async () => {
      const { hostId } = await this.credentials()
      const { id, tools } = await work(hostId)
      this.#sessions.set(id, new Map(tools.map((tool) => [keyOf(tool.environment, tool.tool.name), tool])))
    })
    this.#arriving.add(arrival)
    try {
      await arrival
    } finally {
      this.#arriving.delete(arrival)
    }
  }

  /** The session is over: nothing of it is called any more. */
  release(sessionId: string): void {
    this.#sessions.delete(sessionId)
    for (const [key, execution] of this.#executions)
      if (key.startsWith(`${sessionId}:`)) execution.interrupt('cancelled')
  }

  /** Does what may lead to calls of a session's functions, when they can come. */
  async ready<Result>(sessionId: string, work: () => Promise<Result>): Promise<Result> {
    return this.#sessions.has(sessionId) ? this.#connection.during(work) : work()
  }

  #interruptAll(cause: Interruption): void {
    this.#waiting.clear()
    for (const execution of this.#executions.values()) execution.interrupt(cause)
  }

  async #take(command: HostCommand): Promise<void> {
    const { session_id: session, operation } = command
    if (operation.type === 'cancel_tool') {
      const target = `${session}:${operation.target_sequence}`
      this.#waiting.delete(target)
      this.#executions.get(target)?.interrupt('cancelled')
      return
    }
    const key = `${session}:${command.sequence}`
    if (!this.#sessions.has(session) && !(await this.#hasArrived(key))) return
    const tools = this.#sessions.get(session)
    if (tools === undefined) return this.#refuse(command, 'unknown_session', 'The session is not one of this client')
    const tool = tools.get(keyOf(command.template ?? command.environment, operation.name))
    if (tool === undefined) return this.#refuse(command, 'unknown_tool', `There is no tool "${operation.name}" here`)
    const services = hostServices(command, (route, body, signal) => this.#connection.post(route, body, signal))
    const execution = new Execution({ ...command, input: operation.input }, tool.executable, services, () => {
      this.#executions.delete(key)
      this.#connection.rest()
    })
    this.#executions.set(key, execution)
    await execution.run()
  }

  /** Waits for sessions that are being made. @returns whether the call is still wanted then */
  async #hasArrived(key: string): Promise<boolean> {
    this.#waiting.add(key)
    await Promise.allSettled(this.#arriving)
    return this.#waiting.delete(key)
  }

  #refuse({ session_id, sequence }: HostCommand, code: string, message: string): void {
    const update = { type: 'finish', outcome: errorOutcome(code, message) }
    this.#connection.post('results', { session_id, sequence, update }).catch(() => {})
  }
}

const keyOf = (environment: string, tool: string): string => `${environment} ${tool}`
