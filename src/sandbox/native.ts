// The few system calls that Node lacks, through node:ffi. Launcher, supervisor and probe use them; a box never does.
import type * as Ffi from 'node:ffi'

/** System call numbers: [x86-64, aarch64]. */
const NUMBERS = {
  chdir: [80, 49],
  close_range: [436, 436],
  execveat: [322, 281],
  fallocate: [285, 47],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fcntl: [72, 25],
  ftruncate: [77, 46],
  getdents64: [217, 61],
  getppid: [110, 173],
  landlock_add_rule: [445, 445],
  landlock_create_ruleset: [444, 444],
  landlock_restrict_self: [446, 446],
  linkat: [265, 37],
  mkdirat: [258, 34],
  openat: [257, 56],
  openat2: [437, 437],
  ppoll: [271, 73],
  prctl: [157, 167],
  prlimit64: [302, 261],
  readlinkat: [267, 78],
  renameat: [264, 38],
  renameat2: [316, 276],
  setgroups: [116, 159],
  setresgid: [119, 149],
  setresuid: [117, 147],
  setrlimit: [160, 164],
  socketpair: [53, 199],
  statx: [332, 291],
  symlinkat: [266, 36],
  unlinkat: [263, 35],
  utimensat: [280, 88],
} as const satisfies Record<string, readonly [x64: number, arm64: number]>

export type SystemCall = keyof typeof NUMBERS
type Argument = number | bigint

const SYMBOLS = {
  syscall: { arguments: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64'], return: 'i64' },
  __errno_location: { arguments: [], return: 'pointer' },
} as const

type Library = {
  readonly ffi: typeof Ffi
  readonly functions: Ffi.DynamicLibraryResult<typeof SYMBOLS>['functions']
  readonly column: 0 | 1
}

let library: Library | undefined

/** The C library is opened at first use, so that importing this module is harmless on any system. */
function libc(): Library {
  if (library !== undefined) return library
  if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64'))
    throw new Error(
      `Cannot make system calls on ${process.platform} ${process.arch}: only Linux x64 and arm64 are known`,
    )
  const ffi = process.getBuiltinModule('node:ffi')
  const { functions } = ffi.dlopen(null, SYMBOLS)
  library = { ffi, functions, column: process.arch === 'x64' ? 0 : 1 }
  return library
}

/** Whether this process can make system calls of its own: Linux on a known processor, and a Node with `node:ffi`. */
export function canCallSystem(): boolean {
  try {
    return libc() !== undefined
  } catch {
    return false
  }
}

/** Address of a buffer that the caller keeps alive and unmoved for the length of one call. */
export const raw = (buffer: Buffer | Int32Array): bigint => libc().ffi.getRawPointer(buffer)

const pinned: (Buffer | Int32Array)[] = []

/** Address of a buffer that is never collected: for memory that the kernel, or another buffer, goes on pointing at. */
export function ptr(buffer: Buffer | Int32Array): bigint {
  pinned.push(buffer)
  return raw(buffer)
}

/** A NUL-terminated UTF-8 string; the caller has refused NUL inside. */
export const cstr = (text: string): Buffer => Buffer.from(`${text}\0`)

/**
 * Calls the kernel with at most five arguments.
 *
 * @returns the result, or minus errno.
 */
export function sys(name: SystemCall, ...parts: readonly Argument[]): number {
  const { ffi, functions, column } = libc()
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = parts
  const result = functions.syscall(BigInt(NUMBERS[name][column]), BigInt(a), BigInt(b), BigInt(c), BigInt(d), BigInt(e))
  return result >= 0n ? Number(result) : -ffi.getInt32(functions.__errno_location(), 0)
}

/** As `sys`, for calls that must work. @throws Error naming the call and errno */
export function must(name: SystemCall, ...parts: readonly Argument[]): number {
  const result = sys(name, ...parts)
  if (result < 0) throw new Error(`Cannot call ${name}: errno ${-result}`)
  return result
}

const AF_UNIX = 1
const SOCK_STREAM_CLOEXEC = 0o2000001

/** Two connected stream sockets, both close-on-exec and blocking. */
export function socketPair(): readonly [number, number] {
  const pair = new Int32Array(2)
  must('socketpair', AF_UNIX, SOCK_STREAM_CLOEXEC, 0, raw(pair))
  const [ours = -1, theirs = -1] = pair
  return [ours, theirs]
}
