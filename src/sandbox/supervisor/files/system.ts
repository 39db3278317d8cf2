// The system calls of the broker, each on a held descriptor and one name or path. Path and result memory is shared by
// all calls: the supervisor has one thread, and a call is over when its function returns.
import { hash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { ptr, sys } from '../../native.ts'
import { FACTS, KIND, MAX_PATH_BYTES } from '../../wire/files.ts'
import { codeOfErrno, refuse } from './refusal.ts'

export const O_PATH = 0o10000000
export const O_CLOEXEC = 0o2000000
export const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants
export const AT_FDCWD = -100

const AT_SYMLINK_NOFOLLOW = 0x100
const AT_REMOVEDIR = 0x200
const AT_EMPTY_PATH = 0x1000
const STATX_BASIC_STATS = 0x7ff
const RESOLVE_NO_XDEV = 1n
const RESOLVE_NO_MAGICLINKS = 2n
const RESOLVE_BENEATH = 8n
const HOW_BYTES = 24
/** Raw directory entries of one page: at most 61 KiB when each has its facts beside it. */
const DENTS_BYTES = 30 * 1024

type Memory = { readonly bytes: Buffer; readonly address: bigint }

function reserve(size: number): Memory {
  const bytes = Buffer.alloc(size)
  return { bytes, address: ptr(bytes) }
}

function reserveAll() {
  const how = reserve(HOW_BYTES)
  how.bytes.writeBigUInt64LE(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV, 16)
  return {
    how,
    one: reserve(MAX_PATH_BYTES + 2),
    two: reserve(MAX_PATH_BYTES + 2),
    stat: reserve(256),
    link: reserve(MAX_PATH_BYTES + 1),
    times: reserve(32),
    dents: reserve(DENTS_BYTES),
  }
}

let reserved: ReturnType<typeof reserveAll> | undefined
/** Made at first use: importing this module is harmless where there are no system calls. */
const memory = () => (reserved ??= reserveAll())

export type Path = Buffer | string

function place(slot: Memory, path: Path): bigint {
  const length = typeof path === 'string' ? Buffer.byteLength(path) : path.length
  if (length > MAX_PATH_BYTES) refuse('name-too-long')
  if (typeof path === 'string') slot.bytes.write(path)
  else slot.bytes.set(path)
  slot.bytes[length] = 0
  return slot.address
}

/** @throws Refusal */
const check = (result: number): number => (result < 0 ? refuse(codeOfErrno(-result)) : result)

/** `openat2` that never leaves `directory`. @returns a descriptor, or minus errno */
export function openBeneath(directory: number, path: Path, flags: number): number {
  const { how, one } = memory()
  how.bytes.writeBigUInt64LE(BigInt(flags | O_CLOEXEC), 0)
  return sys('openat2', directory, place(one, path), how.address, HOW_BYTES)
}

/** Opens one component, or a path of our own. @throws Refusal */
export const openAt = (directory: number, name: Path, flags: number, mode = 0): number =>
  check(sys('openat', directory, place(memory().one, name), flags | O_CLOEXEC, mode))

/** What the broker knows of an object. Link counts and change times stay here: guests never see them. */
export type Facts = {
  readonly kind: number
  readonly size: number
  readonly mtimeSeconds: number
  readonly mtimeNanos: number
  readonly atimeSeconds: number
  readonly atimeNanos: number
  readonly links: number
  readonly device: bigint
  readonly inode: bigint
}

const S_IFMT = 0xf000
/** `descriptor-type` by the type bits of a mode. */
const KINDS: Readonly<Record<number, number>> = {
  0x1000: 4,
  0x2000: 2,
  0x4000: KIND.DIRECTORY,
  0x6000: 1,
  0x8000: KIND.FILE,
  0xa000: KIND.LINK,
  0xc000: 7,
}

/** A secret of this process, then device and inode. */
const identity = Buffer.concat([randomBytes(16), Buffer.alloc(16)])

/** Eight bytes of a keyed digest: equal for the same object, and no inode number to be read out of them. */
function identityOf(facts: Facts): Buffer {
  identity.writeBigUInt64LE(facts.device, 16)
  identity.writeBigUInt64LE(facts.inode, 24)
  return hash('sha256', identity, 'buffer').subarray(0, 8)
}

const seconds = (bytes: Buffer, at: number): number => bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)

function readFacts(stat: Buffer): Facts {
  const kind = KINDS[stat.readUInt16LE(28) & S_IFMT] ?? KIND.UNKNOWN
  return {
    kind,
    size: kind === KIND.DIRECTORY ? 0 : stat.readUInt32LE(44) * 2 ** 32 + stat.readUInt32LE(40),
    mtimeSeconds: seconds(stat, 112),
    mtimeNanos: stat.readUInt32LE(120),
    atimeSeconds: seconds(stat, 64),
    atimeNanos: stat.readUInt32LE(72),
    links: stat.readUInt32LE(16),
    device: stat.readBigUInt64LE(136),
    inode: stat.readBigUInt64LE(32),
  }
}

