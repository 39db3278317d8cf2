import { closeSync, openSync } from 'node:fs'
import { KIND } from '../../wire/files.ts'
import { refuse, Refusal } from './refusal.ts'
import * as system from './system.ts'

const { O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH } = system
const OURS = O_PATH | O_DIRECTORY | O_NOFOLLOW

/** Holds the data directory. The operator's own path may lead through links; below it nothing of ours may be one. */
export const openDataDirectory = (path: string): number => openSync(path, O_PATH | O_DIRECTORY | O_CLOEXEC)

/**
 * Opens a directory of ours beneath a held one; undefined when it is not there.
 *
 * @throws Refusal when something else, a link for example, stands in its place
 */
export function openOurs(parent: number, name: string): number | undefined {
  try {
    return system.openAt(parent, name, OURS)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'no-entry') return undefined
    throw error
  }
}

/** Opens a directory of ours, and makes it first when it is not there. @throws Refusal as `openOurs` */
export function makeOurs(parent: number, name: string): number {
  const found = openOurs(parent, name)
  if (found !== undefined) return found
  system.makeDirectoryAt(parent, name)
  return system.openAt(parent, name, OURS)
}

/** Runs `use` with each entry of an open directory, one page of names after another. */
export function forEachEntry(directory: number, use: (name: Buffer, kind: number) => void): void {
  const fd = system.openAt(directory, '.', system.O_RDONLY | O_DIRECTORY)
  try {
    for (let entries = system.readEntries(fd); entries !== undefined; entries = system.readEntries(fd)) {
      // `use` may list on its own: the names of this page are copied out of the shared memory.
      for (const entry of entries.map(({ name, kind }) => ({ name: Buffer.from(name), kind })))
        use(entry.name, entry.kind)
    }
  } finally {
    closeSync(fd)
  }
}

/** The kind of an entry, asked where the file system does not say it in its listings. */
export const kindAt = (directory: number, name: Buffer, kind: number): number =>
  kind === KIND.UNKNOWN ? (system.statAt(directory, name)?.kind ?? refuse('no-entry')) : kind
