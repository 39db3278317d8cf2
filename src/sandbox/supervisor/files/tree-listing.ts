import { closeSync } from 'node:fs'
import { FACTS } from '../../wire/files.ts'
import type { Listing, ListingPage } from './handle.ts'
import { isServable } from './path.ts'
import { type Entry, readEntries, statAt, writeFacts } from './system.ts'

/**
 * Lists a directory through a descriptor of its own: the kernel keeps the position, so that entries are neither repeated
 * nor lost when others are made or removed between two pages. Names that no path can express are left out (F19).
 */
export class TreeListing implements Listing {
  readonly #fd: number
  /** Names are read one step ahead, so that the last page says that it is the last. Facts are as old as their page. */
  #ahead: readonly Entry[] | undefined
  #started = false

  /** Takes over `fd`, a readable descriptor of the directory at its start. */
  constructor(fd: number) {
    this.#fd = fd
  }

  next(): ListingPage {
    if (!this.#started) this.#readAhead()
    const entries = this.#page(this.#ahead ?? [])
    this.#readAhead()
    return { entries, last: this.#ahead === undefined }
  }

  #readAhead(): void {
    this.#started = true
    const entries = readEntries(this.#fd)
    this.#ahead = entries
      ?.filter(({ name }) => isServable(name))
      .map(({ name, kind }) => ({ name: Buffer.from(name), kind }))
  }

  #page(entries: readonly Entry[]): Buffer {
    let size = 0
    for (const { name } of entries) size += FACTS.HEAD + name.length
    const page = Buffer.alloc(size)
    let at = 0
    for (const { name } of entries) {
      const facts = statAt(this.#fd, name)
      if (facts === undefined) continue // removed since
      writeFacts(page, at, facts)
      page.writeUInt16LE(name.length, at + FACTS.EXTRA)
      at += FACTS.HEAD
      page.set(name, at)
      at += name.length
    }
    return page.subarray(0, at)
  }

  close(): void {
    closeSync(this.#fd)
  }
}
