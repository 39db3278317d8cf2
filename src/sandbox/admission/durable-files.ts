import { randomBytes } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BrainError, messageOf } from '../../kernel/errors.ts'

const PRIVATE_FILE = 0o600
const PRIVATE_DIRECTORY = 0o700
/** Everything unfinished or given up lies in a directory of this name, which is emptied at every start. */
const STAGING = '.incoming'

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/**
 * Turns failures of the file system into the error that callers are told.
 *
 * @throws BrainError `storage_unavailable`
 */
export async function onStorage<T>(action: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof BrainError) throw cause
    throw new BrainError('storage_unavailable', `Cannot ${action}: ${codeOf(cause) ?? messageOf(cause)}`, { cause })
  }
}

/** Writes a file that must not exist yet, and waits until it is on the disk. */
export async function writeDurably(path: string, bytes: Uint8Array | string): Promise<void> {
  const file = await open(path, 'wx', PRIVATE_FILE) // exclusive creation follows no link
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Waits until a file, or the entries of a directory, are on the disk. */
export async function sync(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/**
 * Makes a directory, or takes the one that is there.
 *
 * @throws Error when something else, a link for example, stands in its place.
 */
export async function ensureDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: PRIVATE_DIRECTORY })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    if (!(await lstat(path)).isDirectory()) throw new Error(`"${path}" is not a directory`, { cause: error })
  }
}

/** Names in a directory; none when it does not exist. */
export async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** A directory whose entries appear and vanish whole: they are made, and thrown away, beside it under another name. */
export class AtomicDirectory {
  readonly path: string
  readonly #staging: string

  private constructor(path: string) {
    this.path = path
    this.#staging = join(path, STAGING)
  }

  /** Makes it if need be, and sweeps what an earlier process left unfinished. */
  static async open(path: string): Promise<AtomicDirectory> {
    const directory = new AtomicDirectory(path)
    await ensureDirectory(path)
    await sync(dirname(path))
    await ensureDirectory(directory.#staging)
    for (const name of await namesIn(directory.#staging)) await directory.discard(join(directory.#staging, name))
    return directory
  }

  /** A new private directory, to be filled and then given to {@link place} or {@link discard}. */
  async stage(): Promise<string> {
    const path = this.#newName()
    await mkdir(path, { mode: PRIVATE_DIRECTORY })
    return path
  }

  /** Removes a staged directory; it may be gone. */
  async discard(staged: string): Promise<void> {
    await rm(staged, { recursive: true, force: true })
  }

  /** Gives a staged directory, whose files are on the disk, its name; replaces what had it. Durable on return. */
  async place(staged: string, name: string): Promise<void> {
    await sync(staged)
    await this.take(name)
    await rename(staged, join(this.path, name))
    await sync(this.path)
  }

  /** Removes an entry; durable on return. @returns whether it was there. */
  async take(name: string): Promise<boolean> {
    const away = this.#newName()
    try {
      await rename(join(this.path, name), away)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false
      throw error
    }
    await sync(this.path)
    await this.discard(away)
    return true
  }

  /** Names of entries, staging left out. */
  async names(): Promise<readonly string[]> {
    return (await namesIn(this.path)).filter((name) => name !== STAGING)
  }

  #newName(): string {
    return join(this.#staging, randomBytes(12).toString('hex'))
  }
}
