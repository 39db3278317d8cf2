import { FACTS, FILE_OP } from '../../wire/files.ts'
import { failFile } from './failure.ts'
import type { FileRequests } from './file-requests.ts'
import { CHUNK_BYTES, closed, type Sink, type Source } from './streams.ts'

const NOTHING = Buffer.alloc(0)
const atEnd = (reply: Buffer): boolean => reply.readUInt16LE(FACTS.EXTRA) === 1

/**
 * Reads a file from `offset` on, 64 KiB at a time whatever the guest asks for. What was read ahead is dropped when this
 * call changed any file since, so that a guest finds what it wrote itself.
 */
export function fileSource(files: FileRequests, handle: number, offset: number): Source {
  let at = offset
  let ahead: Buffer = NOTHING
  let ended = false
  let changes = files.changes

  function refill(): Buffer {
    const reply = files.ask(FILE_OP.READ, handle, { a: CHUNK_BYTES, b: at })
    ended = atEnd(reply)
    changes = files.changes
    return reply.subarray(FACTS.HEAD)
  }

  return (length) => {
    if (changes !== files.changes) {
      ahead = NOTHING
      ended = false
    }
    if (ahead.length === 0) {
      const bytes = ended ? NOTHING : refill()
      if (bytes.length === 0) return closed()
      // The reply lies in memory that the next request writes to; what is given out now is used before that.
      if (bytes.length <= length) {
        at += bytes.length
        return bytes
      }
      ahead = Buffer.from(bytes)
    }
    const bytes = ahead.subarray(0, length)
    ahead = ahead.subarray(bytes.length)
    at += bytes.length
    return bytes
  }
}

/** Makes a sink of an operation that says how much it wrote. */
const sinkOf =
  (put: (bytes: Uint8Array) => Buffer, moveOn: (count: number) => void): Sink =>
  (contents) => {
    for (let done = 0; done < contents.length;) {
      const count = put(contents.subarray(done)).readUInt32LE(FACTS.VALUE)
      if (count === 0) failFile('io')
      done += count
      moveOn(count)
    }
  }

/** Writes a file from `offset` on. */
export function fileSink(files: FileRequests, handle: number, offset: number): Sink {
  let at = offset
  return sinkOf(
    (data) => files.ask(FILE_OP.WRITE, handle, { b: at, data }),
    (count) => {
      at += count
    },
  )
}

/** Writes at the end of a file, wherever that is at each write. */
export const appendSink = (files: FileRequests, handle: number): Sink =>
  sinkOf(
    (data) => files.ask(FILE_OP.APPEND, handle, { data }),
    () => {},
  )
