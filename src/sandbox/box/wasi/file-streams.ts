import { FACTS, FILE_OP } from '../../wire/files.ts'
import type { FileRequests } from './file-requests.ts'
import { closed, type Source } from './streams.ts'

const NOTHING = Buffer.alloc(0)
/** What is read at once: little at first, since most files are small, then as much as the channel takes well. */
const FIRST_BYTES = 64 * 1024
const AHEAD_BYTES = 256 * 1024
const atEnd = (reply: Buffer): boolean => reply.readUInt16LE(FACTS.EXTRA) === 1

/**
 * Reads a file from `offset` on, in large pieces whatever the guest asks for. What was read ahead is dropped when this
 * call changed any file since, so that a guest finds what it wrote itself.
 */
export function fileSource(files: FileRequests, handle: number, offset: number): Source {
  let at = offset
  let ahead: Buffer = NOTHING
  let store: Buffer = NOTHING
  let ended = false
  let changes = files.changes
  let piece = FIRST_BYTES

  function refill(): Buffer {
    const reply = files.ask(FILE_OP.READ, handle, { a: piece, b: at })
    piece = AHEAD_BYTES
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
      // As memory of its own: making it anew for each piece costs more than the copy.
      if (store.length < bytes.length) store = Buffer.allocUnsafeSlow(bytes.length)
      store.set(bytes)
      ahead = store.subarray(0, bytes.length)
    }
    const bytes = ahead.subarray(0, length)
    ahead = ahead.subarray(bytes.length)
    at += bytes.length
    return bytes
  }
}
