import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { KIND, OPEN_BIT } from '../../wire/files.ts'
import type { Handle, Listing, OpenBits, OpenDirectory } from './handle.ts'
import { type CheckedPath, checkPath, endsInDots, wantsDirectory } from './path.ts'
import { refuse } from './refusal.ts'
import * as system from './system.ts'
import type { Tree } from './tree.ts'
import { TreeFile } from './tree-file.ts'
import { TreeListing } from './tree-listing.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDONLY, O_RDWR, O_WRONLY } = system
const FILE_MODE = 0o600
const SLASH = 0x2f
const MAX_LINKS = 40
/** A path may lead through 40 links: what they stand for together is walked on the thread that serves every box. */
const MAX_TARGET_BYTES = 1024

/** How a file is opened by OPEN's bits; nothing asked for means reading, as in POSIX. */
const accessOf = (bits: OpenBits): number => {
  if ((bits & OPEN_BIT.WRITE) === 0) return O_RDONLY
  return (bits & OPEN_BIT.READ) === 0 ? O_WRONLY : O_RDWR
}

/** A directory of a tree, held by descriptor: never by its path, which may mean something else by now (F3). */
export class TreeDirectory implements OpenDirectory {
  readonly type = 'directory'
  readonly #fd: number
  readonly #tree: Tree
  readonly #change: boolean

  /** Takes over `fd`, an O_PATH descriptor of a directory. `change`: whether the grant allows more than reading. */
  constructor(fd: number, tree: Tree, change: boolean) {
    this.#fd = fd
    this.#tree = tree
    this.#change = change
  }

  stat(): system.Facts {
    return system.statOf(this.#fd)
  }

  statAt(path: CheckedPath, follow: boolean): system.Facts {
    return this.#with(this.#tree.resolve(this.#fd, path.bytes, follow ? 0 : O_NOFOLLOW), system.statOf)
  }

  /**
   * The object is found first, without being opened; its kind and links are looked at; only then is it opened, by its
   * descriptor, and truncated. So a pipe or a device is never opened, and nothing outside is ever truncated (F5, F7).
   */
  open(path: CheckedPath, bits: OpenBits): Handle {
    if ((bits & (OPEN_BIT.CREATE | OPEN_BIT.TRUNCATE | OPEN_BIT.WRITE | OPEN_BIT.MUTATE)) !== 0) this.#mayChange()
    if ((bits & OPEN_BIT.CREATE) !== 0) {
      if ((bits & OPEN_BIT.DIRECTORY) !== 0) refuse('invalid')
      const made = this.#create(path, bits)
      if (made !== undefined) return made
    }
    const follow = (bits & OPEN_BIT.FOLLOW) !== 0
    const directoryOnly = (bits & OPEN_BIT.DIRECTORY) !== 0
    const flags = (follow ? 0 : O_NOFOLLOW) | (directoryOnly ? O_DIRECTORY : 0)
    const found = this.#tree.resolve(this.#fd, path.bytes, flags)
    try {
      const facts = system.statOf(found)
      if (facts.kind !== KIND.DIRECTORY) return this.#openFile(found, facts, bits)
      if ((bits & (OPEN_BIT.WRITE | OPEN_BIT.TRUNCATE)) !== 0) refuse('is-directory')
      return new TreeDirectory(system.openAt(found, '.', O_PATH | O_DIRECTORY), this.#tree, this.#change)
    } finally {
      closeSync(found)
    }
  }

  #openFile(found: number, facts: system.Facts, bits: OpenBits): Handle {
    if (facts.kind === KIND.LINK) refuse('loop')
    if (facts.kind !== KIND.FILE || facts.links > 1) refuse('not-permitted')
    const truncate = (bits & OPEN_BIT.TRUNCATE) !== 0
    const access = accessOf(truncate ? bits | OPEN_BIT.WRITE : bits)
    return this.#adopt(openSync(`/proc/self/fd/${found}`, access | O_NONBLOCK), bits)
  }

  /** Makes a handle of a descriptor of a regular file, or closes it. */
  #adopt(fd: number, bits: OpenBits): Handle {
    try {
      const facts = system.statOf(fd)
      if ((bits & OPEN_BIT.TRUNCATE) !== 0 && facts.size > 0) {
        ftruncateSync(fd, 0)
        this.#tree.quota.release(facts.size)
      }
      const write = (bits & OPEN_BIT.WRITE) !== 0
      const read = (bits & OPEN_BIT.READ) !== 0 || !write
      return new TreeFile(fd, facts, this.#tree, { read, write, change: this.#change })
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  /** Makes the file if it is not there; undefined when it is and may be. A link in its place is followed, beneath. */
  #create(path: CheckedPath, bits: OpenBits, links = 0): Handle | undefined {
    if (endsInDots(path)) return (bits & OPEN_BIT.EXCLUSIVE) === 0 ? undefined : refuse('exist')
    if (wantsDirectory(path)) refuse('is-directory')
    return this.#inParent(path, (parent) => {
      const there = system.statAt(parent, path.name)
      if (there === undefined) return this.#createAt(parent, path.name, bits)
      if ((bits & OPEN_BIT.EXCLUSIVE) !== 0) refuse('exist')
      const isFollowed = there.kind === KIND.LINK && (bits & OPEN_BIT.FOLLOW) !== 0
      return isFollowed ? this.#createBehindLink(parent, path, bits, links) : undefined
    })
  }

