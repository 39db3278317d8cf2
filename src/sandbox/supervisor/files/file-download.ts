import { closeSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { BrainError } from '../../../kernel/errors.ts'
import { statOf } from './system.ts'
import type { OpenedFile } from './workspace-files.ts'
import type { Workspace, Workspaces } from './workspaces.ts'

const readAsync = promisify(read)

/**
 * A file on its way to the application. It counts as a handle of its tree, as a guest's does, and has the size that it
 * had when it was opened: whoever was told a size gets so many bytes, or an error.
 */
export class FileDownload implements OpenedFile {
  readonly size: number
  readonly #workspaces: Workspaces
  readonly #workspace: Workspace
  readonly #fd: number
  #at = 0
  #reading = 0
  #closed = false

  /** Takes over `fd`, a regular file of the workspace, and one use of the workspace. */
  constructor(workspaces: Workspaces, workspace: Workspace, fd: number) {
    this.#workspaces = workspaces
    this.#workspace = workspace
    this.#fd = fd
    const facts = statOf(fd)
    this.size = facts.size
    workspace.tree.opened(facts)
  }

  async read(length: number): Promise<Buffer> {
    const most = Math.min(length, this.size - this.#at)
    if (most === 0 || this.#closed) return Buffer.alloc(0)
    this.#reading++
    try {
      const { bytesRead, buffer } = await readAsync(this.#fd, Buffer.allocUnsafe(most), 0, most, this.#at)
      if (bytesRead === 0)
        throw new BrainError(
          'storage_unavailable',
          `Cannot read the file to its end: it was cut to ${this.#at} of ${this.size} bytes meanwhile; try again`,
        )
      this.#at += bytesRead
      return buffer.subarray(0, bytesRead)
    } finally {
      this.#reading--
      if (this.#closed) this.#letGo()
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#letGo()
  }

  /** Not under a read that still runs: the number of the descriptor may be another file's by then. */
  #letGo(): void {
    if (this.#reading > 0) return
    try {
      this.#workspace.tree.closing(statOf(this.#fd))
    } finally {
      closeSync(this.#fd)
      this.#workspaces.release(this.#workspace)
    }
  }
}
