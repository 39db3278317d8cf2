import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { BOOT } from '../../src/sandbox/launch/node-flags.ts'

/** The kernel gives the number of an ended process to a later one; the time it started tells the two apart. */
export type Process = { readonly pid: number; readonly started: string }

type Living = Process & { readonly parent: number }

const numbersIn = (directory: string): number[] =>
  readdirSync(directory)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** A process that runs; one that waits for its parent to take note of its end does not. */
function living(pid: number): Living | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state = '', parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return /[ZX]/.test(state) ? undefined : { pid, parent: Number(parent), started: rest[17] ?? '' }
  } catch {
    return undefined
  }
}

const everything = (): Living[] => numbersIn('/proc').flatMap((pid) => living(pid) ?? [])

export const isAlive = (pid: number): boolean => living(pid) !== undefined

/** Every living process below one, at this moment. */
export function descendantsOf(root: number): Process[] {
  const children = Map.groupBy(everything(), ({ parent }) => parent)
  const below = (pid: number): Living[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child.pid)])
  return below(root)
}

/** Those of the processes that still live. */
export const livingOf = (processes: readonly Process[]): Process[] =>
  processes.filter(({ pid, started }) => living(pid)?.started === started)

/** What the descriptors of a process point at. */
export const descriptorsOf = (pid: number): ReadonlyMap<number, string> =>
  new Map(numbersIn(`/proc/${pid}/fd`).map((fd) => [fd, readlinkSync(`/proc/${pid}/fd/${fd}`)]))

/** A line of /proc/PID/status. */
export const statusOf = (pid: number, field: string): string =>
  new RegExp(`^${field}:[ \\t]*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''

/** Processes that run a script of the sandbox and have lost their parent. */
export const orphans = (): Process[] =>
  everything().filter(({ pid, parent }) => {
    try {
      return parent === 1 && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(BOOT)
    } catch {
      return false
    }
  })
