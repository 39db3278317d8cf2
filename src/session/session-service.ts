import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { within } from '../kernel/within.ts'
import { newSessionId, type SessionId, type TenantId } from '../kernel/ids.ts'
import type { Message, UserInput } from '../contract/message.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import { ToolFailure } from '../contract/tool-failure.ts'
import type { SessionConfiguration, SessionStatus, SessionSummary } from '../contract/session-request.ts'
import type { Journal, SessionQuery } from '../journal/journal.ts'
import type { NewRecord } from '../journal/record.ts'
import type { CallLog, CallLogs } from '../dispatch/call-log.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { assertTakesMedia, type ModelProvider } from '../model/model-provider.ts'
import type { Components } from '../sandbox/sandbox.ts'
import type { Catalog } from './catalog.ts'
import type { CreateRequest } from './create-request.ts'
import type { SessionHosts } from './application-hosts.ts'
import type { Credentials } from './credentials.ts'
import type { LiveSession } from './live-session.ts'
import { printSecrets, type SessionSecrets } from './session-secrets.ts'
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
  readonly catalog: Catalog
}

/** A message, and the W3C trace that it belongs to. */
export type SentInput = UserInput & { readonly traceparent?: string }

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
    await this.#prepare(id, configuration, secretsOf(request))
    return this.#parts.sessions.make(tenant, id, async (session) => {
      await this.#open(session, configuration, inHand)
      await this.#setUp(session)
      const ended: NewRecord = { kind: 'session_creation_ended', data: { configuration } }
      await session.log.insist({ records: [ended], status: 'idle' })
      session.turns.opened()
      session.rest()
      return session.summary
    })
  }

  /** What must be there, and durable, before the first record of a session. */
  async #prepare(id: SessionId, { environments }: SessionConfiguration, secrets: SessionSecrets): Promise<void> {
    const { credentials, hosts } = this.#parts
    await credentials.put(id, printSecrets(secrets))
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
    const { operations } = this.#parts.dispatcher.environments
    for (const { name, lifecycle } of session.configuration.environments) {
      const entry = session.state.environments.get(name)
      if (lifecycle === 'manual' || entry === undefined) continue
      try {
        await session.environmentWork.change(name, () => operations.setUp(session, entry, 'insist'))
      } catch (error) {
        await this.#failCreation(session, error)
        throw error
      }
    }
  }

  /** An environment could not be set up: those that were are torn down again (contract 2.4). */
  async #failCreation(session: LiveSession, error: unknown): Promise<void> {
    const isTold = error instanceof BrainError || error instanceof ToolFailure
    const { retryable } = isTold ? error : { retryable: false }
    const failure = { message: clip(messageOf(error)), retryable, ambiguous: false }
    await session.log.insist({
      records: [{ kind: 'session_creation_failed', data: { code: 'environment_preparation_failed', ...failure } }],
      status: 'failed',
    })
    session.abandoning = this.#abandon(session)
    await session.abandoning
  }

  async #abandon(session: LiveSession): Promise<void> {
    await this.#parts.dispatcher.environments.operations.closeAll(session, 'failedCreation')
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
  async send(tenant: TenantId, id: SessionId, input: SentInput, claim: ClaimInHand): Promise<SessionSummary> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      const { done } = await this.#startTurn(session, input, claim)
      await done.finally(() => session.rest())
      return session.summary
    })
  }

  /** Sends a message. @returns the sequence of its `turn_started` as soon as that is durable. */
  async submit(tenant: TenantId, id: SessionId, input: SentInput, claim: ClaimInHand): Promise<number> {
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
    { traceparent, ...input }: SentInput,
    claim: ClaimInHand,
  ): Promise<{ sequence: number; done: Promise<void> }> {
    this.assertTakesWork()
    const provider = this.#parts.providers.get(session.configuration.model.provider)
    if (provider !== undefined) assertTakesMedia(provider, input.media ?? [])
    const started = await session.turns.start(input, claim.claim, traceparent)
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
      if (session.state.status === 'creating')
        throw new BrainError('conflict', `Cannot end session "${id}": it is being created; end it when that is over`)
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
    await session.environmentWork.stop()
    await this.#parts.dispatcher.environments.operations.closeAll(session, 'end')
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
    await session.abandoning
    await this.#parts.dispatcher.environments.operations.closeAll(session, 'deletion')
    await this.#parts.callLogs.forget(id)
    await this.#parts.credentials.forget(id)
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
      // The end of a turn is told to environments.
      session.turns.settled().then(() => session.environmentWork.settled()),
      ...[...session.openCalls.values()].map((call) => call.ended),
    ])
    if (!(await within(Promise.all(ends), graceMs))) await Promise.all(sessions.map((one) => this.#interrupt(one)))
    // Whoever waits for work that has ended is answered.
    await within(this.#parts.requests.settled(), ANSWER_MS)
  }
}

const secretsOf = ({ model, environments }: CreateRequest): SessionSecrets => ({
  apiKey: model.api_key,
  environments: Object.fromEntries(
    environments.flatMap(({ name, credential }) => (credential === undefined ? [] : [[name, credential]])),
  ),
})

export function assertNotOver(session: LiveSession, what: string): void {
  const status: SessionStatus = session.state.status
  if (status === 'ended' || status === 'failed' || status === 'ending' || session.closing === 'ending')
    throw new BrainError('invalid_request', `Cannot ${what} session "${session.log.session}": it is ${status}`)
}
