import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const CHUNK_BYTES = 1024 * 1024
const PRIVATE_DIRECTORY = 0o700

export type CopiedFiles = { files: number; bytes: number }

export type CopyOptions = {
  readonly signal: AbortSignal
  readonly onFile: (copied: Readonly<CopiedFiles>) => void
  /** Whether an entry at the top of the tree is taken. */
  readonly takes: (name: string) => boolean
}

/**
 * Copies a tree while others change it: what goes away meanwhile is left out, links are copied as links, and nothing
 * outside the tree is ever read, whatever is put in the place of a directory or file. Every file is synced.
 */
export async function copyTree(from: string, to: string, options: CopyOptions): Promise<CopiedFiles> {
  const copied: CopiedFiles = { files: 0, bytes: 0 }
  const top = await openOr(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  if (top === undefined) return copied
  await copyDirectory({ from, held: top }, to, { ...options, copied, isTop: true })
  return copied
}

type Walk = CopyOptions & { readonly copied: CopiedFiles; readonly isTop: boolean }

type OpenDirectory = { readonly from: string; readonly held: FileHandle }

async function copyDirectory({ from, held: directory }: OpenDirectory, to: string, walk: Walk): Promise<void> {
  await using held = directory
  await mkdir(to, { mode: PRIVATE_DIRECTORY })
  // Through the descriptor: a directory that somebody moves or replaces by a link stays the one that was opened.
  const place = process.platform === 'linux' ? `/proc/self/fd/${held.fd}` : from
  for (const name of await readdir(place)) {
    walk.signal.throwIfAborted()
    if (!walk.isTop || walk.takes(name)) await copyEntry(join(place, name), join(to, name), { ...walk, isTop: false })
  }
  await syncDirectory(to)
}

async function copyEntry(from: string, to: string, walk: Walk): Promise<void> {
  const found = await lstat(from).catch(whenGone)
  if (found?.isSymbolicLink() === true) {
    const target = await readlink(from, 'buffer').catch(whenGone)
    if (target !== undefined) await symlink(target, to)
  } else if (found?.isDirectory() === true) {
    const held = await openOr(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    if (held !== undefined) await copyDirectory({ from, held }, to, walk)
  } else if (found?.isFile() === true) await copyFile(from, to, walk)
}

async function copyFile(from: string, to: string, { signal, copied, onFile }: Walk): Promise<void> {
  const source = await openOr(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  if (source === undefined) return
  await using held = source
  const status: Stats = await held.stat()
  if (!status.isFile()) return
  await using target = await open(to, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, status.mode & 0o777)
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await held.read(chunk)
    if (bytesRead === 0) break
    await target.writeFile(chunk.subarray(0, bytesRead))
    copied.bytes += bytesRead
  }
  await target.utimes(status.atime, status.mtime)
  await target.sync()
  copied.files++
  onFile(copied)
}

export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, O_RDONLY | O_DIRECTORY)
  await directory.sync()
}

/** Undefined when it is gone, or is by now something else that must not be followed. */
const openOr = (path: string, flags: number): Promise<FileHandle | undefined> => open(path, flags).catch(whenGone)

const GONE: ReadonlySet<unknown> = new Set(['ENOENT', 'ELOOP', 'ENOTDIR'])

function whenGone(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && GONE.has(error.code)) return undefined
  throw error
}
