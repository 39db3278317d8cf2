import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { ErrorCode } from '../../kernel/errors.ts'
import type { Claim, Claimed, ClaimKey, StoredAnswer } from '../journal.ts'
import type { AppendReply, AppendRequest, Call, Reply, WriterCalls } from './protocol.ts'
import { claimedOf, integerOf, textOf } from './row.ts'
import { explainFault, sqliteCodeOf } from './store-fault.ts'
import { prepareWrites, type Writes } from './writes.ts'
import type { Store } from './store-thread.ts'

/** Pages in the write-ahead log from which a checkpoint is worth its two syncs. */
const CHECKPOINT_PAGES = 1000
/** Asking how long the log is costs as much as a small append: it is asked this seldom. */
const BATCHES_PER_LOOK = 16
/** Rows that one step of background work may touch, so that appends never wait long behind it. */
const STEP_ROWS = 500
const MAX_CACHED_SESSIONS = 10_000
/** Primary result codes of SQLite that speak of one statement and not of the disk or the file. */
const CALLS_OWN_FAULT: ReadonlySet<number> = new Set([
  7, // SQLITE_NOMEM
  13, // SQLITE_FULL
  18, // SQLITE_TOOBIG
  19, // SQLITE_CONSTRAINT
])

type OpenSession = { readonly number: number; readonly tenant: string; sequence: number; at: number }
type WriterCall = Call<WriterCalls>
type Settle = ClaimKey & { readonly answer: StoredAnswer }

/** A call that is refused before it wrote anything: its neighbours in the transaction go on. */
type Refusal = { readonly refused: ErrorCode; readonly message: string }
const isRefusal = (value: object): value is Refusal => 'refused' in value

