import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-io-error'
import type { ErrorCode } from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import type { FileCode } from '../../wire/files.ts'
import { type Invocation, Resource } from './invocation.ts'

/** `wasi:io/error`: what made a stream fail; that of a file, or of an HTTP message, knows its code. */
export class IoError extends Resource implements Wasi.Error {
  readonly code: FileCode | ErrorCode

  constructor(invocation: Invocation, code: FileCode | ErrorCode) {
    super(invocation)
    this.code = code
  }

  toDebugString(): string {
    return typeof this.code === 'string' ? this.code : this.code.tag
  }
}

/** `filesystem-error-code` of wasi:filesystem/types. */
export const filesystemErrorCode = (error: unknown): FileCode | undefined =>
  error instanceof IoError && typeof error.code === 'string' ? error.code : undefined

/** `http-error-code` of wasi:http/types. */
export const httpErrorCode = (error: unknown): ErrorCode | undefined =>
  error instanceof IoError && typeof error.code === 'object' ? error.code : undefined
