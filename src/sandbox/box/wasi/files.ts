import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-types'
import { FACTS, FILE_KINDS, FILE_OP, KIND, MAX_DATA_BYTES, OPEN_BIT } from '../../wire/files.ts'
import { listDirectory } from './directory-stream.ts'
import { failFile } from './failure.ts'
import { FileSink } from './file-sink.ts'
import { fileSource } from './file-streams.ts'
import { type Invocation, Resource } from './invocation.ts'
import { Facts, type Use } from './known.ts'
import { Location } from './location.ts'
import { InputStream, OutputStream } from './streams.ts'

const UTIME_NOW = 0x3fffffffn
const UTIME_OMIT = 0x3ffffffen
const LARGEST_I64 = 2n ** 63n - 1n

const kindOf = (kind: number): Wasi.DescriptorType => FILE_KINDS[kind] ?? 'unknown'

const followBit = (flags: Wasi.PathFlags): number => (flags.symlinkFollow === true ? OPEN_BIT.FOLLOW : 0)

/** An offset to write at, or a size, as the wire has it. */
const toNumber = (value: bigint): number =>
  value > BigInt(Number.MAX_SAFE_INTEGER) ? failFile('file-too-large') : Number(value)

/** Beyond every end there is nothing, and no need to say how far beyond. */
const readOffset = (offset: bigint): number => Math.min(Number(offset), Number.MAX_SAFE_INTEGER)

const readLength = (length: bigint): number => (length > BigInt(MAX_DATA_BYTES) ? MAX_DATA_BYTES : Number(length))

/** No link count, no time of change: what the kernel knows of them is nobody's business here (F20). */
function statOf(facts: Facts): Wasi.DescriptorStat {
  const { kind, size, accessed, modified } = facts
  return {
    type: kindOf(kind),
    linkCount: 1n,
    size: BigInt(size),
    dataAccessTimestamp: accessed,
    dataModificationTimestamp: modified,
    statusChangeTimestamp: modified,
  }
}

const hashOf = (facts: Facts): Wasi.MetadataHashValue => ({ lower: facts.identity, upper: 0n })

function writeTime(times: Buffer, at: number, time: Wasi.NewTimestamp): void {
  if (time.tag === 'timestamp' && time.val.seconds > LARGEST_I64) failFile('invalid')
  const nanos = { now: () => UTIME_NOW, 'no-change': () => UTIME_OMIT }
  times.writeBigInt64LE(time.tag === 'timestamp' ? time.val.seconds : 0n, at)
  times.writeBigInt64LE(time.tag === 'timestamp' ? BigInt(time.val.nanoseconds) : nanos[time.tag](), at + 8)
}

function timespecs(access: Wasi.NewTimestamp, modification: Wasi.NewTimestamp): Buffer {
  const times = Buffer.alloc(32)
  writeTime(times, 0, access)
  writeTime(times, 16, modification)
  return times
}

function openBits(path: Wasi.PathFlags, open: Wasi.OpenFlags, flags: Wasi.DescriptorFlags): number {
  let bits = followBit(path)
  if (open.create === true) bits |= OPEN_BIT.CREATE
  if (open.directory === true) bits |= OPEN_BIT.DIRECTORY
  if (open.exclusive === true) bits |= OPEN_BIT.EXCLUSIVE
  if (open.truncate === true) bits |= OPEN_BIT.TRUNCATE
  if (flags.read === true) bits |= OPEN_BIT.READ
  if (flags.write === true) bits |= OPEN_BIT.WRITE
  if (flags.mutateDirectory === true) bits |= OPEN_BIT.MUTATE
  return bits
}

/** How often one stat is asked of a libc for one look: the stat, and the identity for its inode number. */
const STAT_LEARNT: Readonly<Record<Use, Readonly<Record<Use, number>>>> = {
  stat: { stat: 0, identity: 1 },
  identity: { stat: 1, identity: 0 },
}
const OPEN_LEARNT: Readonly<Record<Use, number>> = { stat: 1, identity: 1 }

/** What a descriptor stands for. */
type Opened = {
  readonly handle: number
  readonly kind: number
  readonly flags: Wasi.DescriptorFlags
  readonly location: Location
}