  #createAt(parent: number, name: Buffer, bits: OpenBits): Handle {
    const { quota } = this.#tree
    quota.addEntry()
    try {
      return this.#adopt(system.openAt(parent, name, accessOf(bits) | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE), bits)
    } catch (error) {
      quota.release(0, 1)
      throw error
    }
  }

  /** POSIX: creating through a link whose target is missing makes the target. */
  #createBehindLink(parent: number, path: CheckedPath, bits: OpenBits, links: number): Handle | undefined {
    if (links >= MAX_LINKS) refuse('loop')
    const target = system.readLinkAt(parent, path.name)
    if (target[0] === SLASH) refuse('not-permitted')
    const prefix = path.parent === undefined ? [] : [path.parent, Buffer.of(SLASH)]
    return this.#create(checkPath(Buffer.concat([...prefix, target])), bits, links + 1)
  }

  list(): Listing {
    return new TreeListing(system.openAt(this.#fd, '.', O_RDONLY | O_DIRECTORY))
  }

  makeDirectory(path: CheckedPath): void {
    this.#makeEntry(path, (parent) => system.makeDirectoryAt(parent, path.last))
  }

  symlink(target: Buffer, path: CheckedPath): void {
    if (target.length === 0) refuse('no-entry')
    if (target.length > MAX_TARGET_BYTES) refuse('name-too-long')
    if (target[0] === SLASH) refuse('not-permitted')
    if (target.includes(0)) refuse('invalid')
    this.#makeEntry(path, (parent) => system.symlinkAt(target, parent, path.last))
  }

  #makeEntry(path: CheckedPath, make: (parent: number) => void): void {
    this.#mayChange()
    if (endsInDots(path)) refuse('exist')
    this.#tree.quota.addEntry()
    try {
      this.#inParent(path, make)
    } catch (error) {
      this.#tree.quota.release(0, 1)
      throw error
    }
  }

  removeDirectory(path: CheckedPath): void {
    this.#removeEntry(path, (parent) => system.removeDirectoryAt(parent, path.last))
  }

  unlink(path: CheckedPath): void {
    this.#removeEntry(path, (parent, facts) => {
      if (facts.kind === KIND.DIRECTORY) refuse('is-directory')
      system.unlinkAt(parent, path.last)
    })
  }

  #removeEntry(path: CheckedPath, remove: (parent: number, facts: system.Facts) => void): void {
    this.#mayChange()
    if (endsInDots(path)) refuse('invalid')
    this.#inParent(path, (parent) => {
      const facts = system.statAt(parent, path.name) ?? refuse('no-entry')
      remove(parent, facts)
      this.#tree.removed(facts)
    })
  }

  rename(from: CheckedPath, directory: OpenDirectory, to: CheckedPath): void {
    this.#mayChange()
    if (!(directory instanceof TreeDirectory)) return refuse('read-only')
    directory.#mayChange()
    if (endsInDots(from) || endsInDots(to)) refuse('invalid')
    if (directory.#tree !== this.#tree) refuse('cross-device')
    this.#inParent(from, (source) =>
      directory.#inParent(to, (target) => {
        const moved = system.statAt(source, from.name)
        const replaced = system.statAt(target, to.name)
        system.renameAt({ fd: source, name: from.last }, { fd: target, name: to.last })
        // Two names of one object: the kernel does nothing.
        if (replaced !== undefined && replaced.inode !== moved?.inode) this.#tree.removed(replaced)
      }),
    )
  }

  readLink(path: CheckedPath): Buffer {
    const target = this.#inParent(path, (parent) => system.readLinkAt(parent, path.last))
    return target[0] === SLASH ? refuse('not-permitted') : target
  }

  setTimes(times: Buffer): void {
    this.#mayChange()
    system.setTimesAt(this.#fd, '.', times)
  }

  setTimesAt(path: CheckedPath, follow: boolean, times: Buffer): void {
    this.#mayChange()
    if (follow || endsInDots(path)) return this.#setTimesBehind(path, times)
    this.#inParent(path, (parent) => {
      const facts = system.statAt(parent, path.name) ?? refuse('no-entry')
      if (facts.kind === KIND.FILE && facts.links > 1) refuse('not-permitted')
      system.setTimesAt(parent, path.last, times)
    })
  }

  #setTimesBehind(path: CheckedPath, times: Buffer): void {
    this.#with(this.#tree.resolve(this.#fd, path.bytes, 0), (fd) => {
      const facts = system.statOf(fd)
      if (facts.kind === KIND.FILE && facts.links > 1) refuse('not-permitted')
      // An O_PATH descriptor cannot be given to futimens, its magic link can.
      system.setTimesBehind(`/proc/self/fd/${fd}`, times)
    })
  }

  close(): void {
    closeSync(this.#fd)
  }

  #mayChange(): void {
    if (!this.#change) refuse('read-only')
  }

  /** Runs `use` with the directory that holds the last component; that component is never followed here. */
  #inParent<Result>(path: CheckedPath, use: (parent: number) => Result): Result {
    if (path.parent === undefined) return use(this.#fd)
    return this.#with(this.#tree.resolve(this.#fd, path.parent, O_DIRECTORY), use)
  }

  #with<Result>(fd: number, use: (fd: number) => Result): Result {
    try {
      return use(fd)
    } finally {
      closeSync(fd)
    }
  }
}
