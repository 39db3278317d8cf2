import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

/** Ticks of /proc/PID/stat; the kernel's ABI fixes them at 100 a second on every processor that we run on. */
const MS_PER_TICK = 10
/** Fields of /proc/PID/stat counted from the one after the name. */
const USER_TICKS = 11
const SYSTEM_TICKS = 12
const NAME_END = ')'

const text = Buffer.allocUnsafe(1024)

/** utime + stime of a line of /proc/PID/stat, in milliseconds; undefined for what is no such line. */
export function cpuMsIn(stat: string): number | undefined {
  // The name may hold anything, brackets and blanks included.
  const fields = stat.slice(stat.lastIndexOf(NAME_END) + 2).split(' ', SYSTEM_TICKS + 1)
  const ticks = Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])
  return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined
}

/** CPU time of a whole process, read from outside: what the process says of itself is not trusted. */
export class ProcessMeter {
  readonly #fd: number | undefined
  #last = 0

  constructor(pid: number) {
    try {
      this.#fd = openSync(`/proc/${pid}/stat`, 'r')
    } catch {
      // No /proc on this system (level none): nothing is metered.
    }
  }

  /** CPU time of all threads so far, in steps of 10 ms; what it was last when the process is gone or cannot be read. */
  cpuMs(): number {
    if (this.#fd === undefined) return 0
    try {
      const length = readSync(this.#fd, text, 0, text.length, 0)
      this.#last = cpuMsIn(text.toString('latin1', 0, length)) ?? this.#last
    } catch {
      // Gone.
    }
    return this.#last
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
