import type { TenantId } from '../kernel/ids.ts'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { setLongTimeout, type LongTimeout } from '../kernel/long-timeout.ts'
import type { Limits } from '../contract/limits.ts'
import type { SessionConfiguration, SessionSummary } from '../contract/session-request.ts'
import { dataOf, type JournalRecord, type NewRecord } from '../journal/record.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionState } from '../journal/session-state.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { EnvironmentWork } from '../dispatch/environments/environment-work.ts'
import type { Execution } from '../dispatch/execution.ts'
import type { ToolModel } from '../dispatch/tool-model.ts'
import { parseModelRequest } from '../turn/model-request.ts'
import { ModelCaller, type ModelAccess, tellGuest } from '../turn/model-caller.ts'
import type { Agentloop, Agentloops } from '../turn/agentloop.ts'
import type { Logger } from '../kernel/logger.ts'
import type { TurnSession } from '../turn/turn-session.ts'
import { TurnRunner } from '../turn/turn-runner.ts'

export type LiveSessionParts = {
  readonly tenant: TenantId
  readonly log: SessionLog
  readonly state: SessionState
  readonly dispatcher: Dispatcher
  readonly loops: Agentloops
  readonly limits: Limits
  readonly logger: Logger
  readonly modelAccess: (configuration: SessionConfiguration) => Promise<ModelAccess>
  /** How long an idle session stays in memory when its request does not say; undefined = it leaves at once. */
  readonly defaultIdleTtlMs: number | undefined
  /** Told when {@link LiveSession.isActive} has changed. */
  readonly onActivity: (isActive: boolean) => void
}

/** After this long a session that could not be suspended is tried again. */
const SUSPEND_AGAIN_MS = 1000

/** A session of this process: its state, kept by the records as they are committed, and its one turn runner. */
export class LiveSession implements TurnSession {
  readonly tenant: TenantId
  readonly log: SessionLog
  readonly state: SessionState
  readonly dispatcher: Dispatcher
  readonly #loops: Agentloops
  readonly limits: Limits
  readonly logger: Logger
  readonly openCalls = new Map<number, Execution>()
  readonly starting = new Set<Promise<unknown>>()
  interruptions = 0
  interrupting: Promise<unknown> | undefined
  closing: 'ending' | 'draining' | undefined
  /** Its workspaces are being deleted: nothing may make them anew. */
  isBeingDeleted = false
  /** The one end of this session, while it goes on. */
  ending: Promise<SessionSummary> | undefined
  /** The creation has failed, and what it had set up is being given up. */
  abandoning: Promise<void> | undefined
  /** The one deletion of this session, while it goes on. */
  deletion: Promise<void> | undefined
  readonly environmentWork: EnvironmentWork
  readonly models: ModelCaller
  readonly model: ToolModel
  readonly turns: TurnRunner
  readonly #defaultIdleTtlMs: number | undefined
  #resident = false
  #suspension: LongTimeout | undefined
  /** When the session was last asked for, on the monotonic clock. */
  usedAt = performance.now()
  /** How many hold the session right now; kept by {@link Sessions}. */
  users = 0

