import { readFile, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_AGAIN_MS = 200
/** Twice the same work is better than none: whoever holds the lock may be somebody else's process by now. */
const PATIENCE_MS = 180_000

/**
 * Does a piece of work in one process at a time: a build costs all processors, and others want what it makes.
 *
 * @param lock a file that says who is at it; one that a killed process left counts for nothing
 * @throws what the work throws; the reason of the signal, while it waits
 */
export async function oneAtATime<T>(lock: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const until = Date.now() + PATIENCE_MS
  while (!(await taken(lock)) && Date.now() < until) {
    const owner = Number(await readFile(lock, 'utf8').catch(() => ''))
    if (owner > 0 && !isAlive(owner)) await rm(lock, { force: true })
    else await sleep(LOOK_AGAIN_MS)
    signal?.throwIfAborted()
  }
  try {
    return await work()
  } finally {
    await rm(lock, { force: true })
  }
}

const taken = (lock: string): Promise<boolean> =>
  writeFile(lock, String(process.pid), { flag: 'wx' }).then(
    () => true,
    () => false,
  )

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
