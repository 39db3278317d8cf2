import { closeSync } from 'node:fs'
import type { FileEntry } from '../../sandbox.ts'
import { KIND, MAX_PATH_BYTES } from '../../wire/files.ts'
import { forEachEntry, kindAt } from './data-directory.ts'
import { isServable, MAX_COMPONENTS } from './path.ts'
import { Refusal } from './refusal.ts'
import * as system from './system.ts'
import type { Workspace } from './workspaces.ts'

export type ListQuery = { readonly prefix: string; readonly after: string; readonly limit: number }

/** A name to be visited; that of a directory ends in a slash, which gives it its place in the order of full paths. */
type Name = { readonly text: string; readonly isDirectory: boolean }

/** A directory on the way: its path with the slash, and what of it is still to come, last first. */
type Branch = { readonly path: string; readonly names: Name[] }

/** Runs `use` on what a path of the tree names; undefined when it is not there any more. */
function on<Result>({ fd, tree }: Workspace, path: string, use: (fd: number) => Result): Result | undefined {
  let found: number
  try {
    found = tree.resolve(fd, Buffer.from(path), system.O_NOFOLLOW)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
  try {
    return use(found)
  } finally {
    closeSync(found)
  }
}

function readNames(directory: number): Name[] {
  const names: Name[] = []
  forEachEntry(directory, (bytes, kind) => {
    const known = isServable(bytes) ? kindAt(directory, bytes, kind) : KIND.UNKNOWN
    if (known === KIND.DIRECTORY) names.push({ text: `${bytes.toString()}/`, isDirectory: true })
    if (known === KIND.FILE) names.push({ text: bytes.toString(), isDirectory: false })
  })
  return names.toSorted((a, b) => (a.text < b.text ? 1 : -1))
}

/** Whether a directory can hold a path of the answer. A path that is too long for a request is not one. */
function mayHold(path: string, { prefix, after }: ListQuery): boolean {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return false
  if (!path.startsWith(prefix) && !prefix.startsWith(path)) return false
  return path > after || after.startsWith(path)
}

const isAsked = (path: string, { prefix, after }: ListQuery): boolean =>
  path.startsWith(prefix) && path > after && Buffer.byteLength(path) <= MAX_PATH_BYTES

function entryOf(workspace: Workspace, path: string): FileEntry | undefined {
  return on(workspace, path, (fd) => {
    const { kind, size, mtimeSeconds, mtimeNanos } = system.statOf(fd)
    return kind === KIND.FILE ? { path, size, mtimeMs: mtimeSeconds * 1000 + Math.floor(mtimeNanos / 1e6) } : undefined
  })
}

/** Lets everybody else have their turn when a walk has taken this long: deadlines are kept on the same thread. */
const SLICE_MS = 5
/** A page ends when its paths take this much as JSON, also with fewer files than were asked for. */
const PAGE_BYTES = 256 * 1024

/**
 * Regular files in the order of their full paths, by UTF-16 code units; links and special files are left out. Directories
 * that hold nothing of the answer are not read, so that a page costs what it shows.
 */
export async function listWorkspace(workspace: Workspace, query: ListQuery): Promise<readonly FileEntry[]> {
  const files: FileEntry[] = []
  const branches: Branch[] = [{ path: '', names: readNames(workspace.fd) }]
  let bytes = 0
  let sliceEnd = performance.now() + SLICE_MS
  for (let branch = branches[0]; branch !== undefined && files.length < query.limit; branch = branches.at(-1)) {
    if (performance.now() > sliceEnd) {
      await new Promise((resolve) => setImmediate(resolve))
      sliceEnd = performance.now() + SLICE_MS
    }
    const name = branch.names.pop()
    if (name === undefined) {
      branches.pop()
      continue
    }
    const path = branch.path + name.text
    if (name.isDirectory) {
      if (branches.length < MAX_COMPONENTS && mayHold(path, query))
        branches.push({ path, names: on(workspace, path.slice(0, -1), readNames) ?? [] })
    } else if (isAsked(path, query)) {
      const file = entryOf(workspace, path)
      if (file === undefined) continue
      files.push(file)
      bytes += JSON.stringify(path).length
      if (bytes > PAGE_BYTES) break
    }
  }
  return files
}
