import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-types'
import { FACTS, FILE_KINDS, FILE_OP, NO_HANDLE } from '../../wire/files.ts'
import type { FileRequests } from './file-requests.ts'
import { Facts } from './known.ts'
import type { Location } from './location.ts'

/** A libc asks for the identity of each entry while it lists, and again with the stat of its own. */
const LISTED = { stat: 1, identity: 2 } as const

export type DirectoryList = {
  next(): Wasi.DirectoryEntry | undefined
  /** Nothing more is read. */
  giveUp(): void
}

/** Lists a directory. What a page says of its entries answers the questions that follow it. */
export function listDirectory(files: FileRequests, handle: number, location: Location): DirectoryList {
  let listing = NO_HANDLE
  let last = false
  let entries: Wasi.DirectoryEntry[] = []
  let at = 0

  function readPage(): void {
    const reply = files.ask(FILE_OP.LIST, handle, { other: listing })
    listing = reply.readUInt32LE(FACTS.VALUE)
    last = reply.readUInt16LE(FACTS.EXTRA) === 1
    files.known.forget()
    entries = readEntries(Buffer.from(reply.subarray(FACTS.HEAD)), (name, facts) => {
      files.known.learn(location.keysOf(name, false, facts), facts, LISTED)
    })
    at = 0
  }

  return {
    next() {
      while (at === entries.length && !last) readPage()
      return entries[at++]
    },
    giveUp() {
      if (!last && listing !== NO_HANDLE) files.ask(FILE_OP.END_LIST, handle, { other: listing })
      last = true
    },
  }
}

function readEntries(page: Buffer, each: (name: string, facts: Facts) => void): Wasi.DirectoryEntry[] {
  const entries: Wasi.DirectoryEntry[] = []
  for (let at = 0; at < page.length;) {
    const facts = new Facts(page, at)
    const start = at + FACTS.HEAD
    at = start + page.readUInt16LE(at + FACTS.EXTRA)
    const name = page.toString('utf8', start, at)
    each(name, facts)
    entries.push({ type: FILE_KINDS[facts.kind] ?? 'unknown', name })
  }
  return entries
}
