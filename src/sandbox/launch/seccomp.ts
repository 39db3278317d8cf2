// The system calls of a box as a classic BPF program: an allow list. Everything else answers EPERM.

type Table = Readonly<Record<string, number>>
type Architecture = {
  readonly audit: number
  /** Calls at and above it belong to another ABI of the same kernel (x32) and kill. */
  readonly foreignFrom?: number
  /** Allowed whatever the arguments. */
  readonly plain: Table
  /** Allowed with certain arguments; `readsLimits` only to read. */
  readonly special: Readonly<
    Record<'ioctl' | 'fcntl' | 'clone' | 'prctl' | 'tgkill' | 'clone3' | 'execveat' | 'prlimit64', number>
  >
}

const X64: Architecture = {
  audit: 0xc000_003e,
  foreignFrom: 0x4000_0000,
  plain: {
    read: 0,
    write: 1,
    close: 3,
    fstat: 5,
    poll: 7,
    lseek: 8,
    mmap: 9,
    mprotect: 10,
    munmap: 11,
    brk: 12,
    rt_sigaction: 13,
    rt_sigprocmask: 14,
    rt_sigreturn: 15,
    pread64: 17,
    readv: 19,
    writev: 20,
    access: 21,
    sched_yield: 24,
    mremap: 25,
    mincore: 27,
    madvise: 28,
    dup2: 33,
    nanosleep: 35,
    getpid: 39,
    exit: 60,
    uname: 63,
    getcwd: 79,
    readlink: 89,
    gettimeofday: 96,
    getrusage: 98,
    sysinfo: 99,
    getuid: 102,
    getgid: 104,
    geteuid: 107,
    getegid: 108,
    capget: 125,
    sigaltstack: 131,
    getpriority: 140,
    sched_getparam: 143,
    sched_getscheduler: 145,
    arch_prctl: 158,
    gettid: 186,
    time: 201,
    futex: 202,
    sched_getaffinity: 204,
    set_tid_address: 218,
    restart_syscall: 219,
    clock_gettime: 228,
    clock_getres: 229,
    clock_nanosleep: 230,
    exit_group: 231,
    epoll_wait: 232,
    epoll_ctl: 233,
    openat: 257,
    newfstatat: 262,
    set_robust_list: 273,
    epoll_pwait: 281,
    eventfd2: 290,
    epoll_create1: 291,
    dup3: 292,
    pipe2: 293,
    getrandom: 318,
    membarrier: 324,
    pkey_mprotect: 329,
    pkey_alloc: 330,
    pkey_free: 331,
    statx: 332,
    rseq: 334,
  },
  special: { ioctl: 16, fcntl: 72, clone: 56, prctl: 157, tgkill: 234, clone3: 435, execveat: 322, prlimit64: 302 },
}

const ARM64: Architecture = {
  audit: 0xc000_00b7,
  plain: {
    getcwd: 17,
    eventfd2: 19,
    epoll_create1: 20,
    epoll_ctl: 21,
    epoll_pwait: 22,
    dup3: 24,
    faccessat: 48,
    openat: 56,
    close: 57,
    pipe2: 59,
    lseek: 62,
    read: 63,
    write: 64,
    readv: 65,
    writev: 66,
    pread64: 67,
    ppoll: 73,
    readlinkat: 78,
    newfstatat: 79,
    fstat: 80,
    capget: 90,
    exit: 93,
    exit_group: 94,
    set_tid_address: 96,
    futex: 98,
    set_robust_list: 99,
    nanosleep: 101,
    clock_gettime: 113,
    clock_getres: 114,
    clock_nanosleep: 115,
    sched_getscheduler: 120,
    sched_getparam: 121,
    sched_getaffinity: 123,
    sched_yield: 124,
    restart_syscall: 128,
    sigaltstack: 132,
    rt_sigaction: 134,
    rt_sigprocmask: 135,
    rt_sigreturn: 139,
    getpriority: 141,
    uname: 160,
    getrusage: 165,
    gettimeofday: 169,
    getpid: 172,
    getuid: 174,
    geteuid: 175,
    getgid: 176,
    getegid: 177,
    gettid: 178,
    sysinfo: 179,
    brk: 214,
    munmap: 215,
    mremap: 216,
    mmap: 222,
    mprotect: 226,
    mincore: 232,
    madvise: 233,
    getrandom: 278,
    membarrier: 283,
    pkey_mprotect: 288,
    pkey_alloc: 289,
    pkey_free: 290,
    statx: 291,
    rseq: 293,
  },
  special: { ioctl: 29, fcntl: 25, clone: 220, prctl: 167, tgkill: 131, clone3: 435, execveat: 281, prlimit64: 261 },
}

const LOAD_WORD = 0x20
const JUMP_EQUAL = 0x15
const JUMP_AT_LEAST = 0x35
const JUMP_ANY_BIT = 0x45
const RETURN = 0x06
const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
const EPERM = 0x0005_0001
const ENOTTY = 0x0005_0019
const ENOSYS = 0x0005_0026

