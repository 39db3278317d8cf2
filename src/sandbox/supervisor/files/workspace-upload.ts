import { randomUUID } from 'node:crypto'
import { closeSync, fdatasync, write } from 'node:fs'
import { promisify } from 'node:util'
import { KIND } from '../../wire/files.ts'
import type { CheckedPath } from './path.ts'
import { refuse } from './refusal.ts'
import * as system from './system.ts'
import type { Workspace, Workspaces } from './workspaces.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_WRONLY } = system
const FILE_MODE = 0o600
const SLASH = 0x2f
const writeAsync = promisify(write)
const syncAsync = promisify(fdatasync)

/**
 * A file that is being written, out of everybody's sight: in a directory of ours on the file system of the workspaces.
 * Its quota is taken while it grows; what it replaces is given back when it takes its place.
 */
export class Upload {
  readonly #workspaces: Workspaces
  readonly #workspace: Workspace
  readonly #path: CheckedPath
  readonly #name = randomUUID()
  readonly #fd: number
  #size = 0
  #open = true

  /** @throws Refusal */
  constructor(workspaces: Workspaces, workspace: Workspace, path: CheckedPath) {
    this.#workspaces = workspaces
    this.#workspace = workspace
    this.#path = path
    const { quota } = workspace.tree
    quota.addEntry()
    try {
      this.#fd = system.openAt(workspaces.incoming, this.#name, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE)
    } catch (error) {
      quota.release(0, 1)
      throw error
    }
  }

  /** @throws Refusal `insufficient-space` */
  async write(data: Uint8Array): Promise<void> {
    this.#workspace.tree.quota.addBytes(data.length)
    this.#size += data.length
    for (let at = 0; at < data.length;) {
      const { bytesWritten } = await writeAsync(this.#fd, data, at, data.length - at, null)
      at += bytesWritten
    }
  }

  /** @throws Refusal; then nothing of the workspace has changed but directories on the way */
  async commit(): Promise<{ readonly size: number }> {
    try {
      await syncAsync(this.#fd)
      if (!this.#workspaces.isLive(this.#workspace)) refuse('no-entry')
      this.#place()
      this.#open = false
      closeSync(this.#fd)
      return { size: this.#size }
    } catch (error) {
      this.abort()
      throw error
    }
  }

  abort(): void {
    if (!this.#open) return
    this.#open = false
    this.#workspace.tree.quota.release(this.#size, 1)
    closeSync(this.#fd)
    system.unlinkAt(this.#workspaces.incoming, this.#name)
  }

  #place(): void {
    const parent = this.#openParent()
    const { name } = this.#path
    try {
      const replaced = system.statAt(parent, name)
      if (replaced?.kind === KIND.DIRECTORY) refuse('is-directory')
      system.renameAt({ fd: this.#workspaces.incoming, name: this.#name }, { fd: parent, name })
      if (replaced !== undefined) this.#workspace.tree.removed(replaced)
    } finally {
      closeSync(parent)
    }
  }

  /** Opens the directory that the file goes to; those that are missing on the way are made. */
  #openParent(): number {
    const { fd, tree } = this.#workspace
    const { parent } = this.#path
    if (parent === undefined) return system.openAt(fd, '.', system.O_PATH | O_DIRECTORY)
    for (let end = parent.indexOf(SLASH); ; end = parent.indexOf(SLASH, end + 1)) {
      this.#makeMissing(end < 0 ? parent : parent.subarray(0, end))
      if (end < 0) return tree.resolve(fd, parent, O_DIRECTORY)
    }
  }

  #makeMissing(path: Buffer): void {
    const { fd, tree } = this.#workspace
    const cut = path.lastIndexOf(SLASH)
    const above = cut < 0 ? fd : tree.resolve(fd, path.subarray(0, cut), O_DIRECTORY)
    try {
      const name = path.subarray(cut + 1)
      if (system.statAt(above, name) !== undefined) return
      tree.quota.addEntry()
      try {
        system.makeDirectoryAt(above, name)
      } catch (error) {
        tree.quota.release(0, 1)
        throw error
      }
    } finally {
      if (above !== fd) closeSync(above)
    }
  }
}
