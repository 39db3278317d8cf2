import { BrainError } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Limits } from '../contract/limits.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'
import type { Journal, SessionRow } from '../journal/journal.ts'
import { readAll, SessionLog } from '../journal/session-log.ts'
import { recoveryOf, SessionState } from '../journal/session-state.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { ModelProvider } from '../model/model-provider.ts'
import type { Agentloop } from '../turn/agentloop.ts'
import type { ModelAccess } from '../turn/model-caller.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Credentials } from './credentials.ts'
import { LiveSession } from './live-session.ts'

export type SessionsParts = {
  readonly journal: Journal
  readonly dispatcher: Dispatcher
  readonly credentials: Credentials
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly loop: Agentloop
  readonly limits: Limits
  readonly logger: Logger
  readonly defaultIdleTtlMs: number | undefined
}

/** Quiet sessions beyond this many are let go, the longest unused first; opening one again reads its journal. */
const MOST_QUIET = 512

/** Somebody who was handed a session may still be about to use it: it is let go only after this long. */
const QUIET_MS = 60_000

/** The sessions of this process, opened on first use and recovered then (contract 3.7). */
export class Sessions {
  readonly #parts: SessionsParts
  readonly #live = new Map<SessionId, Promise<LiveSession>>()
  #isLettingGo = false

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  /** @throws BrainError `not_found`, also for another tenant's session (contract A3). */
  async open(tenant: TenantId, id: SessionId): Promise<LiveSession> {
    const known = await this.#live.get(id)
    const session = known ?? (await this.#openOnce(id))
    if (session === undefined || session.tenant !== tenant)
      throw new BrainError('not_found', `Cannot find session "${id}"`)
    session.usedAt = performance.now()
    return session
  }

  /** A session that is being created: it has no journal yet. */
  make(tenant: TenantId, id: SessionId): LiveSession {
    const session = this.#assemble(tenant, new SessionLog(this.#parts.journal, id, 0), new SessionState())
    this.#live.set(id, Promise.resolve(session))
    this.#letGo()
    return session
  }

  forget(id: SessionId): void {
    this.#live.delete(id)
  }

  /** Opens what a crash left in the middle of something, which writes its ends. */
  async recover(): Promise<void> {
    const rows = await this.#parts.journal.sessions({ status: ['creating', 'running', 'ending'] })
    for (const row of rows) await this.#openOnce(row.id)
  }

  /** Every session that is in memory. */
  async all(): Promise<readonly LiveSession[]> {
    const loads = await Promise.allSettled(this.#live.values())
    return loads.flatMap((load) => (load.status === 'fulfilled' ? [load.value] : []))
  }

  async #openOnce(id: SessionId): Promise<LiveSession | undefined> {
    const already = this.#live.get(id)
    if (already !== undefined) return already
    const row = await this.#parts.journal.session(id)
    if (row === undefined) return undefined
    const again = this.#live.get(id)
    if (again !== undefined) return again
    const opening = this.#load(row)
    this.#live.set(id, opening)
    opening.catch(() => this.#live.delete(id))
    const session = await opening
    this.#letGo()
    return session
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
    const { dispatcher, loop, limits, logger, defaultIdleTtlMs } = this.#parts
    const modelAccess = (configuration: SessionConfiguration): Promise<ModelAccess> =>
      this.#access(log.session, configuration)
    return new LiveSession({ tenant, log, state, dispatcher, loop, limits, logger, defaultIdleTtlMs, modelAccess })
  }

  async #access(session: SessionId, { model }: SessionConfiguration): Promise<ModelAccess> {
    const provider = this.#parts.providers.get(model.provider)
    if (provider === undefined)
      throw new BrainError(
        'model_provider_failed',
        `Cannot call the model: provider "${model.provider}" is not part of this server any more`,
      )
    const apiKey = await this.#parts.credentials.get(session)
    return { provider, name: model.name, apiKey, settings: model.script ?? null }
  }

  #letGo(): void {
    if (this.#live.size <= MOST_QUIET || this.#isLettingGo) return
    this.#isLettingGo = true
    void this.#letGoOf().finally(() => (this.#isLettingGo = false))
  }

  async #letGoOf(): Promise<void> {
    const loaded = (await Promise.allSettled(this.#live.values())).flatMap((load) =>
      load.status === 'fulfilled' ? [load.value] : [],
    )
    const before = performance.now() - QUIET_MS
    const quiet = loaded.filter(
      (session) => session.isQuiet && session.usedAt < before && session.log.followers <= OWN_FOLLOWERS,
    )
    const longest = quiet.toSorted((a, b) => a.usedAt - b.usedAt)
    for (const session of longest.slice(0, this.#live.size - MOST_QUIET)) {
      session.dispose()
      this.#live.delete(session.log.session)
    }
  }
}

/** A live session follows its own log twice: for its state and for its wakes. */
const OWN_FOLLOWERS = 2
