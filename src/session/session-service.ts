import { BrainError } from '../kernel/errors.ts'
import { newSessionId, type SessionId, type TenantId } from '../kernel/ids.ts'
import type { Message, UserInput } from '../contract/message.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import type { SessionStatus, SessionSummary } from '../contract/session-request.ts'
import type { Journal, SessionQuery } from '../journal/journal.ts'
import type { NewRecord } from '../journal/record.ts'
import type { CallLog, CallLogs } from '../dispatch/call-log.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { assertTakesMedia, type ModelProvider } from '../model/model-provider.ts'
import type { Components, WorkspaceFiles } from '../sandbox/sandbox.ts'
import type { CreateRequest } from './create-request.ts'
import type { Credentials } from './credentials.ts'
import type { LiveSession } from './live-session.ts'
import { KeyTaken, type ClaimInHand, type Requests } from './requests.ts'
import { planSession } from './session-planner.ts'
import type { Sessions } from './sessions.ts'

export type SessionServiceParts = {
  readonly sessions: Sessions
  readonly journal: Journal
  readonly requests: Requests
  readonly dispatcher: Dispatcher
  readonly components: Pick<Components, 'get'>
  readonly schemas: SchemaChecker
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly credentials: Credentials
  readonly callLogs: CallLogs
  readonly files: Pick<WorkspaceFiles, 'destroy'>
  readonly workspaceName: (session: SessionId, environment: string) => string
}

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
    await this.#parts.credentials.put(id, request.model.api_key)
    const session = this.#parts.sessions.make(tenant, id)
    const opening: NewRecord[] = [{ kind: 'session_creation_started', data: configuration }]
    if (configuration.transcript !== undefined)
      opening.push({ kind: 'transcript_delta', data: { keep: 0, append: configuration.transcript } })
    try {
      const create = { tenant, labels: configuration.labels ?? {} }
      const { claim } = inHand
      const appended = await session.log.append({ records: opening, create, status: 'creating', claim })
      if (!appended.committed) throw new KeyTaken(appended.claimed)
    } catch (error) {
      this.#parts.sessions.forget(id)
      await this.#parts.credentials.forget(id)
      throw error
    }
    inHand.made()
    await this.#setUp(session)
    const ended: NewRecord = { kind: 'session_creation_ended', data: { configuration } }
    await session.log.insist({ records: [ended], status: 'idle' })
    session.rest()
    return session.summary
  }

  /** A brain environment needs no preparation of its own: its directories come into being when they are used. */
  async #setUp(session: LiveSession): Promise<void> {
    for (const { name, configuration } of session.configuration.environments) {
      const request = { type: 'setup', configuration }
      const [started] = await session.log.insist({
        records: [{ kind: 'environment_setup_started', data: { environment: name, environment_sequence: 1, request } }],
      })
      const data = { sequence: started?.sequence ?? 0, result: { type: 'accepted' } }
      await session.log.insist({ records: [{ kind: 'environment_setup_ended', data }] })
    }
  }

  async get(tenant: TenantId, id: SessionId): Promise<SessionSummary> {
    return (await this.#parts.sessions.open(tenant, id)).summary
  }

  async list(tenant: TenantId, query: Omit<SessionQuery, 'tenant'>): Promise<readonly SessionSummary[]> {
    const rows = await this.#parts.journal.sessions({ ...query, tenant })
    return rows.map((row) => ({ session_id: row.id, status: row.status, last_sequence: row.lastSequence }))
  }

  async transcript(
    tenant: TenantId,
    id: SessionId,
  ): Promise<{ messages: readonly Message[]; through_sequence: number }> {
    const { state } = await this.#parts.sessions.open(tenant, id)
    return { messages: state.transcript, through_sequence: state.lastSequence }
  }

  /** What a call left besides its records (contract A29); empty texts when there is nothing, or nothing any more. */
  async callLog(tenant: TenantId, id: SessionId, sequence: number): Promise<CallLog> {
    await this.#parts.sessions.open(tenant, id)
    return (await this.#parts.callLogs.read(id, sequence)) ?? { stdout: '', stderr: '', telemetry: [], warnings: [] }
  }

  /** Sends a message and waits for its turn to end, well or badly. */
  async send(tenant: TenantId, id: SessionId, input: UserInput, claim: ClaimInHand): Promise<SessionSummary> {
    this.assertTakesWork()
    const session = await this.#parts.sessions.open(tenant, id)
    const { done } = await this.#startTurn(session, input, claim)
    await done
    session.rest()
    return session.summary
  }

  /** Sends a message. @returns the sequence of its `turn_started` as soon as that is durable. */
  async submit(tenant: TenantId, id: SessionId, input: UserInput, claim: ClaimInHand): Promise<number> {
    this.assertTakesWork()
    const session = await this.#parts.sessions.open(tenant, id)
    if (session.turns.isRunning || session.state.status === 'running')
      throw new BrainError('overloaded', `Cannot send to session "${id}": it already has active work`, {
        details: { admission: 'rejected' },
      })
    const { sequence, done } = await this.#startTurn(session, input, claim)
    done.then(
      () => session.rest(),
      () => session.rest(),
    )
    return sequence
  }

  async #startTurn(
    session: LiveSession,
    input: UserInput,
    claim: ClaimInHand,
  ): Promise<{ sequence: number; done: Promise<void> }> {
    const provider = this.#parts.providers.get(session.configuration.model.provider)
    if (provider !== undefined) assertTakesMedia(provider, input.media ?? [])
    const started = await session.turns.start(input, claim.claim)
    if ('claimed' in started) throw new KeyTaken(started.claimed)
    claim.made()
    return started
  }

  /** Interrupts the turn and every open call; harmless when there is none. */
  async cancel(tenant: TenantId, id: SessionId, claim: ClaimInHand): Promise<void> {
    const session = await this.#parts.sessions.open(tenant, id)
    assertNotOver(session, 'cancel')
    const appended = await session.log.append({
      records: [{ kind: 'session_interrupted', data: {} }],
      claim: claim.claim,
    })
    if (!appended.committed) throw new KeyTaken(appended.claimed)
    claim.made()
    await this.#interrupt(session)
  }

  async #interrupt(session: LiveSession): Promise<void> {
    session.turns.interrupt({ code: 'cancelled', message: 'The session was cancelled' })
    await session.interruptCalls('cancelled')
    await session.turns.stopped()
  }

  /** Ends a session; one that is over already answers its state. */
  async end(tenant: TenantId, id: SessionId, claim: ClaimInHand): Promise<SessionSummary> {
    const session = await this.#parts.sessions.open(tenant, id)
    await this.#parts.requests.claim(claim)
    const { status } = session.state
    if (status === 'ended' || status === 'failed') return session.summary
    session.ending ??= this.#end(session)
    return session.ending
  }

  async #end(session: LiveSession): Promise<SessionSummary> {
    session.closing = 'ending'
    await this.#interrupt(session)
    await session.turns.settled()
    await session.log.insist({ records: [{ kind: 'session_end_started', data: {} }], status: 'ending' })
    await this.#closeEnvironments(session, 'detach')
    await session.log.insist({ records: [{ kind: 'session_ended', data: {} }], status: 'ended' })
    return session.summary
  }

  /** Deletes a session that is over, with its workspaces, credentials and logs. */
  async remove(tenant: TenantId, id: SessionId, claim: ClaimInHand): Promise<void> {
    const session = await this.#parts.sessions.open(tenant, id)
    const { status } = session.state
    if (status !== 'ended' && status !== 'failed')
      throw new BrainError('invalid_request', `Cannot delete session "${id}": it is ${status}; end it first`)
    await this.#parts.requests.claim(claim)
    session.isBeingDeleted = true
    await this.#closeEnvironments(session, 'teardown')
    for (const { name } of session.configuration.environments)
      await this.#parts.files.destroy(this.#parts.workspaceName(id, name))
    await this.#parts.callLogs.forget(id)
    await this.#parts.credentials.forget(id)
    await this.#parts.journal.remove(id)
    this.#parts.sessions.forget(id)
  }

  async #closeEnvironments(session: LiveSession, operation: 'detach' | 'teardown'): Promise<void> {
    for (const { name } of session.configuration.environments.toReversed()) {
      if (!session.state.environments.has(name)) continue
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
    const sessions = await this.#parts.sessions.all()
    for (const session of sessions) session.closing ??= 'draining'
    const ends = sessions.flatMap((session) => [
      session.turns.settled(),
      ...[...session.openCalls.values()].map((call) => call.ended),
    ])
    const grace = new Promise<'late'>((resolve) => setTimeout(resolve, graceMs, 'late').unref())
    if ((await Promise.race([Promise.all(ends), grace])) !== 'late') return
    await Promise.all(sessions.map((session) => this.#interrupt(session)))
  }
}

export function assertNotOver(session: LiveSession, what: string): void {
  const status: SessionStatus = session.state.status
  if (status === 'ended' || status === 'failed' || status === 'ending' || session.closing === 'ending')
    throw new BrainError('invalid_request', `Cannot ${what} session "${session.log.session}": it is ${status}`)
}
