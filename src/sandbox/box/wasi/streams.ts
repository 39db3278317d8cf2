import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-io-streams'
import { IoError } from './error.ts'
import { Failure } from './failure.ts'
import { type Invocation, Resource } from './invocation.ts'
import { Pollable, type Watch } from './poll.ts'
import type { FileCode } from '../../wire/files.ts'

/** What one read gives, and one write takes, at most. */
export const CHUNK_BYTES = 64 * 1024
const CHUNK = BigInt(CHUNK_BYTES)

const CLOSED = new Failure<Wasi.StreamError>({ tag: 'closed' })

/** Ends a stream's read or write: nothing more comes, or goes. @throws Failure always */
export const closed = (): never => {
  throw CLOSED
}

/** Runs a step of a stream whose file errors are its last operation's. */
function streaming<Result>(invocation: Invocation, step: () => Result): Result {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof Failure) || typeof error.payload !== 'string') throw error
    const val = new IoError(invocation, error.payload as FileCode)
    throw new Failure<Wasi.StreamError>({ tag: 'last-operation-failed', val })
  }
}

/**
 * Where bytes come from: at most `length`, or `closed()` at the end. None only where nobody waits and there are none yet,
 * which never happens with files.
 */
export type Source = (length: number, wait: boolean) => Uint8Array

const lengthOf = (length: bigint): number => (length > CHUNK ? CHUNK_BYTES : Number(length))

const NO_BYTES = new Uint8Array(0)

/** `wasi:io/streams` of a source. Without a `watch` it is always ready: reading and blocking reading are the same. */
export class InputStream extends Resource implements Wasi.InputStream {
  readonly #source: Source
  readonly #watch: Watch | undefined

  constructor(invocation: Invocation, source: Source, watch?: Watch) {
    super(invocation)
    this.#source = source
    this.#watch = watch
  }

  read(length: bigint): Uint8Array {
    return this.#read(length, false)
  }

  blockingRead(length: bigint): Uint8Array {
    return this.#read(length, true)
  }

  skip(length: bigint): bigint {
    return BigInt(this.read(length).length)
  }

  blockingSkip(length: bigint): bigint {
    return BigInt(this.blockingRead(length).length)
  }

  subscribe(): Pollable {
    return new Pollable(this.invocation, undefined, this.#watch)
  }

  #read(length: bigint, wait: boolean): Uint8Array {
    const count = lengthOf(length)
    return count === 0 ? NO_BYTES : streaming(this.invocation, () => this.#source(count, wait))
  }
}

/** Where bytes go, all of them. */
export type Sink = {
  write(bytes: Uint8Array): void
  /** Lets nothing lie; without it nothing ever does. */
  flush?(): void
}

/** @throws Error, a trap: the guest did not keep to what `check-write` permits (F11) */
function permit(count: number | bigint): void {
  if (count > CHUNK) throw new Error(`a write of ${count} bytes, the permit is for ${CHUNK_BYTES}`)
}

/**
 * `wasi:io/streams` of a sink that is always ready. A permit is for 64 KiB whether it was asked for or not; the blocking
 * forms take as much. Their flush is that of a libc after each 4 KiB: it waits for no more than a write does, and only
 * one that was asked for by itself lets nothing lie.
 */
export class OutputStream extends Resource implements Wasi.OutputStream {
  readonly #sink: Sink
  #broken = false

  constructor(invocation: Invocation, sink: Sink) {
    super(invocation)
    this.#sink = sink
  }

  checkWrite(): bigint {
    return this.#broken ? closed() : CHUNK
  }

  write(contents: Uint8Array): void {
    permit(contents.length)
    if (this.#broken) closed()
    if (contents.length > 0) this.#step(() => this.#sink.write(contents))
  }

  #step(step: () => void): void {
    try {
      streaming(this.invocation, step)
    } catch (error) {
      this.#broken = true
      throw error
    }
  }

  blockingWriteAndFlush(contents: Uint8Array): void {
    this.write(contents)
  }

  flush(): void {
    if (this.#broken) closed()
    this.#step(() => this.#sink.flush?.())
  }

  blockingFlush(): void {
    this.flush()
  }

  writeZeroes(length: bigint): void {
    permit(length)
    this.write(new Uint8Array(Number(length)))
  }

  blockingWriteZeroesAndFlush(length: bigint): void {
    this.writeZeroes(length)
  }

  splice(source: InputStream, length: bigint): bigint {
    this.checkWrite()
    const bytes = source.read(length)
    this.write(bytes)
    return BigInt(bytes.length)
  }

  blockingSplice(source: InputStream, length: bigint): bigint {
    this.checkWrite()
    const bytes = source.blockingRead(length)
    this.write(bytes)
    return BigInt(bytes.length)
  }

  subscribe(): Pollable {
    return new Pollable(this.invocation)
  }
}
