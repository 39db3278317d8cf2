import { randomUUID } from 'node:crypto'
import { closeSync } from 'node:fs'
import { rmdir, unlink } from 'node:fs/promises'
import { KIND } from '../../wire/files.ts'
import { forEachEntry, kindAt } from './data-directory.ts'
import { Refusal } from './refusal.ts'
import * as system from './system.ts'

/** One entry of a held directory, as a path for Node's own calls: they run outside this thread. */
const entryPath = (directory: number, name: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), name])

const hasCode = (error: unknown): error is Error & { readonly code: string } =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'

/**
 * Deletes trees. A tree disappears at once, by a rename into the trash; its entries are removed in the background.
 *
 * A journalling file system takes milliseconds for a removal when it is busy: those run in Node's threads.
 *
 * A guest can nest directories deeper than any path or stack reaches. So nothing recurses: directories that are found in
 * one are moved up into the trash, until each holds no directory.
 */
export class Trash {
  readonly #fd: number
  #work: Promise<void> = Promise.resolve()

  /** Takes over `fd`, the trash directory. What an earlier process left in it goes, too. */
  constructor(fd: number) {
    this.#fd = fd
    void this.#start()
  }

  /** Takes a directory or file away from where it is. Resolves when its space is free. @throws Refusal */
  discard(parent: number, name: string): Promise<void> {
    system.renameAt({ fd: parent, name }, { fd: this.#fd, name: randomUUID() })
    return this.#start()
  }

  /** Resolves when everything discarded so far is deleted. */
  get settled(): Promise<void> {
    return this.#work
  }

  #start(): Promise<void> {
    const work = this.#work.then(() => this.#empty())
    this.#work = work.catch(() => {}) // whoever discarded is told; the next one starts anew
    return work
  }

  /** Passes over the trash until nothing is left that can be removed. */
  async #empty(): Promise<void> {
    for (let stuck = 0, names = this.#names(); names.length > stuck; names = this.#names()) {
      stuck = 0
      for (const name of names) if (!(await this.#remove(name))) stuck++
    }
  }

  /** What is in the trash; nothing when it cannot be listed now, for want of descriptors. */
  #names(): Buffer[] {
    const names: Buffer[] = []
    try {
      forEachEntry(this.#fd, (name) => names.push(name))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
    return names
  }

  /** @returns whether the entry is gone; what cannot be removed, a mount point say, is left for the next start. */
  async #remove(name: Buffer): Promise<boolean> {
    try {
      if (system.statAt(this.#fd, name)?.kind === KIND.DIRECTORY) await this.#removeDirectory(name)
      else await unlink(entryPath(this.#fd, name))
      return true
    } catch (error) {
      if (error instanceof Refusal) return error.code === 'no-entry'
      if (hasCode(error)) return error.code === 'ENOENT'
      throw error
    }
  }

  async #removeDirectory(name: Buffer): Promise<void> {
    const fd = system.openAt(this.#fd, name, system.O_PATH | system.O_DIRECTORY | system.O_NOFOLLOW)
    try {
      const entries: { name: Buffer; kind: number }[] = []
      forEachEntry(fd, (entry, kind) => entries.push({ name: entry, kind }))
      for (const entry of entries) {
        if (kindAt(fd, entry.name, entry.kind) === KIND.DIRECTORY)
          system.renameAt({ fd, name: entry.name }, { fd: this.#fd, name: randomUUID() })
        else await unlink(entryPath(fd, entry.name))
      }
    } finally {
      closeSync(fd)
    }
    await rmdir(entryPath(this.#fd, name))
  }
}
