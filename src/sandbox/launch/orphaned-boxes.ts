import { readdirSync, readFileSync } from 'node:fs'
import { BOOT } from './node-flags.ts'

/**
 * Processes of bubblewrap that wait for one of theirs which is gone: where that was killed within the millisecond before
 * it had told them to die with it, they wait for ever. No box lives without its parent, so none of these is one.
 */
export function orphanedBoxes(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter(isOrphan)
}

function isOrphan(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (parent !== '1') return false
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return /(?:^|\/)bwrap$/.test(words[0] ?? '') && words.includes(BOOT)
  } catch {
    return false // it has ended meanwhile
  }
}

/** Ends them, those of servers before this one too. What belongs to somebody else stays. */
export function endOrphanedBoxes(): void {
  for (const pid of orphanedBoxes()) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended, or is another user's.
    }
  }
}