/** A file or directory behind the broker. Of errors the guest gets codes; nothing of them is a trap. */
export class Descriptor extends Resource implements Wasi.Descriptor {
  readonly #opened: Opened

  constructor(invocation: Invocation, opened: Opened) {
    super(invocation)
    this.#opened = opened
  }

  /** A mount. Guests drop it and go on with the path: its handle stays. */
  static preopen(invocation: Invocation, mount: number): Descriptor {
    return new Descriptor(invocation, {
      handle: mount,
      kind: KIND.DIRECTORY,
      flags: { read: true, mutateDirectory: true },
      location: Location.ofMount(mount, invocation.files),
    })
  }

  protected override onDrop(): void {
    const { handle } = this.#opened
    if (handle >= this.invocation.mounts.length) this.invocation.files.closeLater(handle)
  }

  #ask(op: number, fields?: Parameters<Invocation['files']['ask']>[2]): Buffer {
    return this.invocation.files.ask(op, this.#opened.handle, fields)
  }

  #fileOnly(): void {
    if (this.#opened.kind === KIND.DIRECTORY) failFile('is-directory')
  }

  readViaStream(offset: bigint): InputStream {
    this.#fileOnly()
    if (this.#opened.flags.read !== true) failFile('bad-descriptor')
    const { invocation } = this
    return new InputStream(invocation, fileSource(invocation.files, this.#opened.handle, readOffset(offset)))
  }

  writeViaStream(offset: bigint): OutputStream {
    this.#mayWrite()
    const { invocation } = this
    return new OutputStream(invocation, new FileSink(invocation.files, this.#opened.handle, toNumber(offset)))
  }

  appendViaStream(): OutputStream {
    this.#mayWrite()
    const { invocation } = this
    return new OutputStream(invocation, new FileSink(invocation.files, this.#opened.handle, undefined))
  }

  #mayWrite(): void {
    this.#fileOnly()
    if (this.#opened.flags.write !== true) failFile('bad-descriptor')
  }

  advise(_offset: bigint, _length: bigint, _advice: Wasi.Advice): void {
    this.#fileOnly()
  }

  syncData(): void {
    this.#ask(FILE_OP.SYNC)
  }

  sync(): void {
    this.#ask(FILE_OP.SYNC)
  }

  getFlags(): Wasi.DescriptorFlags {
    return this.#opened.flags
  }

  getType(): Wasi.DescriptorType {
    return kindOf(this.#opened.kind)
  }

  setSize(size: bigint): void {
    this.#ask(FILE_OP.SET_SIZE, { a: toNumber(size) })
  }

  setTimes(access: Wasi.NewTimestamp, modification: Wasi.NewTimestamp): void {
    this.#ask(FILE_OP.SET_TIMES, { data: timespecs(access, modification) })
  }

  read(length: bigint, offset: bigint): [Uint8Array, boolean] {
    const reply = this.#ask(FILE_OP.READ, { a: readLength(length), b: readOffset(offset) })
    return [reply.subarray(FACTS.HEAD), reply.readUInt16LE(FACTS.EXTRA) === 1]
  }

  write(contents: Uint8Array, offset: bigint): bigint {
    const data = contents.length > MAX_DATA_BYTES ? contents.subarray(0, MAX_DATA_BYTES) : contents
    return BigInt(this.#ask(FILE_OP.WRITE, { b: toNumber(offset), data }).readUInt32LE(FACTS.VALUE))
  }

  readDirectory(): DirectoryEntryStream {
    if (this.#opened.kind !== KIND.DIRECTORY) failFile('not-directory')
    return new DirectoryEntryStream(this.invocation, this.#opened)
  }

  createDirectoryAt(path: string): void {
    this.#ask(FILE_OP.MAKE_DIRECTORY, { path })
  }

  /** Facts for one use: what an earlier answer taught, or a question whose answer serves the other use as well. */
  #look(use: Use): Facts {
    const { known } = this.invocation.files
    const { self } = this.#opened.location
    const old = known.recall(self, use)
    if (old !== undefined) return old
    const facts = new Facts(Buffer.from(this.#ask(FILE_OP.STAT)))
    known.learn([self], facts, STAT_LEARNT[use])
    return facts
  }

  /** The same for what a path names. */
  #lookAt(use: Use, flags: Wasi.PathFlags, path: string): Facts {
    const { known } = this.invocation.files
    const { location } = this.#opened
    const follow = flags.symlinkFollow === true
    const old = known.recall(location.keyOf(path, follow), use)
    if (old !== undefined) return old
    const facts = new Facts(Buffer.from(this.#ask(FILE_OP.STAT_AT, { bits: followBit(flags), path })))
    known.learn(location.keysOf(path, follow, facts), facts, STAT_LEARNT[use])
    return facts
  }

  stat(): Wasi.DescriptorStat {
    return statOf(this.#look('stat'))
  }

  statAt(flags: Wasi.PathFlags, path: string): Wasi.DescriptorStat {
    return statOf(this.#lookAt('stat', flags, path))
  }

  setTimesAt(flags: Wasi.PathFlags, path: string, access: Wasi.NewTimestamp, modification: Wasi.NewTimestamp): void {
    this.#ask(FILE_OP.SET_TIMES_AT, { bits: followBit(flags), path, data: timespecs(access, modification) })
  }

  /** A second name would count once in no quota, and is refused when a file is opened (F5). */
  linkAt(_flags: Wasi.PathFlags, _path: string, _directory: Descriptor, _newPath: string): void {
    failFile('not-permitted')
  }

  openAt(pathFlags: Wasi.PathFlags, path: string, openFlags: Wasi.OpenFlags, flags: Wasi.DescriptorFlags): Descriptor {
    const { files } = this.invocation
    const bits = openBits(pathFlags, openFlags, flags)
    if ((bits & (OPEN_BIT.CREATE | OPEN_BIT.TRUNCATE)) !== 0) files.changed()
    const reply = this.#ask(FILE_OP.OPEN, { bits, path })
    return this.#openedAt(reply, path, flags)
  }

  #openedAt(reply: Buffer, path: string, flags: Wasi.DescriptorFlags): Descriptor {
    const { files } = this.invocation
    const facts = new Facts(Buffer.from(reply))
    const handle = reply.readUInt32LE(FACTS.VALUE)
    const { kind } = facts
    const location = this.#opened.location.child(path, handle)
    const descriptor = new Descriptor(this.invocation, { handle, kind, flags: effective(kind, flags), location })
    files.known.learn([location.self], facts, OPEN_LEARNT)
    return descriptor
  }

  readlinkAt(path: string): string {
    return this.#ask(FILE_OP.READ_LINK, { path }).toString('utf8', FACTS.HEAD)
  }

  removeDirectoryAt(path: string): void {
    this.#ask(FILE_OP.REMOVE_DIRECTORY, { path })
  }

  renameAt(path: string, directory: Descriptor, newPath: string): void {
    this.#ask(FILE_OP.RENAME, { path, other: directory.#opened.handle, secondPath: newPath })
  }

  symlinkAt(target: string, path: string): void {
    this.#ask(FILE_OP.SYMLINK, { path, secondPath: target })
  }

  unlinkFileAt(path: string): void {
    this.#ask(FILE_OP.UNLINK, { path })
  }

  isSameObject(other: Descriptor): boolean {
    return this.#look('identity').identity === other.#look('identity').identity
  }

  metadataHash(): Wasi.MetadataHashValue {
    return hashOf(this.#look('identity'))
  }

  metadataHashAt(flags: Wasi.PathFlags, path: string): Wasi.MetadataHashValue {
    return hashOf(this.#lookAt('identity', flags, path))
  }
}

/** A file that was opened for nothing is readable; a directory can always be read, and its grant says the rest. */
const effective = (kind: number, flags: Wasi.DescriptorFlags): Wasi.DescriptorFlags =>
  kind === KIND.DIRECTORY || flags.write !== true ? { ...flags, read: true } : flags

/** The entries of a directory, page by page. */
export class DirectoryEntryStream extends Resource implements Wasi.DirectoryEntryStream {
  readonly #list: ReturnType<typeof listDirectory>

  constructor(invocation: Invocation, directory: Opened) {
    super(invocation)
    this.#list = listDirectory(invocation.files, directory.handle, directory.location)
  }

  readDirectoryEntry(): Wasi.DirectoryEntry | undefined {
    return this.#list.next()
  }

  protected override onDrop(): void {
    this.#list.giveUp()
  }
}
