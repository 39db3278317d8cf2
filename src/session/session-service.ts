import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { within } from '../kernel/within.ts'
import { newSessionId, type SessionId, type TenantId } from '../kernel/ids.ts'
import type { Message, UserInput } from '../contract/message.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import type { SessionConfiguration, SessionStatus, SessionSummary } from '../contract/session-request.ts'
import type { Journal, SessionQuery } from '../journal/journal.ts'
import type { NewRecord } from '../journal/record.ts'
import type { EnvironmentState } from '../journal/session-state.ts'
import type { CallLog, CallLogs } from '../dispatch/call-log.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { assertTakesMedia, type ModelProvider } from '../model/model-provider.ts'
import type { Components, WorkspaceFiles } from '../sandbox/sandbox.ts'
import type { CreateRequest } from './create-request.ts'
import type { SessionHosts } from './application-hosts.ts'
import type { Credentials } from './credentials.ts'
import type { LiveSession } from './live-session.ts'
import { KeyTaken, type Answer, type ClaimInHand, type Requests } from './requests.ts'
import type { Agentloops } from '../turn/agentloop.ts'
import { planSession } from './session-planner.ts'
import type { Sessions } from './sessions.ts'

export type SessionServiceParts = {
  readonly sessions: Sessions
  readonly journal: Journal
  readonly requests: Requests
  readonly dispatcher: Dispatcher
  readonly components: Pick<Components, 'get'>
  readonly loops: Agentloops
  readonly schemas: SchemaChecker
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly credentials: Credentials
  readonly hosts: Pick<SessionHosts, 'bind' | 'release'>
  readonly callLogs: CallLogs
  readonly files: Pick<WorkspaceFiles, 'destroy'>
  readonly workspaceName: (session: SessionId, environment: string) => string
}

const CANCELLED = { code: 'cancelled', message: 'The session was cancelled' } as const

/** How long answers may take to be written once the work of a server that stops has ended. */
const ANSWER_MS = 5000

/** Makes, lists, drives and ends sessions (contract 1.3, 2.4, 3.7). */
export class SessionService {
  readonly #parts: SessionServiceParts
  #isDraining = false

  constructor(parts: SessionServiceParts) {
    this.#parts = parts
  }

