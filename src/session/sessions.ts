import { BrainError, messageOf } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Limits } from '../contract/limits.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'
import type { Journal, SessionRow } from '../journal/journal.ts'
import { readAll, SessionLog } from '../journal/session-log.ts'
import { recoveryOf, SessionState } from '../journal/session-state.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { ModelProvider } from '../model/model-provider.ts'
import type { Agentloops } from '../turn/agentloop.ts'
import type { ModelAccess } from '../turn/model-caller.ts'
import type { Logger } from '../kernel/logger.ts'
import type { SessionHosts } from './application-hosts.ts'
import type { Credentials } from './credentials.ts'
import { LiveSession } from './live-session.ts'
import { readSecrets } from './session-secrets.ts'

export type SessionsParts = {
  readonly journal: Journal
  readonly dispatcher: Dispatcher
  readonly credentials: Credentials
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly loops: Agentloops
  readonly limits: Limits
  readonly logger: Logger
  readonly defaultIdleTtlMs: number | undefined
  readonly hosts: Pick<SessionHosts, 'activity'>
}

/** Quiet sessions beyond this many are let go at once, the longest unused first; others when they are swept. */
const MOST_QUIET = 512

/** So many go at a time when there are too many, since looking for them looks at all. */
const GO_TOGETHER = 64

/**
 * The sessions of this process, opened on first use and recovered then (contract 3.7). There is one live session of an
 * id at most: it stays for as long as somebody uses it or something of it goes on, and can be let go otherwise.
 */
export class Sessions {
  readonly #parts: SessionsParts
  readonly #live = new Map<SessionId, LiveSession>()
  readonly #opening = new Map<SessionId, Promise<LiveSession | undefined>>()

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  /**
   * Has `work` done with a session, which stays in memory meanwhile.
   * @throws BrainError `not_found`, also for another tenant's session (contract A3).
   */
  async use<Result>(tenant: TenantId, id: SessionId, work: (session: LiveSession) => Promise<Result>): Promise<Result> {
    return this.#use(await this.#hold(tenant, id), work)
  }

  /** As {@link use}, for who was let in by something else than a tenant's token. */
  async useAny<Result>(id: SessionId, work: (session: LiveSession) => Promise<Result>): Promise<Result> {
    return this.#use(await this.#hold(undefined, id), work)
  }

  async #use<Result>(session: LiveSession, work: (session: LiveSession) => Promise<Result>): Promise<Result> {
    try {
      return await work(session)
    } finally {
      session.users--
    }
  }

  /** Makes a session, which has no journal yet, and has `work` done with it. */
  async make<Result>(
    tenant: TenantId,
    id: SessionId,
    work: (session: LiveSession) => Promise<Result>,
  ): Promise<Result> {
    const session = this.#assemble(tenant, new SessionLog(this.#parts.journal, id, 0), new SessionState())
    this.#add(session)
    session.users++
    try {
      return await work(session)
    } finally {
      session.users--
    }
  }

  forget(id: SessionId): void {
    this.#live.get(id)?.dispose()
    this.#live.delete(id)
  }

  /** Opens what a crash left in the middle of something, which writes its ends. */
  async recover(): Promise<void> {
    const { journal } = this.#parts
    const atWork = await journal.sessions({ status: ['creating', 'running', 'ending'] })
    const inBackground = await journal.sessions({ hasOpenCalls: true })
    for (const id of new Set([...atWork, ...inBackground].map((row) => row.id))) {
      // One journal that cannot be read is no reason to keep the others from starting: it is tried again on first use.
      await this.#openOnce(id).catch((error: unknown) =>
        this.#parts.logger.error({ session: id, error: messageOf(error) }, 'cannot recover the session'),
      )
    }
  }

  /** Every session that is in memory. */
  get all(): readonly LiveSession[] {
    return [...this.#live.values()]
  }

  /** Lets go of the sessions that were quiet for so long. */
  letGo(quietMs: number): void {
    const before = performance.now() - quietMs
    for (const session of this.#idle) if (session.usedAt <= before) this.forget(session.log.session)
  }

  /** Those that nobody uses and nothing of which goes on. */
  get #idle(): readonly LiveSession[] {
    return this.all.filter(
      (session) => session.users === 0 && session.isQuiet && session.log.followers <= OWN_FOLLOWERS,
    )
  }

  async #hold(tenant: TenantId | undefined, id: SessionId): Promise<LiveSession> {
    for (;;) {
      const session = this.#live.get(id) ?? (await this.#openOnce(id))
      if (session === undefined || (tenant !== undefined && session.tenant !== tenant))
        throw new BrainError('not_found', `Cannot find session "${id}"`)
      if (this.#live.get(id) !== session) continue // let go while this waited for it
      session.users++
      session.usedAt = performance.now()
      return session
    }
  }

  #openOnce(id: SessionId): Promise<LiveSession | undefined> {
    const opening = this.#opening.get(id) ?? this.#open(id).finally(() => this.#opening.delete(id))
    this.#opening.set(id, opening)
    return opening
  }

  async #open(id: SessionId): Promise<LiveSession | undefined> {
    const row = await this.#parts.journal.session(id)
    if (row === undefined) return undefined
    const session = await this.#load(row)
    this.#add(session)
    return session
  }

  #add(session: LiveSession): void {
    this.#live.set(session.log.session, session)
    if (this.#live.size <= MOST_QUIET) return
    const idle = this.#idle.filter((candidate) => candidate !== session)
    const longest = idle.toSorted((a, b) => a.usedAt - b.usedAt)
    for (const one of longest.slice(0, GO_TOGETHER)) this.forget(one.log.session)
  }

  async #load(row: SessionRow): Promise<LiveSession> {
    const state = new SessionState()
    for await (const records of readAll(this.#parts.journal, row.id)) for (const record of records) state.apply(record)
    const log = new SessionLog(this.#parts.journal, row.id, state.lastSequence)
    const session = this.#assemble(row.tenant, log, state)
    const { records, status } = recoveryOf(state)
    if (records.length > 0) await log.commit({ records, status })
    return session
  }

  #assemble(tenant: TenantId, log: SessionLog, state: SessionState): LiveSession {
    const { dispatcher, loops, limits, logger, defaultIdleTtlMs, hosts } = this.#parts
    const onActivity = (isActive: boolean): void => hosts.activity(log.session, isActive)
    const modelAccess = (configuration: SessionConfiguration): Promise<ModelAccess> =>
      this.#access(log.session, configuration)
    const settings = { dispatcher, loops, limits, logger, defaultIdleTtlMs }
    return new LiveSession({ tenant, log, state, ...settings, modelAccess, onActivity })
  }

  async #access(session: SessionId, { model }: SessionConfiguration): Promise<ModelAccess> {
    const provider = this.#parts.providers.get(model.provider)
    if (provider === undefined)
      throw new BrainError(
        'model_provider_failed',
        `Cannot call the model: provider "${model.provider}" is not part of this server any more`,
      )
    const { apiKey } = readSecrets(await this.#parts.credentials.get(session))
    return { provider, name: model.name, apiKey, settings: model.script ?? null }
  }
}

/** A live session follows its own log twice: for its state and for its wakes. */
const OWN_FOLLOWERS = 2
