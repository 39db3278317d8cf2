// File requests of a box and the broker's replies: one fixed head each, then bytes; everything little endian. A box is
// not trusted: the broker checks every field, and the box checks nothing of the replies.

export const FILE_OP = {
  OPEN: 1,
  CLOSE: 2,
  READ: 3,
  WRITE: 4,
  APPEND: 5,
  STAT: 6,
  STAT_AT: 7,
  /** The first page of a directory, or with `other` the next page of an unfinished listing. */
  LIST: 8,
  /** Gives up the unfinished listing `other`. */
  END_LIST: 9,
  MAKE_DIRECTORY: 10,
  REMOVE_DIRECTORY: 11,
  UNLINK: 12,
  RENAME: 13,
  SYMLINK: 14,
  READ_LINK: 15,
  SET_SIZE: 16,
  SET_TIMES: 17,
  SET_TIMES_AT: 18,
  SYNC: 19,
} as const

/**
 * Offsets in a request. Two byte strings follow the head: `ONE_LENGTH` bytes (a path), and the rest (a second path, data,
 * or two timespecs of the kernel).
 */
export const REQUEST = {
  OP: 0, // u8
  BITS: 2, // u16, OPEN_BIT
  HANDLE: 4, // u32
  OTHER: 8, // u32, a second handle or a listing
  CLOSING: 12, // u32, a handle to close before the operation, so that a close costs no request of its own
  A: 16, // f64, a length or a size
  B: 24, // f64, an offset
  ONE_LENGTH: 32, // u32
  HEAD: 36,
} as const

/** `CLOSING` when there is nothing to close. */
export const NO_HANDLE = 0xffff_ffff

/** Offsets in a reply's head, and in each entry of a listing, where the name follows. */
export const FACTS = {
  STATUS: 0, // u8, index in FILE_CODES
  KIND: 1, // u8, index in FILE_KINDS
  EXTRA: 2, // u16, in a reply 1 = at the end; in an entry the length of its name
  VALUE: 4, // u32, a handle, a count or a listing
  SIZE: 8, // f64; in the reply to a write the bytes that may follow at the end of the file: room for them is reserved
  MTIME_SECONDS: 16, // f64
  MTIME_NANOS: 24, // u32
  ATIME_NANOS: 28, // u32
  ATIME_SECONDS: 32, // f64
  IDENTITY: 40, // u64, tells objects apart without naming an inode
  HEAD: 48,
} as const

/** Status of a reply after the operation limit: not an error of the guest's libc, but the end of the invocation. */
export const STATUS_LIMIT = 255

export const OPEN_BIT = {
  FOLLOW: 1,
  CREATE: 2,
  DIRECTORY: 4,
  EXCLUSIVE: 8,
  TRUNCATE: 16,
  READ: 32,
  WRITE: 64,
  MUTATE: 128,
} as const

/** `descriptor-type` of wasi:filesystem, in its order. */
export const FILE_KINDS = [
  'unknown',
  'block-device',
  'character-device',
  'directory',
  'fifo',
  'symbolic-link',
  'regular-file',
  'socket',
] as const
export const KIND = { UNKNOWN: 0, DIRECTORY: 3, LINK: 5, FILE: 6 } as const

/** The error codes of wasi:filesystem that the broker answers; the first stands for success. */
export const FILE_CODES = [
  'ok',
  'access',
  'bad-descriptor',
  'busy',
  'cross-device',
  'exist',
  'file-too-large',
  'illegal-byte-sequence',
  'insufficient-memory',
  'insufficient-space',
  'invalid',
  'io',
  'is-directory',
  'loop',
  'name-too-long',
  'no-entry',
  'not-directory',
  'not-empty',
  'not-permitted',
  'overflow',
  'quota',
  'read-only',
  'text-file-busy',
  'too-many-links',
  'unsupported',
] as const
export type FileCode = Exclude<(typeof FILE_CODES)[number], 'ok'>

/** Longest path and longest name of one component, in bytes. */
export const MAX_PATH_BYTES = 4095
export const MAX_NAME_BYTES = 255
/** Most bytes of file data in one request or reply: a frame is 1 MiB, heads and a path included. */
export const MAX_DATA_BYTES = 1024 * 1024 - 16 * 1024
