import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { BOOT } from '../../src/sandbox/launch/node-flags.ts'

const numbersIn = (directory: string): number[] =>
  readdirSync(directory)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

export const isAlive = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

const parentOf = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}

/** The living descendants of a process. */
export function descendants(root: number): number[] {
  const children = Map.groupBy(numbersIn('/proc'), parentOf)
  const found: number[] = []
  const visit = (pid: number) => {
    for (const child of children.get(pid) ?? []) {
      if (!isAlive(child)) continue
      found.push(child)
      visit(child)
    }
  }
  visit(root)
  return found
}

/** What the descriptors of a process point at. */
export const descriptorsOf = (pid: number): ReadonlyMap<number, string> =>
  new Map(numbersIn(`/proc/${pid}/fd`).map((fd) => [fd, readlinkSync(`/proc/${pid}/fd/${fd}`)]))

/** A line of /proc/PID/status. */
export const statusOf = (pid: number, field: string): string =>
  new RegExp(`^${field}:[ \\t]*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''

/** Processes that run a script of the sandbox and have lost their parent. */
export const orphans = (): number[] =>
  numbersIn('/proc').filter((pid) => {
    try {
      return parentOf(pid) === 1 && isAlive(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(BOOT)
    } catch {
      return false
    }
  })
