import type { Limits } from '../../contract/limits.ts'
import type { SessionStatus } from '../../contract/session-request.ts'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { BrainError } from '../../kernel/errors.ts'
import type { SessionId, TenantId } from '../../kernel/ids.ts'
import type {
  Append,
  Appended,
  Claim,
  Claimed,
  ClaimKey,
  Journal,
  JournalHealth,
  Page,
  SessionQuery,
  SessionRow,
  StoredAnswer,
} from '../journal.ts'
import type { JournalRecord } from '../record.ts'
import { QueueBounds } from '../queue-bounds.ts'
import { bytesOf, printRecord, type RecordText, toJournalRecord, toRecordText } from '../record-text.ts'

export type MemoryJournalOptions = {
  readonly limits: Limits
  readonly clock?: Clock
  /** Why writes fail at the moment, if they do: lets a test take the "disk" away. */
  readonly fault?: () => string | undefined
}

type StoredRecord = RecordText & { readonly at: number }
type StoredSession = {
  readonly id: SessionId
  readonly tenant: TenantId
  readonly labels: string
  status: SessionStatus
  at: number
  /** The record of sequence n is at n - 1. */
  readonly records: StoredRecord[]
}
type StoredClaim = { readonly digest: string; answered?: { readonly at: number; readonly answer: string } }

/** A journal that lasts as long as its process: for tests of other rooms, and the plainest form of the port's promises. */
export const openMemoryJournal = (options: MemoryJournalOptions): Journal => new MemoryJournal(options)

class MemoryJournal implements Journal {
  readonly #clock: Clock
  readonly #fault: () => string | undefined
  readonly #queue: QueueBounds
  readonly #sessions = new Map<string, StoredSession>()
  readonly #claims = new Map<string, StoredClaim>()
  #waiting: (() => void)[] = []
  #health: JournalHealth = { state: 'ok' }
  #closed = false

  constructor({ limits, clock = systemClock, fault = () => undefined }: MemoryJournalOptions) {
    this.#queue = new QueueBounds(limits)
    this.#clock = clock
    this.#fault = fault
  }

  async append(append: Append): Promise<Appended> {
    const texts = append.records.map(toRecordText)
    const bytes = texts.reduce((sum, text) => sum + bytesOf(text), 0)
    this.#queue.enter(bytes, append.session)
    try {
      return await this.#write(() => this.#append(append, texts))
    } finally {
      this.#queue.leave(bytes, append.session)
    }
  }

  async page(session: SessionId, after: number, bounds: { limit: number; maxBytes: number }): Promise<Page> {
    const stored = this.#sessions.get(session)?.records ?? []
    let bytes = 0
    let through = after
    for (const text of stored.slice(after, after + bounds.limit)) {
      bytes += bytesOf(text)
      if (through > after && bytes > bounds.maxBytes) break
      through++
    }
    const records = stored
      .slice(after, through)
      .map((text, index) => JSON.parse(printRecord(text, after + index + 1, text.at)) as JournalRecord)
    return { records, nextCursor: through }
  }

  async session(id: SessionId): Promise<SessionRow | undefined> {
    const stored = this.#sessions.get(id)
    return stored && rowOf(stored)
  }

  async sessions({
    tenant,
    status,
    label,
    hasOpenCalls,
    after = '',
    limit,
  }: SessionQuery): Promise<readonly SessionRow[]> {
    return [...this.#sessions.values()]
      .filter((stored) => hasOpenCalls === undefined || openCallsOf(stored) > 0)
      .map(rowOf)
      .filter(
        (row) =>
          row.id > after &&
          (tenant === undefined || row.tenant === tenant) &&
          (status === undefined || status.includes(row.status)) &&
          (label === undefined || Object.entries(row.labels).some(([k, v]) => k === label.key && v === label.value)),
      )
      .toSorted((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, limit)
  }

  remove(session: SessionId, settle?: ClaimKey & { readonly answer: StoredAnswer }): Promise<void> {
    return this.#write(() => {
      this.#sessions.delete(session)
      if (settle !== undefined) this.#settle(settle, settle.answer)
    })
  }

