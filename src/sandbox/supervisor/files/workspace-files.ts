import { closeSync, openSync } from 'node:fs'
import { LIMITS } from '../../../contract/limits.ts'
import { BrainError } from '../../../kernel/errors.ts'
import type { FileEntry } from '../../sandbox.ts'
import { KIND } from '../../wire/files.ts'
import { FileDownload } from './file-download.ts'
import { checkPath, type CheckedPath } from './path.ts'
import { refuse, Refusal } from './refusal.ts'
import * as system from './system.ts'
import { listWorkspace } from './workspace-list.ts'
import { Upload } from './workspace-upload.ts'
import type { Workspace, Workspaces } from './workspaces.ts'

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY } = system

/** A file that is being read, in pieces. */
export type OpenedFile = {
  /** When it was opened; the pieces have so many bytes together, whatever becomes of the file. */
  readonly size: number
  /**
   * The next piece of at most `length` bytes; empty at the end.
   *
   * @throws BrainError `storage_unavailable` when the file became shorter meanwhile
   */
  read(length: number): Promise<Buffer>
  close(): void
}

/** A file that is being written: nobody sees it before `commit`. */
export type IncomingFile = {
  /** @throws BrainError `output_limit` when the workspace has no room left */
  write(data: Uint8Array): Promise<void>
  /** Puts the file in its place, over what was there. @throws BrainError */
  commit(): Promise<{ readonly size: number }>
  /** Forgets everything that was written. After the commit it does nothing. */
  abort(): void
}

type Use = { readonly workspace: Workspace; readonly path: string }

/** A path as the HTTP plane gives it: stricter than a guest's, whose `.`, `..` and doubled slashes have a meaning. */
function checkPublicPath(text: string): CheckedPath {
  const parts = text.split('/')
  if (!text.isWellFormed() || parts.some((part) => part === '' || part === '.' || part === '..')) refuse('invalid')
  return checkPath(Buffer.from(text))
}

/** Files of workspaces as the application sees them (contract A12), under the rules and quotas that guests have. */
export class WorkspaceStore {
  readonly #workspaces: Workspaces

  constructor(workspaces: Workspaces) {
    this.#workspaces = workspaces
  }

  /** Regular files, ordered by the UTF-16 code units of their paths. A workspace that is not there has none. */
  async list(name: string, query: { prefix: string; after: string; limit: number }): Promise<readonly FileEntry[]> {
    const workspace = this.#workspaces.find(name)
    if (workspace === undefined) return []
    try {
      return await listWorkspace(workspace, query)
    } finally {
      this.#workspaces.release(workspace)
    }
  }

  /** @throws BrainError `not_found`, `invalid_request` */
  open(name: string, path: string): OpenedFile {
    const workspace = this.#workspaces.find(name) ?? notFound(path)
    try {
      return this.#translate({ workspace, path }, () => {
        const fd = openForReading(workspace, checkPublicPath(path))
        return new FileDownload(this.#workspaces, workspace, fd)
      })
    } catch (error) {
      this.#workspaces.release(workspace)
      throw error
    }
  }

  /** Begins to write a file; missing directories on the way are made when it is complete. @throws BrainError */
  create(name: string, path: string): IncomingFile {
    const workspace = this.#workspaces.use(name)
    const use = { workspace, path }
    const release = once(() => this.#workspaces.release(workspace))
    try {
      const upload = this.#translate(use, () => new Upload(this.#workspaces, workspace, checkPublicPath(path)))
      return {
        write: (data) => this.#translateAsync(use, () => upload.write(data)),
        commit: () => this.#translateAsync(use, () => upload.commit()).finally(release),
        abort() {
          upload.abort()
          release()
        },
      }
    } catch (error) {
      release()
      throw error
    }
  }

  /** @throws BrainError `not_found`, `invalid_request` */
  remove(name: string, path: string): void {
    const workspace = this.#workspaces.find(name) ?? notFound(path)
    try {
      this.#translate({ workspace, path }, () => {
        const checked = checkPublicPath(path)
        inParent(workspace, checked, (parent) => {
          const facts = system.statAt(parent, checked.name) ?? refuse('no-entry')
          if (facts.kind === KIND.DIRECTORY) refuse('is-directory')
          system.unlinkAt(parent, checked.name)
          workspace.tree.removed(facts)
        })
      })
    } finally {
      this.#workspaces.release(workspace)
    }
  }

  /** @throws BrainError `invalid_request`, `internal` */
  destroy(name: string): Promise<void> {
    return this.#workspaces.destroy(name)
  }

  #translate<Result>(use: Use, run: () => Result): Result {
    try {
      return run()
    } catch (error) {
      throw this.#toBrainError(use, error)
    }
  }

  async #translateAsync<Result>(use: Use, run: () => Promise<Result>): Promise<Result> {
    try {
      return await run()
    } catch (error) {
      throw this.#toBrainError(use, error)
    }
  }

  #toBrainError({ workspace, path }: Use, error: unknown): unknown {
    if (!(error instanceof Refusal)) return error
    const shown = JSON.stringify(path.slice(0, 300))
    const { code } = error
    if (code === 'no-entry' || code === 'not-directory')
      return new BrainError('not_found', `Cannot find file ${shown}: there is none`)
    if (code !== 'insufficient-space')
      return new BrainError('invalid_request', `Cannot use path ${shown}: ${code}`, { cause: error })
    const { quota } = workspace.tree
    const name = quota.entries >= quota.limits.entries ? 'workspaceEntries' : 'workspaceBytes'
    const limit = `${this.#workspaces.limits[name]} ${LIMITS[name].unit} (${LIMITS[name].variable})`
    return new BrainError('output_limit', `Cannot write file ${shown}: the workspace is full: the limit is ${limit}`)
  }
}

const notFound = (path: string): never => {
  throw new BrainError('not_found', `Cannot find file ${JSON.stringify(path.slice(0, 300))}: there is none`)
}

function once(run: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    run()
  }
}

function inParent<Result>({ fd, tree }: Workspace, path: CheckedPath, use: (parent: number) => Result): Result {
  if (path.parent === undefined) return use(fd)
  const parent = tree.resolve(fd, path.parent, O_DIRECTORY)
  try {
    return use(parent)
  } finally {
    closeSync(parent)
  }
}

/** The order of the checks is that of guests: found, looked at, and only then opened. */
function openForReading({ fd, tree }: Workspace, path: CheckedPath): number {
  const found = tree.resolve(fd, path.bytes, 0)
  try {
    const { kind, links } = system.statOf(found)
    if (kind === KIND.DIRECTORY) refuse('is-directory')
    if (kind !== KIND.FILE || links > 1) refuse('not-permitted')
    return openSync(`/proc/self/fd/${found}`, O_RDONLY | O_NONBLOCK)
  } finally {
    closeSync(found)
  }
}
