import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { SessionStatus } from '../contract/session-request.ts'
import type { JournalRecord, NewRecord } from './record.ts'

/** A row of the session table: what lists and recovery read without opening a journal (design 3). */
export type SessionRow = {
  readonly id: SessionId
  readonly tenant: TenantId
  readonly status: SessionStatus
  readonly lastSequence: number
  readonly labels: Readonly<Record<string, string>>
}

/** An idempotency key in use. `scope` already holds the tenant (contract 0.5, A24). */
export type ClaimKey = { readonly scope: string; readonly key: string }

/** An answer as it is kept for replay: its body, or the sequence of the direct call from which it is rebuilt. */
export type StoredAnswer =
  | { readonly type: 'body'; readonly status: number; readonly body: string }
  | { readonly type: 'call'; readonly status: number; readonly session: SessionId; readonly sequence: number }

/** What a key that was claimed before stands for. */
export type Claimed =
  | { readonly state: 'open'; readonly digest: string }
  | { readonly state: 'answered'; readonly digest: string; readonly answer: StoredAnswer }

export type Claim = ClaimKey & {
  /** SHA-256 of what the request asks for. */
  readonly digest: string
}

export type Append = {
  readonly session: SessionId
  readonly records: readonly NewRecord[]
  /** Makes the session's row; only in its first append. */
  readonly create?: { readonly tenant: TenantId; readonly labels: Readonly<Record<string, string>> }
  /** The session's status from this append on; unchanged when absent. */
  readonly status?: SessionStatus
  /** Claims a key in the same transaction. When the key is taken nothing is appended. */
  readonly claim?: Claim
  /** Answers a claim in the same transaction. */
  readonly settle?: ClaimKey & { readonly answer: StoredAnswer }
}

export type Appended =
  | { readonly committed: true; readonly records: readonly JournalRecord[] }
  | { readonly committed: false; readonly claimed: Claimed }

export type Page = {
  readonly records: readonly JournalRecord[]
  /** The `after` of the next page; equals the given one when there is nothing newer. */
  readonly nextCursor: number
}

export type SessionQuery = {
  readonly tenant?: TenantId
  readonly status?: readonly SessionStatus[]
  readonly label?: { readonly key: string; readonly value: string }
  /** Those with a `tool_call_started` that has no end. */
  readonly hasOpenCalls?: true
  readonly after?: string
  readonly limit?: number
}

export type JournalHealth = { readonly state: 'ok' } | { readonly state: 'degraded'; readonly reason: string }

/**
 * The only durable truth: an append-only, totally ordered list of records per session, with the session table and the
 * idempotency claims that must agree with it.
 *
 * J1  `append` writes all of its records or none.
 * J2  Sequences of a session are dense from 1. Appends of one session commit in the order they were called.
 * J3  `append` answers after its records are durable: they survive SIGKILL and power loss.
 * J4  A failed append rejects with `storage_unavailable`, leaves sequences dense, and the next append may succeed.
 *     `health` says `degraded` from a failed write until the next one that succeeds, and from a read that failed until it
 *     is answered. What was being committed when the
 *     store itself broke down may be found later all the same: who must know, reads.
 * J5  `recorded_at_ms` never decreases within a session.
 * J6  The session's row changes in the transaction of the append.
 * J7  A claim commits with the records of its append; a taken key appends nothing and answers what holds it. The first
 *     answer of a claim stays.
 * J8  `page` answers exactly what was appended, in order, for ever; at most `limit` records and `maxBytes` of them,
 *     but always one when any is there.
 * J9  A queue over its bound rejects with `overloaded` and writes nothing. What finds its queue empty always enters.
 * J10 `remove` takes away a session's records, row and labels in one transaction; nothing is left to be read.
 * J11 Text comes back as it was given: NUL, lone surrogates, any key.
 */
export interface Journal extends AsyncDisposable {
  /**
   * @throws BrainError `not_found` for a session that does not exist and is not made, `conflict` when the one to make
   * exists, `overloaded` (J9), `storage_unavailable` (J4).
   */
  append(append: Append): Promise<Appended>
  /** Records after sequence `after`; none when there is no such session. */
  page(session: SessionId, after: number, bounds: { limit: number; maxBytes: number }): Promise<Page>
  session(id: SessionId): Promise<SessionRow | undefined>
  /** Sorted by id. */
  sessions(query: SessionQuery): Promise<readonly SessionRow[]>
  /** Does nothing about a session that does not exist; the claim is answered all the same. */
  remove(session: SessionId, settle?: ClaimKey & { readonly answer: StoredAnswer }): Promise<void>
  /** Claims a key for work that has no record; undefined when the claim was made, otherwise what holds the key. */
  claim(claim: Claim): Promise<Claimed | undefined>
  /** Reads what holds a key, if anything does. */
  claimed(key: ClaimKey): Promise<Claimed | undefined>
  /** Answers an open claim; an answered or unknown one stays as it is. */
  settle(key: ClaimKey, answer: StoredAnswer): Promise<void>
  /** Forgets an open claim, so that its key may be used again. */
  release(key: ClaimKey): Promise<void>
  /**
   * Forgets answers that were given more than `olderThanMs` milliseconds ago, and open claims of that age that an earlier
   * server left behind.
   */
  expireClaims(olderThanMs: number): Promise<void>
  health(): JournalHealth
}
