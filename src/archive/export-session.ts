import { createHash } from 'node:crypto'
import { BrainError } from '../kernel/errors.ts'
import type { SessionId } from '../kernel/ids.ts'
import type { SessionRow } from '../journal/journal.ts'
import { type Header, MAX_FILE_BYTES, MAX_LINE_BYTES, VERSION } from './session-file.ts'

/** A snapshot of a journal, as far as an export reads it. */
export type SessionSource = {
  session(id: SessionId): SessionRow | undefined
  records(id: SessionId): Iterable<string>
}

/**
 * A session as lines of text, each with its end; a server may write meanwhile. No record holds a credential.
 *
 * @throws BrainError `not_found`, `storage_unavailable`; `unsupported` when the session is too large for a file.
 */
export function* exportSession(source: SessionSource, id: SessionId): Generator<string> {
  const row = source.session(id)
  if (row === undefined) throw new BrainError('not_found', `Cannot export session "${id}": there is none of this id`)
  const hash = createHash('sha256')
  let bytes = 0
  const line = (text: string): string => {
    const length = Buffer.byteLength(text) + 1
    bytes += length
    if (length > MAX_LINE_BYTES || bytes > MAX_FILE_BYTES)
      throw new BrainError(
        'unsupported',
        `Cannot export session "${id}": a line is larger than ${MAX_LINE_BYTES} bytes, or all of them than ${MAX_FILE_BYTES}`,
      )
    hash.update(text).update('\n')
    return `${text}\n`
  }
  const header: Header = {
    format: 'brain-session',
    version: VERSION,
    session_id: id,
    tenant: row.tenant,
    status: row.status,
    last_sequence: row.lastSequence,
    labels: row.labels,
  }
  yield line(JSON.stringify(header))
  let records = 0
  for (const text of source.records(id)) {
    records++
    yield line(text)
  }
  if (records !== row.lastSequence)
    throw new BrainError(
      'storage_unavailable',
      `Cannot export session "${id}": the journal is damaged, it has ${records} of ${row.lastSequence} records; restore a backup`,
      { retryable: false },
    )
  yield `${JSON.stringify({ end: { records, sha256: hash.digest('hex') } })}\n`
}
