import { createHash, randomBytes } from 'node:crypto'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { newHostId, type HostId, type SessionId, type TenantId } from '../../kernel/ids.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { HostRegistration } from '../../contract/host-protocol.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import { Host } from './host.ts'
import type { HostStore } from './host-store.ts'
import { SharedWrite } from './shared-write.ts'

export type HostsParts = { readonly store: HostStore; readonly limits: Limits; readonly logger: Logger }

type Entry = { readonly host: Host; readonly save: () => Promise<void>; forgetting: NodeJS.Timeout | undefined }

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The applications that are registered (contract 4.1), and for how long. */
export class Hosts implements Disposable {
  readonly #parts: HostsParts
  readonly #entries = new Map<string, Entry>()
  /** The hosts of a session. */
  readonly #bound = new Map<SessionId, readonly Entry[]>()

  constructor(parts: HostsParts) {
    this.#parts = parts
    for (const kept of parts.store.kept) {
      const entry = this.#add(new Host(kept, parts.limits, () => this.#watch(entry)))
      for (const session of kept.sessions) this.#bound.set(session, [...(this.#bound.get(session) ?? []), entry])
      this.#watch(entry)
    }
  }

  #add(host: Host): Entry {
    const saving = new SharedWrite(() => this.#parts.store.write(host.kept))
    const entry: Entry = { host, save: () => saving.run(), forgetting: undefined }
    this.#entries.set(host.id, entry)
    return entry
  }

  /** Sessions that hosts are kept for. */
  get sessions(): readonly SessionId[] {
    return [...this.#bound.keys()]
  }

  async register(tenant: TenantId): Promise<HostRegistration> {
    const { limits, store } = this.#parts
    if (limits.hosts > 0 && this.#entries.size >= limits.hosts)
      throw new BrainError(
        'overloaded',
        `Cannot register a host: ${describeLimit('hosts', limits)} are registered already`,
      )
    const token = `bht_${randomBytes(32).toString('base64url')}`
    const kept = { id: newHostId(), tenant, tokenDigest: digestOf(token), sessions: [] }
    const entry = this.#add(new Host(kept, limits, () => this.#watch(entry)))
    try {
      await store.write(kept)
    } catch (error) {
      this.#entries.delete(kept.id)
      throw error
    }
    this.#watch(entry)
    return { host_id: kept.id, token }
  }

  open(id: string, token: string): Host {
    const entry = this.#entries.get(id)
    if (entry === undefined)
      throw new BrainError('not_found', `Cannot find host ${JSON.stringify(id.slice(0, 80))}: register it again`)
    if (entry.host.isOwn(digestOf(token))) return entry.host
    throw new BrainError(
      'unauthorized',
      'Cannot authenticate: send "Authorization: Bearer" with the token that the registration of this host answered',
    )
  }

  /** A tenant's host; another tenant's reads as one that is not there. */
  find(tenant: TenantId, id: string): Host | undefined {
    const host = this.#entries.get(id)?.host
    return host?.tenant === tenant ? host : undefined
  }

  async bind(session: SessionId, hosts: readonly string[]): Promise<void> {
    const entries = [...new Set(hosts)].map((id) => {
      const entry = this.#entries.get(id)
      if (entry !== undefined) return entry
      throw new BrainError('invalid_request', `Cannot create the session: host "${id}" is not registered`)
    })
    if (entries.length === 0) return
    this.#bound.set(session, entries)
    for (const { host } of entries) host.bind(session)
    try {
      await Promise.all(entries.map(({ save }) => save()))
    } catch (error) {
      await this.release(session)
      throw error
    }
  }

  async release(session: SessionId): Promise<void> {
    const entries = this.#bound.get(session) ?? []
    this.#bound.delete(session)
    for (const { host } of entries) host.release(session)
    const saved = await Promise.allSettled(entries.map(({ save }) => save()))
    for (const one of saved) {
      if (one.status === 'rejected')
        this.#parts.logger.warn({ session, error: messageOf(one.reason) }, 'cannot release a host from the session')
    }
  }

  activity(session: SessionId, isActive: boolean): void {
    for (const { host } of this.#bound.get(session) ?? []) host.setActive(session, isActive)
  }

  /** Forgets a host that nothing has held for so long. */
  #watch(entry: Entry): void {
    if (entry.host.isHeld) {
      clearTimeout(entry.forgetting)
      entry.forgetting = undefined
    } else
      entry.forgetting ??= setTimeout(
        () => this.#forget(entry.host.id),
        this.#parts.limits.hostUnconnectedSecs * 1000,
      ).unref()
  }

  #forget(id: HostId): void {
    this.#entries.delete(id)
    this.#parts.store
      .remove(id)
      .catch((error: unknown) => this.#parts.logger.warn({ host: id, error: messageOf(error) }, 'cannot forget a host'))
  }

  [Symbol.dispose](): void {
    for (const { forgetting } of this.#entries.values()) clearTimeout(forgetting)
  }
}
