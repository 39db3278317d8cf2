import { closeSync } from 'node:fs'
import { KIND } from '../../wire/files.ts'
import { forEachEntry, kindAt } from './data-directory.ts'
import { refuse } from './refusal.ts'
import * as system from './system.ts'

const DIRECTORY = system.O_PATH | system.O_DIRECTORY | system.O_NOFOLLOW

/** A directory on the way down: which one it is, and which of its directories are still to be counted. */
type Level = { readonly inode: bigint; readonly device: bigint; readonly pending: Buffer[] }

type Count = { bytes: number; entries: number }

function countDirectory(fd: number, count: Count): Level {
  const pending: Buffer[] = []
  forEachEntry(fd, (name, kind) => {
    count.entries++
    const known = kindAt(fd, name, kind)
    if (known === KIND.DIRECTORY) pending.push(name)
    else if (known === KIND.FILE) count.bytes += system.statAt(fd, name)?.size ?? 0
  })
  const { inode, device } = system.statOf(fd)
  return { inode, device, pending }
}

/** Goes up by `..`, and makes sure that it is where the walk came from. */
function openParent(fd: number, expected: Level): number {
  const parent = system.openAt(fd, '..', DIRECTORY)
  const { inode, device } = system.statOf(parent)
  if (inode === expected.inode && device === expected.device) return parent
  closeSync(parent)
  return refuse('busy')
}

/**
 * Counts a tree, however deep: one descriptor is held at a time, and nothing recurses. Links are not followed, other
 * file systems not entered.
 *
 * @throws Refusal `busy` when directories were moved from outside meanwhile
 */
export function countTree(root: number): Count {
  const count: Count = { bytes: 0, entries: 0 }
  let here = system.openAt(root, '.', DIRECTORY)
  try {
    const levels = [countDirectory(here, count)]
    for (let level = levels[0]; level !== undefined; level = levels.at(-1)) {
      const name = level.pending.pop()
      const above = name === undefined ? levels.at(-2) : level
      if (above === undefined) return count
      const next = name === undefined ? openParent(here, above) : system.openAt(here, name, DIRECTORY)
      if (name !== undefined && system.statOf(next).device !== level.device) {
        closeSync(next)
        continue
      }
      closeSync(here)
      here = next
      if (name === undefined) levels.pop()
      else levels.push(countDirectory(here, count))
    }
    return count
  } finally {
    closeSync(here)
  }
}
