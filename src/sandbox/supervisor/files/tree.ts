import { KIND } from '../../wire/files.ts'
import { type Quota } from './quota.ts'
import type { Resolve } from './resolve.ts'
import type { Facts } from './system.ts'

type OpenObject = { handles: number; unlinked: boolean }

/** A real directory tree with its quota: a workspace, or the scratch of one invocation. */
export class Tree {
  readonly quota: Quota
  readonly resolve: Resolve
  readonly #open = new Map<bigint, OpenObject>()

  constructor(quota: Quota, resolve: Resolve) {
    this.quota = quota
    this.resolve = resolve
  }

  /** A file got one more handle. */
  opened(facts: Facts): void {
    const object = this.#open.get(facts.inode)
    if (object === undefined) this.#open.set(facts.inode, { handles: 1, unlinked: false })
    else object.handles++
  }

  /** A handle of a file is about to be closed; with the last one of an unlinked file its space is free. */
  closing(facts: Facts): void {
    const object = this.#open.get(facts.inode)
    if (object === undefined || --object.handles > 0) return
    this.#open.delete(facts.inode)
    if (object.unlinked) this.quota.release(facts.size, 1)
  }

  /**
   * An entry was removed. A file that is still held keeps its place in the quota until its last handle is closed: it
   * keeps its place on the disk, too, and could otherwise grow uncounted.
   */
  removed(facts: Facts): void {
    const object = facts.kind === KIND.FILE ? this.#open.get(facts.inode) : undefined
    if (object === undefined) this.quota.release(facts.kind === KIND.FILE ? facts.size : 0, 1)
    else object.unlinked = true
  }
}
