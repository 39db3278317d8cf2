import { messageOf } from '../../kernel/errors.ts'

/** Another connection holds the lock that is needed. */
export const SQLITE_BUSY = 5

const MAKE_WRITABLE = 'make the data directory and its files writable for the user of the server'
const MAKE_ROOM = 'make room on the disk of the data directory'
const RESTORE = 'the file is damaged: restore a backup'

/** Primary result codes of SQLite, and codes of the system, with what an operator can do about them. */
const REMEDIES: ReadonlyMap<number | string, string> = new Map<number | string, string>([
  [SQLITE_BUSY, 'end the other process that has the database open for writing'],
  [8, MAKE_WRITABLE], // SQLITE_READONLY
  [10, 'look for failures of the disk in the system log, and for free space'], // SQLITE_IOERR
  [11, RESTORE], // SQLITE_CORRUPT
  [13, MAKE_ROOM], // SQLITE_FULL
  [14, 'look at the owner and the mode of the data directory, and for free space'], // SQLITE_CANTOPEN
  [26, RESTORE], // SQLITE_NOTADB
  ['EACCES', MAKE_WRITABLE],
  ['EPERM', MAKE_WRITABLE],
  ['EROFS', MAKE_WRITABLE],
  ['ENOSPC', MAKE_ROOM],
  ['EDQUOT', MAKE_ROOM],
])

/** The primary result code of an error of SQLite; undefined when it is none. */
export function sqliteCodeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined
}

/** What went wrong with the store, and the remedy where there is one. */
export function explainFault(error: unknown): string {
  const code = sqliteCodeOf(error) ?? (error instanceof Error && 'code' in error ? String(error.code) : '')
  const remedy = REMEDIES.get(code)
  return remedy === undefined ? messageOf(error) : `${messageOf(error)}; ${remedy}`
}

/** The store holds something else than was written. */
export class DamageError extends Error {
  constructor(what: string) {
    super(`the journal is damaged: ${what}; restore a backup`)
  }
}
