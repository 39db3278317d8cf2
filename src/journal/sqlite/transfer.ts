import type { DatabaseSync } from 'node:sqlite'
import { BrainError } from '../../kernel/errors.ts'
import type { SessionStatus } from '../../contract/session-request.ts'
import type { RecordText } from '../record-text.ts'
import { openDataDirectory } from './data-directory.ts'
import { openForWriting } from './open-database.ts'
import { explainFault } from './store-fault.ts'
import { prepareWrites } from './writes.ts'

const BUSY_TIMEOUT_MS = 5000

/** What a session's row says. */
export type TransferredRow = {
  readonly id: string
  readonly tenant: string
  readonly labels: Readonly<Record<string, string>>
}

export type TransferredRecord = RecordText & { readonly at: number }

export type SessionWriter = {
  /** Adds the session's next record. */
  add(record: TransferredRecord): void
}

/**
 * Puts a session with its records into a data directory that no server uses, in one transaction: `write` adds all of its
 * records and answers its status; when it throws, nothing was written.
 *
 * @throws BrainError `conflict` when the session is there, `storage_unavailable`; what `write` throws.
 */
export async function insertSession(
  directory: string,
  row: TransferredRow,
  write: (writer: SessionWriter) => Promise<SessionStatus>,
): Promise<void> {
  using data = openDataDirectory(directory)
  const database = onStore(directory, () => openForWriting({ path: data.journal, busyTimeoutMs: BUSY_TIMEOUT_MS }))
  try {
    await inTransaction(database, directory, row, write)
  } finally {
    database.close()
  }
}

// eslint-disable-next-line max-params -- one transaction of its caller
async function inTransaction(
  database: DatabaseSync,
  directory: string,
  row: TransferredRow,
  write: (writer: SessionWriter) => Promise<SessionStatus>,
): Promise<void> {
  const writes = prepareWrites(database)
  try {
    const number = onStore(directory, () => {
      writes.begin.run()
      if (writes.findSession.get(row.id) !== undefined)
        throw new BrainError(
          'conflict',
          `Cannot import session "${row.id}": it is there, and nothing is overwritten; delete it first, or import into another data directory`,
        )
      const inserted = writes.insertSession.run(row.id, row.tenant, 'creating', JSON.stringify(row.labels))
      for (const [key, value] of Object.entries(row.labels))
        writes.insertLabel.run(row.tenant, JSON.stringify(key), JSON.stringify(value), row.id)
      return Number(inserted.lastInsertRowid)
    })
    let sequence = 0
    let at = 0
    const add = (record: TransferredRecord): void => {
      at = record.at
      sequence++
      onStore(directory, () => writes.insertRecord.run(number, sequence, at, record.type, record.data, record.origin))
    }
    const status = await write({ add })
    onStore(directory, () => {
      writes.advanceTo.run(sequence, at, status, number)
      writes.commit.run()
    })
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function onStore<T>(directory: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    if (cause instanceof BrainError) throw cause
    throw new BrainError(
      'storage_unavailable',
      `Cannot write to the journal of ${JSON.stringify(directory)}: ${explainFault(cause)}`,
      { cause, retryable: false },
    )
  }
}
