import { lstatSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { BrainError } from '../../kernel/errors.ts'
import type { SessionId } from '../../kernel/ids.ts'
import type { SessionRow } from '../journal.ts'
import { openForReading } from './open-database.ts'
import { integerOf, SESSION_COLUMNS, sessionOf, textOf, wireFormOf } from './row.ts'
import { explainFault } from './store-fault.ts'
import { requireOurFormat } from './store-format.ts'

/** Pages of one step of a copy; between steps it tells how far it is. */
const PAGES_PER_STEP = 1000
/** How long a foreign lock on the database is waited for. */
const BUSY_TIMEOUT_MS = 5000
/** What is told of damage at most. */
const MOST_FAULTS = 10

/** What a journal holds. */
export type JournalCount = { readonly sessions: number; readonly records: number }

/** A journal as it was when this was made, whatever a server writes meanwhile. */
export type JournalSnapshot = Disposable & {
  /**
   * Copies it to a file that is not there yet. `onProgress` is told pages.
   *
   * @throws BrainError `storage_unavailable`
   */
  copyTo(path: string, onProgress: (done: number, total: number) => void): Promise<void>
  /** Undefined when there is no such session. @throws BrainError `storage_unavailable` */
  session(id: SessionId): SessionRow | undefined
  /** Every record of a session as JSON text in its wire form. @throws BrainError `storage_unavailable` */
  records(id: SessionId): Iterable<string>
}

/**
 * Holds a snapshot of a journal. It needs no lock: a server goes on with reading and writing. As long as it is held the
 * server's write-ahead log cannot start over, and grows.
 *
 * @throws BrainError `storage_unavailable` when there is no journal of ours, or it cannot be read.
 */
export function openSnapshot(path: string): JournalSnapshot {
  const database = onJournal(path, 'read', () => {
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true)
      throw new Error('there is no such file; name the data directory of the server with --data-dir or BRAIN_DATA_DIR')
    const opened = openForReading({ path, busyTimeoutMs: BUSY_TIMEOUT_MS })
    try {
      requireOurFormat(opened)
      opened.exec('BEGIN')
      // The transaction begins with its first read.
      opened.prepare('SELECT 1 FROM sqlite_schema').get()
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  })
  return {
    async copyTo(target, onProgress) {
      // Within the open transaction no step sees another state, so no write of a server starts the copy over.
      await backup(database, target, {
        rate: PAGES_PER_STEP,
        progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
      }).catch((cause: unknown) => {
        throw unavailable(`copy the journal to ${JSON.stringify(target)}`, cause)
      })
    },
    session: (id) =>
      onJournal(path, 'read', () => {
        const row = database.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions s WHERE s.id = ?`).get(id)
        return row === undefined ? undefined : sessionOf(row)
      }),
    *records(id) {
      const rows = database.prepare(`
        SELECT id & 0xffffffff AS sequence, at, type, data, origin FROM records
        WHERE id BETWEEN (SELECT number << 32 FROM sessions WHERE id = ?1)
          AND (SELECT number << 32 | 0xffffffff FROM sessions WHERE id = ?1) ORDER BY id`)
      const found = rows.iterate(id)
      for (;;) {
        const next = onJournal(path, 'read', () => found.next())
        if (next.done === true) return
        yield onJournal(path, 'read', () => wireFormOf(next.value))
      }
    },
    [Symbol.dispose]: () => database.close(),
  }
}

/**
 * Reads a whole journal that no server uses, and counts what it holds.
 *
 * @throws BrainError `storage_unavailable` naming what is damaged: pages, indexes, sessions that miss records, records
 * that are not JSON.
 */
export function checkJournal(path: string): JournalCount {
  return onJournal(path, 'vouch for', () => {
    const database = new DatabaseSync(path)
    try {
      requireOurFormat(database)
      // The copy of a live journal says that it has a log; as a plain file it needs nothing beside it.
      database.exec('PRAGMA journal_mode = DELETE')
      const faults = [...pageFaults(database), ...recordFaults(database)]
      if (faults.length > 0) throw new Error(`it is damaged: ${faults.slice(0, MOST_FAULTS).join('; ')}`)
      const count = (table: string): number =>
        integerOf(database.prepare(`SELECT count(*) AS n FROM ${table}`).get() ?? {}, 'n')
      return { sessions: count('sessions'), records: count('records') }
    } finally {
      database.close()
    }
  })
}

const pageFaults = (database: DatabaseSync): string[] =>
  database
    .prepare(`PRAGMA integrity_check(${MOST_FAULTS})`)
    .all()
    .map((row) => String(row['integrity_check']).trim())
    .filter((text) => text !== 'ok')

function recordFaults(database: DatabaseSync): string[] {
  const lost = database.prepare(`
    SELECT s.id, s.last_sequence AS wanted, ifnull(r.found, 0) AS found FROM sessions s LEFT JOIN (
      SELECT id >> 32 AS number, count(*) AS found, max(id & 0xffffffff) AS last FROM records GROUP BY id >> 32
    ) r ON r.number = s.number
    WHERE s.last_sequence <> ifnull(r.last, 0) OR s.last_sequence <> ifnull(r.found, 0) LIMIT ${MOST_FAULTS}`)
  const garbled = database.prepare(`
    SELECT id & 0xffffffff AS sequence, id >> 32 AS number FROM records
    WHERE NOT json_valid(data) OR (origin IS NOT NULL AND NOT json_valid(origin)) LIMIT ${MOST_FAULTS}`)
  return [
    ...lost
      .all()
      .map(
        (row) => `session "${textOf(row, 'id')}" has ${integerOf(row, 'found')} of ${integerOf(row, 'wanted')} records`,
      ),
    ...garbled
      .all()
      .map((row) => `record ${integerOf(row, 'sequence')} of session number ${integerOf(row, 'number')} is not JSON`),
  ]
}

function onJournal<T>(path: string, action: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw unavailable(`${action} the journal ${JSON.stringify(path)}`, cause)
  }
}

const unavailable = (action: string, cause: unknown): BrainError =>
  new BrainError('storage_unavailable', `Cannot ${action}: ${explainFault(cause)}`, { cause, retryable: false })