const NUMBER_OFFSET = 0
const ARCHITECTURE_OFFSET = 4
const ARGUMENTS_OFFSET = 16

const CLONE_THREAD = 0x1_0000
const FIONBIO = 0x5421
const FIONCLEX = 0x5450
const FIOCLEX = 0x5451
/** F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: no locks, leases, owners or signals. */
const FCNTL_COMMANDS = [0, 1, 2, 3, 4, 1030]
const PR_SET_NAME = 15
const PR_SET_VMA = 0x5356_4d41
const AT_EMPTY_PATH = 0x1000

class Program {
  readonly #instructions: Buffer[] = []

  op(code: number, value: number, whenTrue = 0, whenFalse = 0): void {
    const instruction = Buffer.alloc(8)
    instruction.writeUInt16LE(code, 0)
    instruction[2] = whenTrue
    instruction[3] = whenFalse
    instruction.writeUInt32LE(value >>> 0, 4)
    this.#instructions.push(instruction)
  }

  answer(value: number): void {
    this.op(RETURN, value)
  }

  low(argument: number): void {
    this.op(LOAD_WORD, ARGUMENTS_OFFSET + 8 * argument)
  }

  high(argument: number): void {
    this.op(LOAD_WORD, ARGUMENTS_OFFSET + 8 * argument + 4)
  }

  /** Answers unless the loaded word has this value. */
  demand(value: number, otherwise: number): void {
    this.op(JUMP_EQUAL, value, 1, 0)
    this.answer(otherwise)
  }

  allowEach(values: readonly number[]): void {
    for (const value of values) {
      this.op(JUMP_EQUAL, value, 0, 1)
      this.answer(ALLOW)
    }
  }

  /** For one call number runs `checks`, which must answer; else goes on with the number still loaded. */
  when(number: number, checks: () => void): void {
    const at = this.#instructions.length
    this.op(JUMP_EQUAL, number)
    checks()
    const jump = this.#instructions[at]
    if (jump !== undefined) jump[3] = this.#instructions.length - at - 1
  }

  bytes(): Buffer {
    return Buffer.concat(this.#instructions)
  }
}

export type SeccompSubject = {
  readonly architecture: NodeJS.Architecture
  /** The only process that signals may go to: itself. */
  readonly pid: number
  /** The only descriptor that may be executed: Node, once, by the launcher. */
  readonly nodeFd: number
}

/** @throws Error on a processor whose table we do not have */
export function seccompProgram({ architecture, pid, nodeFd }: SeccompSubject): Buffer {
  const table = architecture === 'x64' ? X64 : architecture === 'arm64' ? ARM64 : undefined
  if (table === undefined)
    throw new Error(`Cannot make a seccomp filter for ${architecture}: only x64 and arm64 are known`)
  const { special } = table
  const program = new Program()
  program.op(LOAD_WORD, ARCHITECTURE_OFFSET)
  program.demand(table.audit, KILL_PROCESS)
  program.op(LOAD_WORD, NUMBER_OFFSET)
  if (table.foreignFrom !== undefined) {
    program.op(JUMP_AT_LEAST, table.foreignFrom, 0, 1)
    program.answer(KILL_PROCESS)
  }
  // The C library then falls back on clone, whose flags can be looked at.
  program.when(special.clone3, () => program.answer(ENOSYS))
  program.when(special.clone, () => {
    program.low(0)
    program.op(JUMP_ANY_BIT, CLONE_THREAD, 1, 0)
    program.answer(EPERM)
    program.answer(ALLOW)
  })
  program.when(special.tgkill, () => {
    program.low(0)
    program.demand(pid, EPERM)
    program.answer(ALLOW)
  })
  program.when(special.ioctl, () => {
    program.low(1)
    program.allowEach([FIONBIO, FIOCLEX, FIONCLEX])
    program.answer(ENOTTY)
  })
  program.when(special.fcntl, () => {
    program.low(1)
    program.allowEach(FCNTL_COMMANDS)
    program.answer(EPERM)
  })
  program.when(special.prctl, () => {
    program.low(0)
    program.allowEach([PR_SET_NAME, PR_SET_VMA])
    program.answer(EPERM)
  })
  // Reading limits is allowed: the new value must be the null pointer, in both halves.
  program.when(special.prlimit64, () => {
    program.low(2)
    program.demand(0, EPERM)
    program.high(2)
    program.demand(0, EPERM)
    program.answer(ALLOW)
  })
  program.when(special.execveat, () => {
    program.low(0)
    program.demand(nodeFd, EPERM)
    program.low(4)
    program.demand(AT_EMPTY_PATH, EPERM)
    program.answer(ALLOW)
  })
  program.allowEach(Object.values(table.plain))
  program.answer(EPERM)
  return program.bytes()
}
