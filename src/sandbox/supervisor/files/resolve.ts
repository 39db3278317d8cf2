import { closeSync } from 'node:fs'
import { KIND } from '../../wire/files.ts'
import { codeOfErrno, ERRNO, refuse } from './refusal.ts'
import {
  AT_FDCWD,
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_PATH,
  openAt,
  openBeneath,
  readLinkAt,
  statOf,
} from './system.ts'

const SLASH = 0x2f
/** As the kernel. */
const MAX_LINKS = 40
/** A rename anywhere on the machine makes the kernel give up a path with `..` in it; then it is asked again. */
const RETRIES = 4

/**
 * Finds what a path names, never outside the directory it starts from, whatever links and renames happen meanwhile.
 *
 * @param path checked bytes (path.ts): relative, no NUL.
 * @param flags O_NOFOLLOW: do not follow a link in the last place. O_DIRECTORY: refuse anything else.
 * @returns an O_PATH descriptor, which the caller closes.
 * @throws Refusal
 */
export type Resolve = (directory: number, path: Buffer, flags: number) => number

/** The kernel resolves: `openat2` with RESOLVE_BENEATH, NO_MAGICLINKS, NO_XDEV. */
export const resolveByKernel: Resolve = (directory, path, flags) => {
  for (let attempt = 0; attempt < RETRIES; attempt++) {
    const result = openBeneath(directory, path, O_PATH | flags)
    if (result >= 0) return result
    if (result !== -ERRNO.EAGAIN) return refuse(codeOfErrno(-result))
  }
  return resolveByWalk(directory, path, flags)
}

function componentsOf(path: Buffer): Buffer[] {
  const components: Buffer[] = []
  for (let start = 0; start < path.length;) {
    const cut = path.indexOf(SLASH, start)
    const end = cut < 0 ? path.length : cut
    if (end > start) components.push(path.subarray(start, end))
    start = end + 1
  }
  return components.toReversed()
}

/** One walk: the descriptors from the start to where it stands. Only the first is not its own. */
class Walk {
  readonly #held: number[]
  readonly #device: bigint
  #links = 0

  constructor(directory: number) {
    this.#held = [directory]
    this.#device = statOf(directory).device
  }

  get #here(): number {
    return this.#held.at(-1) ?? refuse('io')
  }

  /** Goes to the end of `todo`, the components in reverse; afterwards the walk stands on what they name. */
  go(todo: Buffer[], followLast: boolean): void {
    for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
      const step = name.toString('latin1')
      if (step === '..') this.#up()
      else if (step !== '.') this.#into(name, todo, followLast)
    }
  }

  /** `..` goes back along the way that was come; the kernel is not asked where a directory is now. */
  #up(): void {
    if (this.#held.length === 1) refuse('not-permitted')
    this.#close(this.#held.pop())
  }

  #into(name: Buffer, todo: Buffer[], followLast: boolean): void {
    const fd = openAt(this.#here, name, O_PATH | O_NOFOLLOW)
    this.#held.push(fd)
    const { kind, device } = statOf(fd)
    if (device !== this.#device) refuse('not-permitted')
    if (kind === KIND.LINK && (followLast || todo.length > 0)) this.#expand(fd, todo)
    else if (kind !== KIND.DIRECTORY && todo.length > 0) refuse('not-directory')
  }

  #expand(link: number, todo: Buffer[]): void {
    if (++this.#links > MAX_LINKS) refuse('loop')
    const target = readLinkAt(link, '')
    if (target[0] === SLASH) refuse('not-permitted')
    this.#close(this.#held.pop())
    todo.push(...componentsOf(target))
    // A target that ends in a slash names a directory; the walk sees to that by one more step on the spot.
    if (target.at(-1) === SLASH) todo.unshift(Buffer.from('.'))
  }

  #close(fd: number | undefined): void {
    if (fd !== undefined) closeSync(fd)
  }

  /** A descriptor of the place that was reached, apart from the walk. */
  take(flags: number): number {
    if (this.#held.length === 1) return openAt(this.#here, '.', O_PATH | O_DIRECTORY)
    if ((flags & O_DIRECTORY) !== 0 && statOf(this.#here).kind !== KIND.DIRECTORY) refuse('not-directory')
    return this.#held.pop() ?? refuse('io')
  }

  [Symbol.dispose](): void {
    for (const fd of this.#held.slice(1)) closeSync(fd)
  }
}

/**
 * We resolve: one component per call, `O_NOFOLLOW` on a held descriptor, links expanded by us (sandbox.md F4). For
 * kernels before 5.6, and for containers that refuse `openat2`.
 */
export const resolveByWalk: Resolve = (directory, path, flags) => {
  const directoryOnly = (flags & O_DIRECTORY) !== 0 || path.at(-1) === SLASH
  using walk = new Walk(directory)
  walk.go(componentsOf(path), (flags & O_NOFOLLOW) === 0 || path.at(-1) === SLASH)
  return walk.take(directoryOnly ? O_DIRECTORY : 0)
}

/** The kernel's way where it is there. Asked once, by the caller: a supervisor keeps the answer. */
export function chooseResolve(): Resolve {
  const result = openBeneath(AT_FDCWD, '.', O_PATH | O_CLOEXEC)
  if (result < 0) return resolveByWalk
  closeSync(result)
  return resolveByKernel
}