  constructor(parts: LiveSessionParts) {
    const { tenant, log, state, dispatcher, loops, limits, logger } = parts
    this.tenant = tenant
    this.log = log
    this.state = state
    this.dispatcher = dispatcher
    this.#loops = loops
    this.limits = limits
    this.logger = logger
    this.#defaultIdleTtlMs = parts.defaultIdleTtlMs
    this.environmentWork = new EnvironmentWork(limits)
    log.follow({ records: (records) => records.forEach((record) => this.#apply(record)), live: () => undefined })
    this.models = new ModelCaller(log, () => parts.modelAccess(this.configuration), limits, state.modelCalls)
    this.model = {
      call: async (requestText, { sequence, budget, signal }) => {
        const request = parseModelRequest(requestText)
        const transcript = { throughSequence: 0, keep: 0 }
        const answer = this.models.call(request, { budget, signal, toolSequence: sequence, transcript })
        return JSON.stringify(await answer.catch(tellGuest))
      },
    }
    let wasActive = false
    const onChange = (): void => {
      const { isActive } = this
      if (isActive === wasActive) return
      wasActive = isActive
      parts.onActivity(isActive)
    }
    const onTurnOver = (turn: number): void => dispatcher.environments.operations.turnEnded(this, turn)
    this.turns = new TurnRunner(this, {
      opening: () => this.#resumed(),
      onRest: () => this.rest(),
      onChange,
      onTurnOver,
    })
  }

  get configuration(): SessionConfiguration {
    const { configuration } = this.state
    if (configuration === undefined)
      throw new BrainError('internal', `Cannot use session "${this.log.session}": its journal has no configuration`)
    return configuration
  }

  get loop(): Agentloop {
    return this.#loops.of(this)
  }

  get summary(): SessionSummary {
    return { session_id: this.log.session, status: this.state.status, last_sequence: this.state.lastSequence }
  }

  /** Whether nothing of the session needs it to be in memory. */
  get isQuiet(): boolean {
    const isIdle =
      this.openCalls.size === 0 &&
      !this.environmentWork.isBusy &&
      this.starting.size === 0 &&
      !this.turns.isBusy &&
      !this.#resident
    return isIdle && this.state.isAtRest
  }

  /** Whether a turn runs, a tool is open, or a wake is pending (contract A20). */
  get isActive(): boolean {
    return !this.state.isAtRest || this.turns.isBusy
  }

  #apply(record: JournalRecord): void {
    this.state.apply(record)
    // Only what is on record has opened the session: a message whose key was taken, or that the disk refused, has not.
    if (record.event_type === 'session_resumed') this.#resident = true
    if (record.event_type === 'turn_started') this.#suspension?.clear()
    const turn = dataOf(record, 'turn_started')
    if (turn !== undefined && 'input' in turn) this.environmentWork.renewReports()
  }

  /** Records for a session that is opened for work while it is out of memory (contract 3.7). */
  #resumed(): readonly NewRecord[] {
    return this.#resident ? [] : [{ kind: 'session_resumed', data: {} }]
  }

  /** Called when work has ended: the session leaves memory, at once or when its time to live has passed. */
  rest(): void {
    this.#suspension?.clear()
    const { status } = this.state
    const ttlMs = this.configuration.idle_ttl_ms ?? this.#defaultIdleTtlMs
    this.#resident = ttlMs !== undefined && status !== 'ended' && status !== 'failed'
    if (this.#resident && ttlMs !== undefined && ttlMs > 0) this.#suspendAfter(ttlMs)
  }

  #suspendAfter(ms: number): void {
    this.#suspension = setLongTimeout(() => void this.#suspend(), ms)
  }

  /** Open calls go on: what they bring later opens the session again (contract A21). */
  async #suspend(): Promise<void> {
    if (!this.#resident || this.state.status !== 'idle') return
    if (this.turns.isBusy) return this.#suspendAfter(SUSPEND_AGAIN_MS) // nothing may come of the turn
    this.#resident = false
    this.users++
    try {
      await this.log.commit({ records: [{ kind: 'session_suspended', data: {} }] })
    } catch (error) {
      this.logger.error({ session: this.log.session, error: messageOf(error) }, 'cannot suspend the session')
      // A session that was resumed meanwhile must not be told to be suspended; one that was not tries again.
      if (this.#resident || this.state.status !== 'idle') return
      this.#resident = true
      this.#suspendAfter(SUSPEND_AGAIN_MS)
    } finally {
      this.users--
    }
  }

  /** Ends every call that is open or on its way, and says so in its record. */
  async interruptCalls(reason: 'cancelled'): Promise<void> {
    this.interruptions++
    await Promise.allSettled(this.starting)
    await Promise.all([...this.openCalls.values()].map((call) => call.interrupt(reason)))
  }

  dispose(): void {
    this.#suspension?.clear()
  }
}
