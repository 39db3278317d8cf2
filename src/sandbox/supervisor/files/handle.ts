import type { CheckedPath } from './path.ts'
import type { Facts } from './system.ts'

/** What a request did to an `open-at`: the bits of OPEN_BIT. */
export type OpenBits = number

/** Entries as the wire has them: of each the facts, then the name. */
export type ListingPage = { readonly entries: Buffer; readonly last: boolean }

/** A directory being listed. */
export interface Listing {
  /** The next page; not called again after the last. */
  next(): ListingPage
  close(): void
}

/** A regular file that an invocation holds. Offsets and lengths were checked: whole, not negative, in range. */
export interface OpenFile {
  readonly type: 'file'
  stat(): Facts
  /** Fewer bytes than `length`, at most MAX_DATA_BYTES, only at the end of the file. Valid until the next read of any file. */
  read(offset: number, length: number): Buffer
  write(offset: number, data: Buffer): number
  append(data: Buffer): number
  /** How many bytes a box may keep back that are to follow at the end: they will not fail for want of quota. */
  credit(): number
  setSize(size: number): void
  setTimes(times: Buffer): void
  sync(): void
  close(): void
}

/** A directory that an invocation holds. Every path is checked in form, and beneath this directory or refused. */
export interface OpenDirectory {
  readonly type: 'directory'
  stat(): Facts
  statAt(path: CheckedPath, follow: boolean): Facts
  open(path: CheckedPath, bits: OpenBits): Handle
  list(): Listing
  makeDirectory(path: CheckedPath): void
  removeDirectory(path: CheckedPath): void
  unlink(path: CheckedPath): void
  rename(from: CheckedPath, directory: OpenDirectory, to: CheckedPath): void
  symlink(target: Buffer, path: CheckedPath): void
  readLink(path: CheckedPath): Buffer
  setTimes(times: Buffer): void
  setTimesAt(path: CheckedPath, follow: boolean, times: Buffer): void
  close(): void
}

/** What a number in a request stands for. Its methods throw `Refusal`. */
export type Handle = OpenFile | OpenDirectory
