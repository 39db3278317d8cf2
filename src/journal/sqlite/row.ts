import type { SQLOutputValue } from 'node:sqlite'
import { SESSION_STATUSES, type SessionStatus } from '../../contract/session-request.ts'
import type { SessionId, TenantId } from '../../kernel/ids.ts'
import type { Claimed, SessionRow, StoredAnswer } from '../journal.ts'
import { printRecord } from '../record-text.ts'
import { DamageError } from './store-fault.ts'

export type Row = Readonly<Record<string, SQLOutputValue>>

/** @throws DamageError when the store holds something else than we wrote. */
export function textOf(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new DamageError(`column ${column} holds no text`)
  return value
}

/** @throws DamageError when the store holds something else than we wrote. */
export function integerOf(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw new DamageError(`column ${column} holds no number`)
  return value
}

const isStatus = (text: string): text is SessionStatus => (SESSION_STATUSES as readonly string[]).includes(text)

/** @throws DamageError when the store holds something else than we wrote. */
export function statusOf(row: Row): SessionStatus {
  const status = textOf(row, 'status')
  if (!isStatus(status)) throw new DamageError(`a session has the status ${JSON.stringify(status)}`)
  return status
}

/** Reads the columns `digest` and `answer` of a claim. */
export function claimedOf(row: Row): Claimed {
  const digest = textOf(row, 'digest')
  if (row['answer'] === null) return { state: 'open', digest }
  return { state: 'answered', digest, answer: JSON.parse(textOf(row, 'answer')) as StoredAnswer }
}

/** What `sessionOf` reads, of a table `sessions s`. */
export const SESSION_COLUMNS = 's.id, s.tenant, s.status, s.last_sequence, s.labels'

/** Reads {@link SESSION_COLUMNS}. */
export function sessionOf(row: Row): SessionRow {
  return {
    id: textOf(row, 'id') as SessionId,
    tenant: textOf(row, 'tenant') as TenantId,
    status: statusOf(row),
    lastSequence: integerOf(row, 'last_sequence'),
    labels: JSON.parse(textOf(row, 'labels')) as Record<string, string>,
  }
}

/** Reads the columns `sequence`, `at`, `type`, `data` and `origin` of a record. */
export function wireFormOf(row: Row): string {
  const origin = row['origin'] === null ? null : textOf(row, 'origin')
  const text = { type: textOf(row, 'type'), data: textOf(row, 'data'), origin }
  return printRecord(text, integerOf(row, 'sequence'), integerOf(row, 'at'))
}