/** Writes batches of calls, each batch in one transaction; the only writer of its database. */
export class StoreWriter implements Store<WriterCalls> {
  readonly #database: DatabaseSync
  readonly #writes: Writes
  /** What the session table says of sessions in use. Never ahead of the disk: emptied when a transaction fails. */
  readonly #sessions = new Map<string, OpenSession>()
  #checkpointFrom = CHECKPOINT_PAGES
  #batches = 0
  #purges: boolean

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#writes = prepareWrites(database)
    this.#purges = true
  }

  answer(calls: readonly WriterCall[]): readonly Reply[] {
    try {
      return this.#transaction(calls)
    } catch (error) {
      this.#sessions.clear()
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      // Alone, each call gets the verdict that is its own. When the disk or the file is at fault they share it.
      if (calls.length > 1 && isCallsOwnFault(error)) return calls.flatMap((call) => this.answer([call]))
      const message = `Cannot write to the journal: ${explainFault(error)}`
      return calls.map(({ id }) => ({ id, ok: false, code: 'storage_unavailable', message }))
    }
  }

  tidy(): boolean {
    try {
      this.#checkpoint()
      if (this.#purges) this.#purges = this.#purge()
      return this.#purges
    } catch {
      // Nothing is lost by work left undone: it is tried again after the next batch, whose answers tell what is wrong.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      return false
    }
  }

  close(): void {
    this.#database.close()
  }

  #transaction(calls: readonly WriterCall[]): readonly Reply[] {
    this.#writes.begin.run()
    const replies = calls.map((call): Reply => {
      const value = this.#apply(call)
      return value !== undefined && isRefusal(value)
        ? { id: call.id, ok: false, code: value.refused, message: value.message }
        : { id: call.id, ok: true, value }
    })
    this.#writes.commit.run()
    return replies
  }

  #apply(call: WriterCall): Refusal | WriterCalls[WriterCall['op']]['reply'] {
    switch (call.op) {
      case 'append':
        return this.#append(call.request)
      case 'remove':
        return this.#remove(call.request)
      case 'claim':
        return this.#claim(call.request, call.request.at)
      case 'settle':
        return this.#settle(call.request, call.request.at)
      case 'release':
        this.#writes.release.run(call.request.scope, JSON.stringify(call.request.key))
        return undefined
      case 'expire':
        return this.#expire(call.request)
      case 'probe':
        this.#writes.probe.run(call.request.at)
        return undefined
      default:
        return call satisfies never
    }
  }

  #append(request: AppendRequest): AppendReply | Refusal {
    const { claim, create, settle, status } = request
    const known = this.#find(request.session)
    if (create === undefined && known === undefined)
      return {
        refused: 'not_found',
        message: `Cannot append to session "${request.session}": there is none of this id`,
      }
    if (claim !== undefined) {
      const claimed = this.#holder(claim)
      if (claimed !== undefined) return { committed: false, claimed }
    }
    if (create !== undefined && known !== undefined)
      return { refused: 'conflict', message: `Cannot create session "${request.session}": it exists` }
    if (claim !== undefined) this.#insertClaim(claim, request.at)
    const session = known ?? this.#create(request)
    const first = session.sequence + 1
    session.at = Math.max(session.at, request.at)
    for (const { type, data, origin } of request.records)
      this.#writes.insertRecord.run(session.number, ++session.sequence, session.at, type, data, origin)
    if (status === undefined) this.#writes.advance.run(session.sequence, session.at, session.number)
    else this.#writes.advanceTo.run(session.sequence, session.at, status, session.number)
    if (settle !== undefined) this.#settle(settle, request.at)
    return { committed: true, first, at: session.at }
  }

  #find(id: string): OpenSession | undefined {
    const cached = this.#sessions.get(id)
    if (cached !== undefined) return cached
    const row = this.#writes.findSession.get(id)
    if (row === undefined) return undefined
    return this.#cache(id, {
      number: integerOf(row, 'number'),
      tenant: textOf(row, 'tenant'),
      sequence: integerOf(row, 'last_sequence'),
      at: integerOf(row, 'last_at'),
    })
  }

  #create(request: AppendRequest): OpenSession {
    const { tenant = '', labels = {} } = request.create ?? {}
    const inserted = this.#writes.insertSession.run(request.session, tenant, 'creating', JSON.stringify(labels))
    for (const [key, value] of Object.entries(labels))
      this.#writes.insertLabel.run(tenant, JSON.stringify(key), JSON.stringify(value), request.session)
    return this.#cache(request.session, { number: Number(inserted.lastInsertRowid), tenant, sequence: 0, at: 0 })
  }

  #cache(id: string, session: OpenSession): OpenSession {
    if (this.#sessions.size >= MAX_CACHED_SESSIONS) this.#sessions.clear()
    this.#sessions.set(id, session)
    return session
  }

  /** Takes the session away at once; its records, out of reach from here on, are purged step by step (`tidy`). */
  #remove({ session, at, settle }: WriterCalls['remove']['request']): undefined {
    const known = this.#find(session)
    if (known !== undefined) {
      const labels = textOf(this.#writes.removeSession.get(known.number) ?? {}, 'labels')
      for (const [key, value] of Object.entries(JSON.parse(labels) as Record<string, string>))
        this.#writes.removeLabel.run(known.tenant, JSON.stringify(key), JSON.stringify(value), session)
      this.#writes.insertRemoved.run(known.number)
      this.#sessions.delete(session)
      this.#purges = true
    }
    if (settle !== undefined) this.#settle(settle, at)
  }

  #holder({ scope, key }: ClaimKey): Claimed | undefined {
    const row = this.#writes.findClaim.get(scope, JSON.stringify(key))
    return row === undefined ? undefined : claimedOf(row)
  }

  #claim(claim: Claim, at: number): Claimed | undefined {
    const holder = this.#holder(claim)
    if (holder === undefined) this.#insertClaim(claim, at)
    return holder
  }

  #insertClaim({ scope, key, digest }: Claim, at: number): void {
    this.#writes.insertClaim.run(scope, JSON.stringify(key), digest, at)
  }

  #settle({ scope, key, answer }: Settle, at: number): undefined {
    this.#writes.settle.run(at, JSON.stringify(answer), scope, JSON.stringify(key))
  }

  #expire({ before, openBefore }: WriterCalls['expire']['request']): { readonly done: boolean } {
    const { changes } = this.#writes.expire.run(before, openBefore, STEP_ROWS)
    return { done: Number(changes) < STEP_ROWS }
  }

  #purge(): boolean {
    const removed = this.#writes.nextRemoved.get()
    if (removed === undefined) return false
    const number = integerOf(removed, 'number')
    this.#writes.begin.run()
    const { changes } = this.#writes.purge.run(number, STEP_ROWS)
    if (Number(changes) < STEP_ROWS) this.#writes.forgetRemoved.run(number)
    this.#writes.commit.run()
    return true
  }

  /** PASSIVE never waits for readers. One that holds an old snapshot keeps the log from starting over: then it grows. */
  #checkpoint(): void {
    if (++this.#batches % BATCHES_PER_LOOK !== 0) return
    const waiting = pagesWaiting(this.#writes.measureLog)
    if (waiting < CHECKPOINT_PAGES) this.#checkpointFrom = CHECKPOINT_PAGES
    if (waiting < this.#checkpointFrom) return
    this.#checkpointFrom = pagesWaiting(this.#writes.checkpoint) + CHECKPOINT_PAGES
  }
}

function pagesWaiting(checkpoint: StatementSync): number {
  const row = checkpoint.get() ?? {}
  return integerOf(row, 'log') - integerOf(row, 'checkpointed')
}

function isCallsOwnFault(error: unknown): boolean {
  const code = sqliteCodeOf(error)
  return code === undefined || CALLS_OWN_FAULT.has(code)
}
