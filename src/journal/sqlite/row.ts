import type { SQLOutputValue } from 'node:sqlite'
import type { SessionStatus } from '../../contract/session-request.ts'
import type { Claimed, StoredAnswer } from '../journal.ts'
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

const STATUSES = {
  creating: true,
  idle: true,
  running: true,
  ending: true,
  ended: true,
  failed: true,
} as const satisfies Record<SessionStatus, true>

const isStatus = (text: string): text is SessionStatus => Object.hasOwn(STATUSES, text)

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