  /** @throws BrainError as {@link planSession}; `overloaded` while the server drains. */
  async create(tenant: TenantId, request: CreateRequest, inHand: ClaimInHand): Promise<SessionSummary> {
    this.assertTakesWork()
    const configuration = await planSession(this.#parts, tenant, request)
    const id = newSessionId()
    await this.#prepare(id, configuration, request.model.api_key)
    return this.#parts.sessions.make(tenant, id, async (session) => {
      await this.#open(session, configuration, inHand)
      await this.#setUp(session)
      const ended: NewRecord = { kind: 'session_creation_ended', data: { configuration } }
      await session.log.insist({ records: [ended], status: 'idle' })
      session.rest()
      return session.summary
    })
  }

  /** What must be there, and durable, before the first record of a session. */
  async #prepare(id: SessionId, { environments }: SessionConfiguration, apiKey: string): Promise<void> {
    const { credentials, hosts } = this.#parts
    await credentials.put(id, apiKey)
    try {
      await hosts.bind(
        id,
        environments.flatMap((one) => (one.driver === 'host' ? [one.host_id] : [])),
      )
    } catch (error) {
      await credentials.forget(id)
      throw error
    }
  }

  /** Writes the first records of a session; what was prepared for it is taken back when they cannot be. */
  async #open(session: LiveSession, configuration: SessionConfiguration, inHand: ClaimInHand): Promise<void> {
    const records: NewRecord[] = [{ kind: 'session_creation_started', data: configuration }]
    if (configuration.transcript !== undefined)
      records.push({ kind: 'transcript_delta', data: { keep: 0, append: configuration.transcript } })
    const create = { tenant: session.tenant, labels: configuration.labels ?? {} }
    try {
      const appended = await session.log.append({ records, create, status: 'creating', claim: inHand.claim })
      if (!appended.committed) throw new KeyTaken(appended.claimed)
    } catch (error) {
      this.#parts.sessions.forget(session.log.session)
      await this.#parts.hosts.release(session.log.session)
      await this.#parts.credentials.forget(session.log.session)
      throw error
    }
    inHand.made()
  }

  async #setUp(session: LiveSession): Promise<void> {
    for (const environment of session.configuration.environments) {
      const { name, configuration } = environment
      const request = { type: 'setup', configuration }
      const [started] = await session.log.insist({
        records: [{ kind: 'environment_setup_started', data: { environment: name, environment_sequence: 1, request } }],
      })
      const sequence = started?.sequence ?? 0
      try {
        await this.#parts.dispatcher.binding(environment).setUp(session.tenant, environment)
      } catch (error) {
        await this.#failCreation(session, sequence, error)
        throw error
      }
      const data = { sequence, result: { type: 'accepted' } }
      await session.log.insist({ records: [{ kind: 'environment_setup_ended', data }] })
    }
  }

  /** An environment could not be set up: those that were are torn down again (contract 2.4). */
  async #failCreation(session: LiveSession, sequence: number, error: unknown): Promise<void> {
    const { code, retryable } = error instanceof BrainError ? error : { code: 'internal', retryable: false }
    const failure = { message: clip(messageOf(error)), retryable, ambiguous: false }
    const records: NewRecord[] = [
      { kind: 'environment_setup_failed', data: { sequence, code, ...failure, domain: 'environment' } },
      { kind: 'session_creation_failed', data: { code: 'environment_preparation_failed', ...failure } },
    ]
    await session.log.insist({ records, status: 'failed' })
    await this.#closeEnvironments(session, 'teardown', (state) => state === 'ready')
    await this.#parts.hosts.release(session.log.session)
    session.rest()
  }

  get(tenant: TenantId, id: SessionId): Promise<SessionSummary> {
    return this.#parts.sessions.use(tenant, id, async (session) => session.summary)
  }

  async list(tenant: TenantId, query: Omit<SessionQuery, 'tenant'>): Promise<readonly SessionSummary[]> {
    const rows = await this.#parts.journal.sessions({ ...query, tenant })
    return rows.map((row) => ({ session_id: row.id, status: row.status, last_sequence: row.lastSequence }))
  }

  transcript(tenant: TenantId, id: SessionId): Promise<{ messages: readonly Message[]; through_sequence: number }> {
    return this.#parts.sessions.use(tenant, id, async ({ state }) => ({
      messages: state.transcript,
      through_sequence: state.lastSequence,
    }))
  }

  /** What a call left besides its records (contract A29); empty texts when there is nothing, or nothing any more. */
  async callLog(tenant: TenantId, id: SessionId, sequence: number): Promise<CallLog> {
    const log = await this.#parts.sessions.use(tenant, id, () => this.#parts.callLogs.read(id, sequence))
    return log ?? { stdout: '', stderr: '', telemetry: [], warnings: [] }
  }

  /** Sends a message and waits for its turn to end, well or badly. */
  async send(tenant: TenantId, id: SessionId, input: UserInput, claim: ClaimInHand): Promise<SessionSummary> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      const { done } = await this.#startTurn(session, input, claim)
      await done.finally(() => session.rest())
      return session.summary
    })
  }

  /** Sends a message. @returns the sequence of its `turn_started` as soon as that is durable. */
  async submit(tenant: TenantId, id: SessionId, input: UserInput, claim: ClaimInHand): Promise<number> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      if (session.turns.isRunning || session.state.status === 'running')
        throw new BrainError('overloaded', `Cannot send to session "${id}": it already has active work`)
      const { sequence, done } = await this.#startTurn(session, input, claim)
      done.then(
        () => session.rest(),
        () => session.rest(),
      )
      return sequence
    })
  }

  async #startTurn(
    session: LiveSession,
    input: UserInput,
    claim: ClaimInHand,
  ): Promise<{ sequence: number; done: Promise<void> }> {
    this.assertTakesWork()
    const provider = this.#parts.providers.get(session.configuration.model.provider)
    if (provider !== undefined) assertTakesMedia(provider, input.media ?? [])
    const started = await session.turns.start(input, claim.claim)
    if ('claimed' in started) throw new KeyTaken(started.claimed)
    claim.made()
    return started
  }

  /** Interrupts the turn and every open call; harmless when there is none. */
  cancel(tenant: TenantId, id: SessionId, claim: ClaimInHand): Promise<void> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      assertNotOver(session, 'cancel')
      const marking = this.#markInterrupted(session, claim)
      session.interrupting = Promise.allSettled([session.interrupting, marking])
      await marking
      claim.made()
      await this.#interrupt(session)
    })
  }

  /** A turn that ends meanwhile waits for this: once the session is marked it has failed (contract 3.4). */
  async #markInterrupted(session: LiveSession, { claim }: ClaimInHand): Promise<void> {
    const appended = await session.log.append({ records: [{ kind: 'session_interrupted', data: {} }], claim })
    if (!appended.committed) throw new KeyTaken(appended.claimed)
    session.turns.interrupt(CANCELLED)
  }

  async #interrupt(session: LiveSession): Promise<void> {
    session.turns.interrupt(CANCELLED)
    await session.interruptCalls('cancelled')
    await session.turns.stopped()
  }

  /** Ends a session; one that is over already answers its state. */
  end(tenant: TenantId, id: SessionId, claim: ClaimInHand): Promise<SessionSummary> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      await this.#parts.requests.claim(claim)
      const { status } = session.state
      if (status === 'ended' || status === 'failed') return session.summary
      session.ending ??= this.#end(session).finally(() => (session.ending = undefined))
      return session.ending
    })
  }

  async #end(session: LiveSession): Promise<SessionSummary> {
    session.closing = 'ending'
    await this.#interrupt(session)
    await session.turns.settled()
    await session.log.insist({ records: [{ kind: 'session_end_started', data: {} }], status: 'ending' })
    await this.#closeEnvironments(session, 'detach')
    await session.log.insist({ records: [{ kind: 'session_ended', data: {} }], status: 'ended' })
    await this.#parts.hosts.release(session.log.session)
    session.rest()
    return session.summary
  }

  /** Deletes a session that is over, with its workspaces, credentials and logs. Its end answers the claim. */
  remove(tenant: TenantId, id: SessionId, { claim, made }: ClaimInHand, answer: Answer): Promise<void> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      const { status } = session.state
      if (status !== 'ended' && status !== 'failed')
        throw new BrainError('invalid_request', `Cannot delete session "${id}": it is ${status}; end it first`)
      await this.#parts.requests.claim({ claim, made })
      session.deletion ??= this.#remove(session).finally(() => (session.deletion = undefined))
      await session.deletion
      const { scope, key } = claim
      await this.#parts.journal.remove(id, { scope, key, answer: { type: 'body', ...answer } })
      this.#parts.sessions.forget(id)
    })
  }

  async #remove(session: LiveSession): Promise<void> {
    const id = session.log.session
    session.isBeingDeleted = true
    await this.#closeEnvironments(session, 'teardown')
    for (const { name, driver } of session.configuration.environments)
      if (driver === 'brain') await this.#parts.files.destroy(this.#parts.workspaceName(id, name))
    await this.#parts.callLogs.forget(id)
    await this.#parts.credentials.forget(id)
  }

  async #closeEnvironments(
    session: LiveSession,
    operation: 'detach' | 'teardown',
    concerns = (state: EnvironmentState) => state !== 'deleted',
  ): Promise<void> {
    for (const { name } of session.configuration.environments.toReversed()) {
      const state = session.state.environments.get(name)
      if (state === undefined || !concerns(state)) continue
      const request = { type: operation }
      const [started] = await session.log.insist({
        records: [
          { kind: `environment_${operation}_started`, data: { environment: name, environment_sequence: 1, request } },
        ],
      })
      const data = { sequence: started?.sequence ?? 0, result: { type: 'accepted' } }
      await session.log.insist({ records: [{ kind: `environment_${operation}_ended`, data }] })
    }
  }

  /** @throws BrainError `overloaded` while the server drains. */
  assertTakesWork(): void {
    if (this.#isDraining) throw new BrainError('overloaded', 'Cannot take new work: the server is stopping')
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Takes no new work, and lets what runs come to its end for at most `graceMs`; then interrupts it. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true
    const sessions = this.#parts.sessions.all
    for (const session of sessions) session.closing ??= 'draining'
    const ends = sessions.flatMap((session) => [
      session.turns.settled(),
      ...[...session.openCalls.values()].map((call) => call.ended),
    ])
    if (!(await within(Promise.all(ends), graceMs))) await Promise.all(sessions.map((one) => this.#interrupt(one)))
    // Whoever waits for work that has ended is answered.
    await within(this.#parts.requests.settled(), ANSWER_MS)
  }
}

export function assertNotOver(session: LiveSession, what: string): void {
  const status: SessionStatus = session.state.status
  if (status === 'ended' || status === 'failed' || status === 'ending' || session.closing === 'ending')
    throw new BrainError('invalid_request', `Cannot ${what} session "${session.log.session}": it is ${status}`)
}
