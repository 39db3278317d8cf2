import { KIND } from '../../wire/files.ts'
import type { FileRequests } from './file-requests.ts'
import type { Facts } from './known.ts'

/** `.`, `..` and empty components: a path with them is another spelling, and not looked up by itself. */
const ROUNDABOUT = /(?:^|\/)\.{0,2}(?:\/|$)/

/**
 * Under which keys facts about objects beneath a directory are remembered (known.ts). Guests look at one file now by
 * handle and name, now by its whole path from a mount: both make the same key, unless a rename or removal may have given
 * the path another meaning.
 */
export class Location {
  readonly #path: string | undefined
  readonly #handle: number
  readonly #files: FileRequests
  readonly #moves: number

  private constructor(path: string | undefined, handle: number, files: FileRequests) {
    this.#path = path
    this.#handle = handle
    this.#files = files
    this.#moves = files.moves
  }

  static ofMount(mount: number, files: FileRequests): Location {
    return new Location(`${mount}:`, mount, files)
  }

  /** The key of the opened object itself. */
  get self(): string {
    return `#${this.#handle}`
  }

  get #prefix(): string {
    return this.#path !== undefined && this.#moves === this.#files.moves ? this.#path : this.self
  }

  /** The key of what `path` names, with or without following a link in its last place. */
  keyOf(path: string, follow: boolean): string {
    if (path === '.') return this.self
    return follow ? `${this.#prefix}/${path}` : `${this.#prefix}/${path}\0`
  }

  /** All questions that facts of `path` answer: not following what is no link is the same as following it. */
  keysOf(path: string, follow: boolean, facts: Facts): readonly string[] {
    const own = this.keyOf(path, follow)
    return follow || facts.kind === KIND.LINK ? [own] : [own, this.keyOf(path, true)]
  }

  /** Where something that was opened by `path` is. */
  child(path: string, handle: number): Location {
    const prefix = this.#prefix
    const known = prefix !== this.self && !ROUNDABOUT.test(path)
    return new Location(known ? `${prefix}/${path}` : undefined, handle, this.#files)
  }
}