/** Facts of an open object. @throws Refusal */
export function statOf(fd: number): Facts {
  const { one, stat } = memory()
  check(sys('statx', fd, place(one, ''), AT_EMPTY_PATH, STATX_BASIC_STATS, stat.address))
  return readFacts(stat.bytes)
}

/** Facts of what a name stands for; a link is not followed. Undefined when there is nothing. @throws Refusal */
export function statAt(directory: number, name: Path): Facts | undefined {
  const { one, stat } = memory()
  const result = sys('statx', directory, place(one, name), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, stat.address)
  if (result === -2) return undefined
  check(result)
  return readFacts(stat.bytes)
}

/** Writes facts as the wire has them (wire/files.ts). */
export function writeFacts(target: Buffer, at: number, facts: Facts): void {
  target[at + FACTS.KIND] = facts.kind
  target.writeDoubleLE(facts.size, at + FACTS.SIZE)
  target.writeDoubleLE(facts.mtimeSeconds, at + FACTS.MTIME_SECONDS)
  target.writeUInt32LE(facts.mtimeNanos, at + FACTS.MTIME_NANOS)
  target.writeUInt32LE(facts.atimeNanos, at + FACTS.ATIME_NANOS)
  target.writeDoubleLE(facts.atimeSeconds, at + FACTS.ATIME_SECONDS)
  target.set(identityOf(facts), at + FACTS.IDENTITY)
}

export const makeDirectoryAt = (directory: number, name: Path, mode = 0o700): void =>
  void check(sys('mkdirat', directory, place(memory().one, name), mode))

export const unlinkAt = (directory: number, name: Path): void =>
  void check(sys('unlinkat', directory, place(memory().one, name), 0))

export const removeDirectoryAt = (directory: number, name: Path): void =>
  void check(sys('unlinkat', directory, place(memory().one, name), AT_REMOVEDIR))

export function renameAt(from: { fd: number; name: Path }, to: { fd: number; name: Path }): void {
  const { one, two } = memory()
  check(sys('renameat', from.fd, place(one, from.name), to.fd, place(two, to.name)))
}

export function symlinkAt(target: Path, directory: number, name: Path): void {
  const { one, two } = memory()
  check(sys('symlinkat', place(one, target), directory, place(two, name)))
}

/** The target of a link; with an empty name, of the open link itself. @throws Refusal */
export function readLinkAt(directory: number, name: Path): Buffer {
  const { one, link } = memory()
  const length = check(sys('readlinkat', directory, place(one, name), link.address, link.bytes.length))
  if (length === link.bytes.length) refuse('name-too-long')
  return Buffer.from(link.bytes.subarray(0, length))
}

function placeTimes(times: Buffer): bigint {
  const slot = memory().times
  if (times.length !== slot.bytes.length) refuse('invalid')
  slot.bytes.set(times)
  return slot.address
}

/** Sets times as the kernel's two timespecs; a link is not followed. @throws Refusal */
export const setTimesAt = (directory: number, name: Path, times: Buffer): void =>
  void check(sys('utimensat', directory, place(memory().one, name), placeTimes(times), AT_SYMLINK_NOFOLLOW))

/** The same for what a path of our own leads to. @throws Refusal */
export const setTimesBehind = (path: string, times: Buffer): void =>
  void check(sys('utimensat', AT_FDCWD, place(memory().one, path), placeTimes(times), 0))

/** The same for an open file. @throws Refusal */
export const setTimes = (fd: number, times: Buffer): void => void check(sys('utimensat', fd, 0, placeTimes(times), 0))

const DENT = { RECORD_BYTES: 16, TYPE: 18, NAME: 19 }
const DOT = 0x2e
/** `descriptor-type` by `d_type`, which are the type bits of a mode. */
const kindOfType = (type: number): number => KINDS[type << 12] ?? KIND.UNKNOWN

/** A name in a directory; the bytes are valid until the next call of `readEntries`. */
export type Entry = { readonly name: Buffer; readonly kind: number }

function entryAt(bytes: Buffer, at: number): Entry {
  return {
    name: bytes.subarray(at + DENT.NAME, bytes.indexOf(0, at + DENT.NAME)),
    kind: kindOfType(bytes[at + DENT.TYPE] ?? 0),
  }
}

const isSelfOrParent = (name: Buffer): boolean =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))

/** Entries of an open directory from where the last call stopped, without `.` and `..`; undefined at its end. */
export function readEntries(fd: number): Entry[] | undefined {
  const { dents } = memory()
  const length = check(sys('getdents64', fd, dents.address, dents.bytes.length))
  if (length === 0) return undefined
  const entries: Entry[] = []
  for (let at = 0; at < length; at += dents.bytes.readUInt16LE(at + DENT.RECORD_BYTES)) {
    const entry = entryAt(dents.bytes, at)
    if (!isSelfOrParent(entry.name)) entries.push(entry)
  }
  return entries
}
