import { lstat, mkdir, open, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { copyTree, syncDirectory } from './copy-tree.ts'

/** What a backup needs of the journal; `compose` has it. */
export type JournalCopier = {
  open(path: string): Disposable & {
    copyTo(path: string, onProgress: (done: number, total: number) => void): Promise<void>
  }
  check(path: string): { readonly sessions: number; readonly records: number }
}

export type BackupOptions = {
  readonly source: string
  /** Must not be there. */
  readonly target: string
  readonly journal: JournalCopier
  readonly onStep: (what: string) => void
  readonly onDetail: (what: string) => void
  readonly signal: AbortSignal
}

export type BackupReport = {
  readonly directory: string
  readonly sessions: number
  readonly records: number
  /** Files beside the journal, and their bytes. */
  readonly files: number
  readonly bytes: number
}

/** Where the journal lies in a data directory. */
const JOURNAL = 'journal/journal.sqlite'

/** The journal of a data directory. */
export const journalIn = (directory: string): string => join(directory, JOURNAL)

/**
 * What is copied beside the journal. The rest of a data directory is made anew by the next server (artifacts, scratch,
 * the lock) or is kept for a day only (call logs).
 */
const TREES = [
  { name: 'components', what: 'components' },
  { name: 'credentials', what: 'sealed credentials' },
  { name: 'hosts', what: 'registered hosts' },
  { name: 'native-workspaces', what: 'workspaces' },
] as const

/**
 * Copies a data directory, of a server that may be running, to a new one: its journal as it was at one moment, and what
 * was there at that moment or later of the files that sessions need. The target appears whole, checked and on the
 * disk, or not at all.
 *
 * @throws BrainError `conflict` when the target is there, `storage_unavailable` when something cannot be read or
 * written, or the journal is damaged; the signal's reason once it is aborted.
 */
export async function backupDataDirectory(options: BackupOptions): Promise<BackupReport> {
  const source = await sourceOf(options.source)
  const target = await targetOf(options.target, source)
  const partial = `${target}.partial`
  await makePartial(partial)
  try {
    const report = await fill({ ...options, source }, partial)
    await rename(partial, target)
    await syncDirectory(dirname(target))
    return { directory: target, ...report }
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    // What was stopped fails in many places, and for one reason.
    options.signal.throwIfAborted()
    if (error instanceof BrainError) throw error
    throw refusal(options.target, messageOf(error), error)
  }
}

async function fill(
  { source, journal, onStep, onDetail, signal }: BackupOptions,
  partial: string,
): Promise<Omit<BackupReport, 'directory'>> {
  onStep('Copying the journal')
  const copy = join(partial, JOURNAL)
  await mkdir(dirname(copy), { mode: 0o700 })
  // Made beforehand: SQLite would make it with the mode of the umask.
  await (await open(copy, 'wx', 0o600)).close()
  // First, so that whatever its sessions name was there before it, and is copied after it.
  {
    using snapshot = journal.open(join(source, JOURNAL))
    await snapshot.copyTo(copy, (done, total) => {
      signal.throwIfAborted()
      onDetail(`${done} of ${total} pages`)
    })
  }
  signal.throwIfAborted()
  onStep('Checking the copy')
  const counted = journal.check(copy)
  await syncFile(copy)
  await syncDirectory(dirname(copy))
  let [files, bytes] = [0, 0]
  for (const { name, what } of TREES) {
    onStep(`Copying ${what}`)
    const onFile = (copied: { readonly files: number }): void => onDetail(`${copied.files} files`)
    // What begins with a dot is an upload that is not complete.
    const takes = (entry: string): boolean => !entry.startsWith('.')
    const copied = await copyTree(join(source, name), join(partial, name), { signal, onFile, takes })
    files += copied.files
    bytes += copied.bytes
  }
  await syncDirectory(partial)
  return { ...counted, files, bytes }
}

async function sourceOf(path: string): Promise<string> {
  const isThere = await lstat(join(path, JOURNAL)).then(
    (found) => found.isFile(),
    () => false,
  )
  if (isThere) return realpath(path)
  throw new BrainError(
    'not_found',
    `Cannot back up ${JSON.stringify(path)}: there is no ${JOURNAL} in it; name the data directory of the server with --data-dir or BRAIN_DATA_DIR`,
  )
}

async function targetOf(path: string, source: string): Promise<string> {
  const parent = await realpath(dirname(resolve(path))).catch((cause: unknown) => {
    throw refusal(path, messageOf(cause), cause)
  })
  const target = join(parent, basename(resolve(path)))
  if (`${target}${sep}`.startsWith(`${source}${sep}`))
    throw refusal(path, 'it lies in the data directory itself; choose a place outside of it')
  const found = await lstat(target).catch(() => undefined)
  if (found !== undefined)
    throw new BrainError(
      'conflict',
      `Cannot write the backup ${JSON.stringify(path)}: it is there, and nothing is overwritten; choose a name that is not in use`,
    )
  return target
}

async function makePartial(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch((cause: unknown) => {
    const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    if (!isThere) throw refusal(path, messageOf(cause), cause)
    throw new BrainError(
      'conflict',
      `Cannot write the backup ${JSON.stringify(path)}: another backup is being written there, or one was killed; remove it if none is running`,
      { cause },
    )
  })
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  await file.sync()
}

const refusal = (path: string, reason: string, cause?: unknown): BrainError =>
  new BrainError('storage_unavailable', `Cannot write the backup ${JSON.stringify(path)}: ${reason}`, {
    cause,
    retryable: false,
  })
