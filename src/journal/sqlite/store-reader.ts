import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ENVELOPE_BYTES } from '../record-text.ts'
import type { Claimed, ClaimKey, SessionRow } from '../journal.ts'
import type { Call, ReaderCalls, Reply, SessionsRequest, Slice, SliceRequest } from './protocol.ts'
import { claimedOf, integerOf, SESSION_COLUMNS, sessionOf, wireFormOf } from './row.ts'
import { DamageError, explainFault } from './store-fault.ts'
import type { Store } from './store-thread.ts'

type ReaderCall = Call<ReaderCalls>

const MAX_SEQUENCE = 0xffffffff
/** What one slice carries at most, if it has more than one record: so much is parsed in one go on the main thread. */
const SLICE_BYTES = 256 * 1024

/** Answers reads from a connection of its own. No transaction outlives a call, so none holds up a checkpoint. */
export class StoreReader implements Store<ReaderCalls> {
  readonly #database: DatabaseSync
  readonly #extent: StatementSync
  readonly #weights: StatementSync
  readonly #records: StatementSync
  readonly #session: StatementSync
  readonly #claim: StatementSync
  readonly #queries = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#extent = database.prepare('SELECT number, last_sequence FROM sessions WHERE id = ?')
    // Lengths alone: SQLite answers them without reading the overflow pages of large records.
    this.#weights = database.prepare(`
      SELECT id & 0xffffffff AS sequence,
        octet_length(data) + octet_length(type) + ifnull(octet_length(origin), 0) AS bytes
      FROM records WHERE id > (?1 << 32) | ?2 AND id <= (?1 << 32) | 0xffffffff ORDER BY id LIMIT ?3`)
    this.#records = database.prepare(`
      SELECT id & 0xffffffff AS sequence, at, type, data, origin
      FROM records WHERE id > (?1 << 32) | ?2 AND id <= (?1 << 32) | ?3 ORDER BY id`)
    this.#session = database.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions s WHERE s.id = ?`)
    this.#claim = database.prepare('SELECT digest, answer FROM claims WHERE scope = ? AND key = ?')
  }

  answer(calls: readonly ReaderCall[]): readonly Reply[] {
    return calls.map((call) => {
      try {
        return { id: call.id, ok: true, value: this.#answer(call) }
      } catch (error) {
        const message = `Cannot read the journal: ${explainFault(error)}`
        return { id: call.id, ok: false, code: 'storage_unavailable', message }
      }
    })
  }

  close(): void {
    this.#database.close()
  }

  #answer(call: ReaderCall): ReaderCalls[ReaderCall['op']]['reply'] {
    switch (call.op) {
      case 'slice':
        return this.#slice(call.request)
      case 'session': {
        const row = this.#session.get(call.request.id)
        return row === undefined ? undefined : sessionOf(row)
      }
      case 'sessions':
        return this.#sessions(call.request)
      case 'claimed':
        return this.#claimed(call.request)
      default:
        return call satisfies never
    }
  }

  #slice(request: SliceRequest): Slice {
    const nothing: Slice = { text: '[]', count: 0, through: request.after, bytes: 0, more: false }
    const row = this.#extent.get(request.session)
    if (row === undefined || request.after >= MAX_SEQUENCE) return nothing
    const number = integerOf(row, 'number')
    const { isWhole, ...extent } = this.#measure(number, request, integerOf(row, 'last_sequence'))
    if (!isWhole) {
      // A session that was removed meanwhile has lost its records for another reason.
      if (this.#extent.get(request.session) === undefined) return nothing
      throw new DamageError(`session "${request.session}" has no record ${extent.through + 1}`)
    }
    const records = this.#records.all(number, request.after, extent.through).map(wireFormOf)
    return { text: `[${records.join(',')}]`, ...extent }
  }

  /**
   * How far a slice goes, and whether it is whole: dense, and not at its end before the session is. One record beyond
   * its end is weighed, to know whether the page may go on.
   */
  #measure(number: number, { after, limit, maxBytes, first }: SliceRequest, lastSequence: number) {
    let through = after
    let bytes = 0
    let count = 0
    for (const row of this.#weights.all(number, after, limit + 1)) {
      const total = bytes + ENVELOPE_BYTES + integerOf(row, 'bytes')
      if (total > maxBytes && !(first && count === 0)) return { through, count, bytes, more: false, isWhole: true }
      if (count === limit || (count > 0 && total > SLICE_BYTES))
        return { through, count, bytes, more: true, isWhole: true }
      if (integerOf(row, 'sequence') !== through + 1) return { through, count, bytes, more: false, isWhole: false }
      through++
      bytes = total
      count++
    }
    return { through, count, bytes, more: false, isWhole: through >= lastSequence }
  }

  #sessions({ tenant, status, label, hasOpenCalls, after, limit }: SessionsRequest): readonly SessionRow[] {
    const conditions = ['s.id > ?']
    const values: (string | number)[] = [after]
    let from = 'sessions s'
    if (tenant !== undefined) {
      conditions.push('s.tenant = ?')
      values.push(tenant)
    }
    if (status !== undefined) {
      if (status.length === 0) return []
      // As literals, out of a closed list: only so does SQLite see that its partial index applies.
      conditions.push(`s.status IN (${status.map((word) => `'${word}'`).join(', ')})`)
    }
    if (hasOpenCalls) conditions.push('s.number IN (SELECT id >> 32 FROM open_calls)')
    if (label !== undefined) {
      from = 'labels l CROSS JOIN sessions s ON s.id = l.id'
      conditions.push('l.key = ?', 'l.value = ?', 'l.id > ?')
      values.push(JSON.stringify(label.key), JSON.stringify(label.value), after)
      if (tenant !== undefined) {
        conditions.push('l.tenant = ?')
        values.push(tenant)
      }
    }
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY s.id LIMIT ?`
    return this.#query(sql)
      .all(...values, limit)
      .map(sessionOf)
  }

  /** There are few shapes of queries: each is prepared once. */
  #query(sql: string): StatementSync {
    const known = this.#queries.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql)
    this.#queries.set(sql, statement)
    return statement
  }

  #claimed({ scope, key }: ClaimKey): Claimed | undefined {
    const row = this.#claim.get(scope, JSON.stringify(key))
    return row === undefined ? undefined : claimedOf(row)
  }
}
