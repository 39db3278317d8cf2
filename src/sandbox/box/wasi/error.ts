import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-io-error'
import type { FileCode } from '../../wire/files.ts'
import { type Invocation, Resource } from './invocation.ts'

/** `wasi:io/error`: what made a stream fail; that of a file knows its code. */
export class IoError extends Resource implements Wasi.Error {
  readonly code: FileCode

  constructor(invocation: Invocation, code: FileCode) {
    super(invocation)
    this.code = code
  }

  toDebugString(): string {
    return this.code
  }
}

/** `filesystem-error-code` of wasi:filesystem/types. */
export const filesystemErrorCode = (error: unknown): FileCode | undefined =>
  error instanceof IoError ? error.code : undefined
