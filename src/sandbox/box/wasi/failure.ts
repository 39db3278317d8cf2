import { FILE_CODES, type FileCode } from '../../wire/files.ts'

/** An error of a WASI result. jco hands `payload` to the guest; any other Error that is thrown is a trap. */
export class Failure<Payload> extends Error {
  override readonly name = 'Failure'
  readonly payload: Payload

  constructor(payload: Payload) {
    super('an error for the guest')
    this.payload = payload
  }
}

/** One instance per code: guests probe for files, and an Error is dear to make. */
const failures = new Map<FileCode, Failure<FileCode>>()
for (const code of FILE_CODES) if (code !== 'ok') failures.set(code, new Failure(code))

/** @throws Failure always: a file error for the guest */
export function failFile(code: FileCode): never {
  throw failures.get(code) ?? new Failure(code)
}
