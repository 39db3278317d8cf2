import { describe, expect, it } from 'vitest'
import { seccompProgram } from '../../../src/sandbox/launch/seccomp.ts'

const ALLOW = 0x7fff_0000
const KILL = 0x8000_0000
const errno = (number: number) => 0x0005_0000 + number
const EPERM = errno(1)

type Call = { readonly audit: number; readonly nr: number; readonly args?: readonly bigint[] }

/** Runs classic BPF as the kernel does, for the instructions that are used. */
function run(program: Buffer, { audit, nr, args = [] }: Call): number {
  const data = Buffer.alloc(64)
  data.writeInt32LE(nr, 0)
  data.writeUInt32LE(audit, 4)
  args.forEach((value, i) => data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * i))
  let loaded = 0
  for (let at = 0; at * 8 < program.length; at++) {
    const code = program.readUInt16LE(at * 8)
    const whenTrue = program[at * 8 + 2]!
    const whenFalse = program[at * 8 + 3]!
    const value = program.readUInt32LE(at * 8 + 4)
    if (code === 0x20) loaded = data.readUInt32LE(value)
    else if (code === 0x06) return value
    else if (code === 0x15) at += loaded === value ? whenTrue : whenFalse
    else if (code === 0x35) at += loaded >= value ? whenTrue : whenFalse
    else if (code === 0x45) at += (loaded & value) !== 0 ? whenTrue : whenFalse
    else throw new Error(`instruction ${code}`)
  }
  throw new Error('ran off the end')
}

const PID = 4711
const NODE = 9
const machines = [
  {
    architecture: 'x64' as const,
    audit: 0xc000_003e,
    allowed: { read: 0, write: 1, mmap: 9, futex: 202, exit_group: 231, epoll_wait: 232, openat: 257, statx: 332 },
    denied: {
      socket: 41,
      connect: 42,
      fork: 57,
      execve: 59,
      kill: 62,
      unlink: 87,
      ptrace: 101,
      mount: 165,
      io_uring_setup: 425,
      pidfd_open: 434,
      bpf: 321,
      process_vm_readv: 310,
      memfd_create: 319,
      userfaultfd: 323,
      perf_event_open: 298,
      keyctl: 250,
      setns: 308,
      unshare: 272,
      open_by_handle_at: 304,
      socketpair: 53,
      getppid: 110,
      pwrite64: 18,
      sendmsg: 46,
    },
    special: { ioctl: 16, fcntl: 72, clone: 56, prctl: 157, tgkill: 234, execveat: 322, prlimit64: 302, clone3: 435 },
  },
  {
    architecture: 'arm64' as const,
    audit: 0xc000_00b7,
    allowed: { read: 63, write: 64, mmap: 222, futex: 98, exit_group: 94, epoll_pwait: 22, openat: 56, statx: 291 },
    denied: {
      socket: 198,
      connect: 203,
      execve: 221,
      kill: 129,
      unlinkat: 35,
      ptrace: 117,
      mount: 40,
      io_uring_setup: 425,
      pidfd_open: 434,
      bpf: 280,
      process_vm_readv: 270,
      memfd_create: 279,
      userfaultfd: 282,
      perf_event_open: 241,
      keyctl: 219,
      setns: 268,
      unshare: 97,
      open_by_handle_at: 265,
      socketpair: 199,
      getppid: 173,
      pwrite64: 68,
      sendmsg: 211,
    },
    special: { ioctl: 29, fcntl: 25, clone: 220, prctl: 167, tgkill: 131, execveat: 281, prlimit64: 261, clone3: 435 },
  },
]

describe.each(machines)('seccompProgram() on $architecture', ({ architecture, audit, allowed, denied, special }) => {
  const program = seccompProgram({ architecture, pid: PID, nodeFd: NODE })
  const ask = (nr: number, ...args: bigint[]) => run(program, { audit, nr, args })

  it('allows what Node needs', () => {
    for (const [name, nr] of Object.entries(allowed)) expect([name, ask(nr)]).toEqual([name, ALLOW])
  })

  it('denies everything else: an allow list', () => {
    for (const [name, nr] of Object.entries(denied)) expect([name, ask(nr)]).toEqual([name, EPERM])
    const open = Array.from({ length: 600 }, (_, nr) => nr).filter((nr) => ask(nr) === ALLOW)
    expect(open.length).toBeLessThan(80)
  })

  it('kills calls of another ABI', () => {
    expect(run(program, { audit: 0x4000_0003, nr: 1 })).toBe(KILL)
    if (architecture === 'x64') expect(ask(0x4000_0001)).toBe(KILL)
  })

  it('makes threads, and no processes', () => {
    expect(ask(special.clone, 0x3d0f00n)).toBe(ALLOW)
    expect(ask(special.clone, 17n)).toBe(EPERM)
    expect(ask(special.clone3)).toBe(errno(38))
  })

  it('signals itself only', () => {
    expect(ask(special.tgkill, BigInt(PID), BigInt(PID), 6n)).toBe(ALLOW)
    expect(ask(special.tgkill, 1n, 1n, 9n)).toBe(EPERM)
  })

  it('reads limits and does not set them', () => {
    expect(ask(special.prlimit64, 0n, 7n, 0n, 1n)).toBe(ALLOW)
    expect(ask(special.prlimit64, 0n, 7n, 1n, 0n)).toBe(EPERM)
    expect(ask(special.prlimit64, 0n, 7n, 1n << 32n, 0n)).toBe(EPERM)
  })

  it('executes only the descriptor of Node', () => {
    expect(ask(special.execveat, BigInt(NODE), 1n, 1n, 1n, 0x1000n)).toBe(ALLOW)
    expect(ask(special.execveat, 3n, 1n, 1n, 1n, 0x1000n)).toBe(EPERM)
    expect(ask(special.execveat, BigInt(NODE), 1n, 1n, 1n, 0n)).toBe(EPERM)
  })

  it('allows fcntl to duplicate and to read and set flags, and nothing else', () => {
    const allowed = Array.from({ length: 2048 }, (_, command) => command).filter(
      (command) => ask(special.fcntl, 3n, BigInt(command)) === ALLOW,
    )
    expect(allowed).toEqual([0, 1, 2, 3, 4, 1030])
    expect(ask(special.fcntl, 3n, 8n)).toBe(EPERM)
  })

  it('allows few codes of prctl and ioctl', () => {
    expect([ask(special.prctl, 15n), ask(special.prctl, 4n), ask(special.prctl, 22n)]).toEqual([ALLOW, EPERM, EPERM])
    expect([ask(special.ioctl, 0n, 0x5421n), ask(special.ioctl, 0n, 0x5412n)]).toEqual([ALLOW, errno(25)])
  })
})

it('seccompProgram() throws on a processor without a table', () => {
  expect(() => seccompProgram({ architecture: 's390x', pid: 1, nodeFd: 4 })).toThrow(/s390x/)
})
