import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { BrainError } from '../../kernel/errors.ts'
import { explainFault, SQLITE_BUSY, sqliteCodeOf } from './store-fault.ts'

/** How long a server that was just killed may take to let go of its lock. */
const LOCK_WAIT_MS = 250

export type DataDirectory = Disposable & {
  /** The database file of the journal. */
  readonly journal: string
}

/**
 * Makes the data directory ours alone for as long as the answer lives, and the journal's place in it. The lock is an
 * open EXCLUSIVE transaction on a database of its own: the kernel lets go of it however the process ends, which no pid
 * file survives. What is ours is 0700 and 0600; the data directory itself may be a symlink of the operator's.
 *
 * @param waitMs how long one that is in use is waited for
 * @throws BrainError `storage_unavailable` naming the directory: in use, not writable, or a symlink where a file of
 * ours belongs.
 */
export function openDataDirectory(directory: string, { waitMs = LOCK_WAIT_MS } = {}): DataDirectory {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const root = realpathSync(directory)
    const lock = claimFile(root, 'lock.sqlite')
    const held = lockFile(lock, waitMs)
    try {
      const room = join(root, 'journal')
      claimDirectory(room)
      return { journal: claimFile(room, 'journal.sqlite'), [Symbol.dispose]: () => held.close() }
    } catch (error) {
      held.close()
      throw error
    }
  } catch (error) {
    throw new BrainError(
      'storage_unavailable',
      `Cannot open the data directory ${JSON.stringify(directory)}: ${explainFault(error)}`,
      { cause: error, retryable: false },
    )
  }
}

function lockFile(path: string, waitMs: number): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: waitMs })
  try {
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (cause) {
    database.close()
    throw new Error(reasonOf(cause), { cause })
  }
}

const reasonOf = (error: unknown): string =>
  sqliteCodeOf(error) === SQLITE_BUSY
    ? 'another server uses it; stop the other server or choose another BRAIN_DATA_DIR'
    : `its lock fails: ${explainFault(error)}`

function claimDirectory(path: string): void {
  const found = lookAt(path)
  if (found === undefined) mkdirSync(path, { mode: 0o700 })
  else if (!found.isDirectory()) throw new Error(`${JSON.stringify(path)} is ${nameOf(found)} and not a directory`)
}

/**
 * Makes the file where there is none, so that SQLite, which gives its companions the mode of the main file, never makes
 * one that others can read. An existing file is looked at but not opened: closing any descriptor of a file drops every
 * lock that this process holds on it.
 */
function claimFile(directory: string, name: string): string {
  const path = join(directory, name)
  for (const companion of ['-journal', '-wal', '-shm']) {
    const found = lookAt(path + companion)
    if (found !== undefined) requireFile(path + companion, found)
  }
  const found = lookAt(path)
  if (found !== undefined) {
    requireFile(path, found)
    // SQLite would open it for reading only, and then a lock on it keeps nobody out.
    accessSync(path, constants.R_OK | constants.W_OK)
    return path
  }
  closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW | constants.O_RDWR, 0o600))
  syncDirectory(directory)
  return path
}

const lookAt = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

function requireFile(path: string, found: Stats): void {
  if (!found.isFile()) throw new Error(`${JSON.stringify(path)} is ${nameOf(found)} and not a file`)
}

const nameOf = (found: Stats): string =>
  found.isSymbolicLink() ? 'a symlink' : found.isDirectory() ? 'a directory' : 'a special file'

/** A new name survives power loss only once its directory is synced. */
function syncDirectory(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY)
  fsyncSync(descriptor)
  closeSync(descriptor)
}
