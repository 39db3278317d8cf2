import { closeSync, ftruncateSync, readSync, writeSync } from 'node:fs'
import { MAX_DATA_BYTES } from '../../wire/files.ts'
import type { OpenFile } from './handle.ts'
import { refuse } from './refusal.ts'
import { type Facts, setTimes, statOf } from './system.ts'
import type { Tree } from './tree.ts'

/** For all reads: each is answered before the next begins. */
const shared = Buffer.allocUnsafeSlow(MAX_DATA_BYTES)

/** What one descriptor may do. `change`: the grant behind it lets files change at all. */
export type FileRights = { readonly read: boolean; readonly write: boolean; readonly change: boolean }

/** Room that is kept for what one descriptor writes next. */
const CREDIT_BYTES = 1024 * 1024

/** A regular file of a tree, held by a descriptor that was checked to be one. */
export class TreeFile implements OpenFile {
  readonly type = 'file'
  readonly #fd: number
  readonly #tree: Tree
  readonly #rights: FileRights
  /** Of the quota, for this descriptor alone. */
  #reserved = 0

  /** Takes over `fd`, whose facts the caller has just read. */
  constructor(fd: number, facts: Facts, tree: Tree, rights: FileRights) {
    this.#fd = fd
    this.#tree = tree
    this.#rights = rights
    tree.opened(facts)
  }

  stat(): Facts {
    return statOf(this.#fd)
  }

  read(offset: number, length: number): Buffer {
    if (!this.#rights.read) refuse('bad-descriptor')
    return shared.subarray(0, readSync(this.#fd, shared, 0, length, offset))
  }

  write(offset: number, data: Buffer): number {
    if (!this.#rights.write) refuse('bad-descriptor')
    return this.#put(this.stat().size, offset, data)
  }

  /** At the end as it is now: two appenders never overwrite each other. */
  append(data: Buffer): number {
    if (!this.#rights.write) refuse('bad-descriptor')
    const { size } = this.stat()
    return this.#put(size, size, data)
  }

  #put(size: number, offset: number, data: Buffer): number {
    if (data.length === 0) return 0
    const growthBy = (count: number) => (count === 0 ? 0 : Math.max(0, offset + count - size))
    const growth = growthBy(data.length)
    this.#unreserve(Math.min(growth, this.#reserved))
    this.#tree.quota.addBytes(growth)
    let written = 0
    try {
      written = writeSync(this.#fd, data, 0, data.length, offset)
    } finally {
      this.#tree.quota.release(growth - growthBy(written))
    }
    return written
  }

  credit(): number {
    const missing = CREDIT_BYTES - this.#reserved
    if (missing > 0 && this.#tree.quota.reserve(missing)) this.#reserved = CREDIT_BYTES
    return this.#reserved
  }

  #unreserve(count: number): void {
    this.#reserved -= count
    this.#tree.quota.unreserve(count)
  }

  setSize(size: number): void {
    if (!this.#rights.write) refuse('invalid')
    const before = this.stat().size
    this.#tree.quota.addBytes(Math.max(0, size - before))
    try {
      ftruncateSync(this.#fd, size)
    } catch (error) {
      this.#tree.quota.release(Math.max(0, size - before))
      throw error
    }
    this.#tree.quota.release(Math.max(0, before - size))
  }

  setTimes(times: Buffer): void {
    if (!this.#rights.change) refuse('read-only')
    setTimes(this.#fd, times)
  }

  /**
   * Done without the disk: it would stall the files of every box, for a directory that promises to survive a restart of
   * Brain (the page cache does) and no more.
   */
  sync(): void {}

  close(): void {
    this.#unreserve(this.#reserved)
    try {
      this.#tree.closing(this.stat())
    } finally {
      closeSync(this.#fd)
    }
  }
}