  claim(claim: Claim): Promise<Claimed | undefined> {
    return this.#write(() => {
      const holder = this.#holder(claim)
      if (holder === undefined) this.#insertClaim(claim)
      return holder
    })
  }

  async claimed(key: ClaimKey): Promise<Claimed | undefined> {
    return this.#holder(key)
  }

  settle(key: ClaimKey, answer: StoredAnswer): Promise<void> {
    return this.#write(() => this.#settle(key, answer))
  }

  release(key: ClaimKey): Promise<void> {
    return this.#write(() => {
      if (this.#holder(key)?.state === 'open') this.#claims.delete(nameOf(key))
    })
  }

  expireClaims(olderThanMs: number): Promise<void> {
    const before = this.#clock.now() - olderThanMs
    return this.#write(() => {
      for (const [name, { answered }] of this.#claims)
        if (answered !== undefined && answered.at < before) this.#claims.delete(name)
    })
  }

  health(): JournalHealth {
    return this.#health
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#flush()
    this.#closed = true
  }

  /** Writes of one tick happen together after it, as they do on a disk: what they change is not seen before. */
  #write<Answer>(change: () => Answer): Promise<Answer> {
    if (this.#closed) return Promise.reject(unavailable('it is closed'))
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#flush())
      this.#waiting.push(() => {
        const fault = this.#fault()
        this.#health = fault === undefined ? { state: 'ok' } : { state: 'degraded', reason: fault }
        if (fault !== undefined) return reject(unavailable(fault))
        try {
          resolve(change())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  #flush(): void {
    const changes = this.#waiting
    this.#waiting = []
    for (const change of changes) change()
  }

  #append(append: Append, texts: readonly RecordText[]): Appended {
    const { claim, create, settle, status, records } = append
    const known = this.#sessions.get(append.session)
    if (create === undefined && known === undefined)
      throw new BrainError('not_found', `Cannot append to session "${append.session}": there is none of this id`)
    const claimed = claim && this.#holder(claim)
    if (claimed !== undefined) return { committed: false, claimed }
    if (create !== undefined && known !== undefined)
      throw new BrainError('conflict', `Cannot create session "${append.session}": it exists`)
    if (claim !== undefined) this.#insertClaim(claim)
    const session = known ?? this.#create(append.session, create)
    session.at = Math.max(session.at, this.#clock.now())
    session.status = status ?? session.status
    const first = session.records.length + 1
    session.records.push(...texts.map((text) => ({ ...text, at: session.at })))
    if (settle !== undefined) this.#settle(settle, settle.answer)
    return {
      committed: true,
      records: records.map((record, index) => toJournalRecord(record, first + index, session.at)),
    }
  }

  #create(id: SessionId, create: Append['create']): StoredSession {
    const { tenant, labels } = create ?? { tenant: '' as TenantId, labels: {} }
    const session: StoredSession = {
      id,
      tenant,
      labels: JSON.stringify(labels),
      status: 'creating',
      at: 0,
      records: [],
    }
    this.#sessions.set(id, session)
    return session
  }

  #holder(key: ClaimKey): Claimed | undefined {
    const claim = this.#claims.get(nameOf(key))
    if (claim === undefined) return undefined
    const { digest, answered } = claim
    if (answered === undefined) return { state: 'open', digest }
    return { state: 'answered', digest, answer: JSON.parse(answered.answer) as StoredAnswer }
  }

  #insertClaim(claim: Claim): void {
    this.#claims.set(nameOf(claim), { digest: claim.digest })
  }

  #settle(key: ClaimKey, answer: StoredAnswer): void {
    const claim = this.#claims.get(nameOf(key))
    if (claim !== undefined) claim.answered ??= { at: this.#clock.now(), answer: JSON.stringify(answer) }
  }
}

const openCallsOf = ({ records }: StoredSession): number =>
  records.filter(({ type }) => type === 'tool_call_started').length -
  records.filter(({ type }) => type === 'tool_call_ended' || type === 'tool_call_failed').length

const nameOf = ({ scope, key }: ClaimKey): string => JSON.stringify([scope, key])

const rowOf = ({ id, tenant, status, labels, records }: StoredSession): SessionRow => ({
  id,
  tenant,
  status,
  lastSequence: records.length,
  labels: JSON.parse(labels) as Record<string, string>,
})

const unavailable = (reason: string): BrainError =>
  new BrainError('storage_unavailable', `Cannot use the journal: ${reason}`)
