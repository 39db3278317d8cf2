import { FILE_CODES, type FileCode } from '../../wire/files.ts'

/** What a guest is told instead of a result. One instance per code: probing for files is common and must be cheap. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: FileCode

  constructor(code: FileCode) {
    super(code)
    this.code = code
  }
}

const refusals = new Map<string, Refusal>()
for (const code of FILE_CODES) if (code !== 'ok') refusals.set(code, new Refusal(code))

/** @throws Refusal always */
export function refuse(code: FileCode): never {
  throw refusals.get(code) ?? new Refusal(code)
}

/** Linux errno values, the same on x86-64 and aarch64. */
export const ERRNO = { ENOENT: 2, EAGAIN: 11, EEXIST: 17, EXDEV: 18, ENOTDIR: 20, EINVAL: 22, ENOSYS: 38, ELOOP: 40 }

/** Codes by errno. WASI has no EMFILE: it shows as "insufficient-memory". EXDEV: a path that leaves its grant. */
const CODES: Readonly<Record<number, FileCode>> = {
  1: 'not-permitted',
  2: 'no-entry',
  5: 'io',
  9: 'bad-descriptor',
  11: 'busy',
  12: 'insufficient-memory',
  13: 'access',
  16: 'busy',
  17: 'exist',
  18: 'not-permitted',
  20: 'not-directory',
  21: 'is-directory',
  22: 'invalid',
  23: 'insufficient-memory',
  24: 'insufficient-memory',
  26: 'text-file-busy',
  27: 'file-too-large',
  28: 'insufficient-space',
  30: 'read-only',
  31: 'too-many-links',
  36: 'name-too-long',
  39: 'not-empty',
  40: 'loop',
  75: 'overflow',
  84: 'illegal-byte-sequence',
  95: 'unsupported',
  122: 'insufficient-space',
}

export const codeOfErrno = (errno: number): FileCode => CODES[errno] ?? 'io'

const hasErrno = (error: unknown): error is { readonly errno: number } =>
  error instanceof Error && 'errno' in error && typeof error.errno === 'number'

/** The code that stands for anything thrown while a request was answered; nothing of its text reaches a guest. */
export function codeOf(error: unknown): FileCode {
  if (error instanceof Refusal) return error.code
  return hasErrno(error) ? codeOfErrno(Math.abs(error.errno)) : 'io'
}
