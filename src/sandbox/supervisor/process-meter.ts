import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

/** Ticks of /proc/PID/stat; the kernel's ABI fixes them at 100 a second on every processor that we run on. */
const MS_PER_TICK = 10
/** Fields of /proc/PID/stat counted from the one after the name. */
const USER_TICKS = 11
const SYSTEM_TICKS = 12
const NAME_END = ')'

const text = Buffer.allocUnsafe(1024)

/** CPU time of a whole process, read from outside: what the process says of itself is not trusted. */
export class ProcessMeter {
  readonly #fd: number | undefined

  constructor(pid: number) {
    try {
      this.#fd = openSync(`/proc/${pid}/stat`, 'r')
    } catch {
      // No /proc on this system (level none): nothing is metered.
    }
  }

  /** utime + stime of all threads so far, in steps of 10 ms; 0 when the process is gone. */
  cpuMs(): number {
    if (this.#fd === undefined) return 0
    try {
      const length = readSync(this.#fd, text, 0, text.length, 0)
      const fields = text
        .toString('latin1', text.lastIndexOf(NAME_END, length) + 2, length)
        .split(' ', SYSTEM_TICKS + 1)
      return (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) * MS_PER_TICK
    } catch {
      return 0
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
  }
}

/** Memory that would come free with the process; 0 when it is gone. */
export function privateBytes(pid: number): number {
  try {
    let sum = 0
    for (const [, kib] of readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1').matchAll(/^Private_\w+:\s+(\d+) kB/gm))
      sum += Number(kib) * 1024
    return sum
  } catch {
    return 0
  }
}

const PAGE_BYTES = 4096

/** Resident memory that is not shared with other processes, roughly and cheaply; 0 when the process is gone. */
export function residentBytes(pid: number): number {
  try {
    const [, resident = '0', shared = '0'] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')
    return (Number(resident) - Number(shared)) * PAGE_BYTES
  } catch {
    return 0
  }
}
