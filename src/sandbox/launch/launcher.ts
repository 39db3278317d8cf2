// Puts this process into its box and becomes Node: identity, death signal, limits, landlock, seccomp, execveat.
// Runs as a script (bundle.ts); its one argument is a LaunchOrder; fd 3 is the box's channel. Nothing comes back.
import { writeSync } from 'node:fs'
import { cstr, must, ptr, raw, sys } from '../native.ts'
import { makeRuleset, openPath } from './landlock.ts'
import { seccompProgram } from './seccomp.ts'

export type LaunchOrder = {
  /** Who must still be the parent after the death signal was set; 0 = it is in another process namespace. */
  readonly parent: number
  /** The Node of the box, and the shared objects that it needs. */
  readonly node: string
  readonly libraries: readonly string[]
  /** Identity of the box; 0 = keep ours (not root). */
  readonly uid: number
  /** The landlock ABI to use; 0 = none. */
  readonly abi: number
  readonly dataBytes: number
  readonly cpuSecs: number
  /** Arguments of the Node in the box. */
  readonly args: readonly string[]
}

const PR_SET_PDEATHSIG = 1
const PR_SET_SECCOMP = 22
const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_MODE_FILTER = 2
const SIGKILL = 9
const F_DUPFD = 0
const F_SETFD = 2
const CLOSE_RANGE_CLOEXEC = 4
const AT_EMPTY_PATH = 0x1000
const RLIMIT = { cpu: 0, fileSize: 1, data: 2, stack: 3, core: 4, files: 7, lockedMemory: 8 } as const
const STACK_BYTES = 8 * 1024 * 1024
const OPEN_FILES = 64

const CHANNEL = 3
const POLL_HANG_UP = 0x10

const EXIT_EXEC_FAILED = 97
const EXIT_ORPHAN = 98

function openIfThere(path: string): readonly number[] {
  try {
    return [openPath(path)]
  } catch {
    return []
  }
}

function pointers(texts: readonly string[]): bigint {
  const vector = Buffer.alloc(8 * (texts.length + 1))
  texts.forEach((text, i) => vector.writeBigUInt64LE(ptr(cstr(text)), i * 8))
  return ptr(vector)
}

function filterProgram(nodeFd: number): bigint {
  const instructions = seccompProgram({ architecture: process.arch, pid: process.pid, nodeFd })
  const header = Buffer.alloc(16)
  header.writeUInt16LE(instructions.length / 8, 0)
  header.writeBigUInt64LE(ptr(instructions), 8)
  return ptr(header)
}

function limit(resource: number, value: number): void {
  const both = Buffer.alloc(16)
  both.writeBigUInt64LE(BigInt(value), 0)
  both.writeBigUInt64LE(BigInt(value), 8)
  must('setrlimit', resource, ptr(both))
}

function setLimits(order: LaunchOrder): void {
  if (order.cpuSecs > 0) limit(RLIMIT.cpu, order.cpuSecs)
  limit(RLIMIT.fileSize, 0)
  limit(RLIMIT.data, order.dataBytes)
  limit(RLIMIT.stack, STACK_BYTES)
  limit(RLIMIT.core, 0)
  limit(RLIMIT.files, OPEN_FILES)
  limit(RLIMIT.lockedMemory, 0)
}

/**
 * Whether nobody waits for this box any more. In a namespace the parent says nothing: it is a bwrap that may have asked too
 * late for its own death signal. Whoever wants a box to end closes the other end of the channel before.
 */
function isOrphan(parent: number): boolean {
  if (parent !== 0) return sys('getppid') !== parent
  const poll = Buffer.alloc(8)
  poll.writeInt32LE(CHANNEL, 0)
  must('ppoll', raw(poll), 1, raw(Buffer.alloc(16)), 0)
  return (poll.readUInt16LE(6) & POLL_HANG_UP) !== 0
}

function makeWalls({ abi, libraries }: LaunchOrder, node: number): number | undefined {
  if (abi === 0) return undefined
  return makeRuleset(
    abi,
    [node, ...libraries.flatMap(openIfThere)],
    [...openIfThere('/etc/ld.so.cache'), ...openIfThere('/dev/null')],
  )
}

function launch(order: LaunchOrder): never {
  // Opened before the identity changes: a Node under a 0700 home works.
  const node = openPath(order.node)
  const ruleset = makeWalls(order, node)
  const argv = pointers(['node', ...order.args])
  const environment = pointers([])
  const empty = ptr(cstr(''))
  // A number that no box can make again under its limit: the filter lets a box execute this descriptor and no other.
  const executable = must('fcntl', node, F_DUPFD, OPEN_FILES)
  const filter = filterProgram(executable)
  process.chdir('/')
  if (order.uid !== 0) {
    must('setgroups', 0, 0)
    must('setresgid', order.uid, order.uid, order.uid)
    must('setresuid', order.uid, order.uid, order.uid)
  }
  // After the last change of identity, which clears it.
  must('prctl', PR_SET_PDEATHSIG, SIGKILL)
  if (isOrphan(order.parent)) process.exit(EXIT_ORPHAN)
  setLimits(order)
  must('prctl', PR_SET_NO_NEW_PRIVS, 1)
  if (ruleset !== undefined) must('landlock_restrict_self', ruleset, 0)
  for (const fd of [0, 1, 2, CHANNEL]) must('fcntl', fd, F_SETFD, 0) // Node marks what it inherits close-on-exec
  must('close_range', 4, 0xffff_ffff, CLOSE_RANGE_CLOEXEC)
  must('prctl', PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter)
  const result = sys('execveat', executable, empty, argv, environment, AT_EMPTY_PATH)
  writeSync(2, `Cannot execute Node in the box: errno ${-result}\n`)
  process.exit(EXIT_EXEC_FAILED)
}

launch(JSON.parse(process.argv[1] ?? '') as LaunchOrder)
