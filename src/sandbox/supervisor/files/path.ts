import { isUtf8 } from 'node:buffer'
import { MAX_NAME_BYTES, MAX_PATH_BYTES } from '../../wire/files.ts'
import { refuse } from './refusal.ts'

const NUL = 0
const DOT = 0x2e
const SLASH = 0x2f
const BACKSLASH = 0x5c

/** A path whose form was checked: relative, UTF-8, no NUL, no backslash, every component at most 255 bytes. */
export type CheckedPath = {
  readonly bytes: Buffer
  /** Everything before the last component; undefined when there is none. */
  readonly parent: Buffer | undefined
  /** The last component, with the slashes that followed it: the kernel knows what they mean. */
  readonly last: Buffer
  /** The last component alone. */
  readonly name: Buffer
}

/** Whether a name may be created, and so whether it is listed. */
export const isServable = (name: Buffer): boolean => isUtf8(name) && !name.includes(BACKSLASH)

const isDots = (name: Buffer): boolean =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))

/** Whether the last component is `.` or `..`, which name no entry that could be made, removed or renamed. */
export const endsInDots = (path: CheckedPath): boolean => isDots(path.name)

/** Whether slashes follow the last component, so that it must be a directory. */
export const wantsDirectory = (path: CheckedPath): boolean => path.last.length > path.name.length

/** The kernel and we walk a path component by component, on the thread that serves every box. */
export const MAX_COMPONENTS = 512

function checkComponents(bytes: Buffer): void {
  let length = 0
  let components = 0
  for (const byte of bytes) {
    if (byte === NUL || byte === BACKSLASH) refuse('invalid')
    length = byte === SLASH ? 0 : length + 1
    if (length === 1 && ++components > MAX_COMPONENTS) refuse('name-too-long')
    if (length > MAX_NAME_BYTES) refuse('name-too-long')
  }
}

/**
 * Checks the form of a path from a guest (F1, F18, F19) and finds its last component.
 *
 * @throws Refusal
 */
export function checkPath(bytes: Buffer): CheckedPath {
  if (bytes.length === 0) refuse('no-entry')
  if (bytes.length > MAX_PATH_BYTES) refuse('name-too-long')
  if (bytes[0] === SLASH) refuse('not-permitted')
  checkComponents(bytes)
  if (!isUtf8(bytes)) refuse('illegal-byte-sequence')
  let end = bytes.length
  while (bytes[end - 1] === SLASH) end--
  const cut = bytes.lastIndexOf(SLASH, end - 1)
  return {
    bytes,
    parent: cut < 0 ? undefined : bytes.subarray(0, cut),
    last: bytes.subarray(cut + 1),
    name: bytes.subarray(cut + 1, end),
  }
}
