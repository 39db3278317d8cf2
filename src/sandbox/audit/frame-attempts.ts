import { defaultLimits } from '../../contract/limits.ts'
import { largestBoxFrame } from '../supervisor/box.ts'
import { FROM_BOX } from '../wire/box-frames.ts'

/** Those of the supervisor that is attacked: they say which frame is too long. */
export const FRAME_LIMITS = { ...defaultLimits, warmBoxes: 2 }

/** Bytes that a component writes to its channel past the runtime. The box is to die of them, and nothing else. */
export type FrameAttempt = {
  readonly name: string
  /** Statements, after {@link FRAME_PRELUDE}. What comes after them runs only where nobody minded. */
  readonly source: string
}

/** `frame(type, size)` makes a frame of zeros, `put` writes bytes, `flood` writes them until there were 200 MB. */
export const FRAME_PRELUDE = `
const fs = process.getBuiltinModule('node:fs')
// Where the other end is Node's own the descriptor may be full; in a box it waits.
const room = (write) => { try { return write() } catch (error) { if (error.code === 'EAGAIN') return 0; throw error } }
const put = (bytes) => { for (let at = 0; at < bytes.length;) at += room(() => fs.writeSync(3, bytes, at)) }
const frame = (type, size) => {
  const bytes = Buffer.alloc(5 + size)
  bytes.writeUInt32LE(size + 1)
  bytes[4] = type
  return bytes
}
const sized = (size, type) => { const bytes = frame(type, 0); bytes.writeUInt32LE(size); return bytes }
const flood = (bytes) => { for (let left = 200 << 20; left > 0; left -= bytes.length) put(bytes) }
const many = (bytes) => Buffer.concat(Array(Math.ceil((1 << 20) / bytes.length)).fill(bytes))
const file = frame(${FROM_BOX.FILES}, 36)
const finish = frame(${FROM_BOX.HOST}, 5)
finish[5] = 3
const CAP = ${largestBoxFrame(FRAME_LIMITS)}
`

const { READY, FILES, HOST, DONE, IDLE, FAILED, EGRESS } = FROM_BOX

export const FRAME_ATTEMPTS: readonly FrameAttempt[] = [
  { name: 'flood of noise', source: 'flood(Buffer.alloc(1 << 20, 1))' },
  { name: 'flood of zeros', source: 'flood(Buffer.alloc(1 << 20))' },
  { name: 'flood of file requests', source: 'flood(many(file))' },
  { name: 'flood of host calls', source: 'flood(many(finish))' },
  { name: 'flood of ends', source: `flood(many(frame(${DONE}, 17)))` },
  { name: 'two file requests at once', source: 'put(Buffer.concat([file, file]))' },
  { name: 'a host call before the answer to another', source: 'put(finish); put(finish)' },
  { name: 'a file request before the answer to a host call', source: 'put(finish); put(file)' },
  { name: 'an end before the answer to a host call', source: `put(finish); put(frame(${DONE}, 17))` },
  { name: 'a frame of 4 GiB', source: `put(sized(0xffffffff, ${FILES}))` },
  { name: 'a frame of 2 GiB', source: `put(sized(0x80000000, ${HOST}))` },
  { name: 'a frame one byte over the cap', source: `put(sized(CAP + 1, ${HOST}))` },
  { name: 'a frame of no bytes', source: 'put(Buffer.alloc(5))' },
  { name: 'an unknown type', source: 'put(frame(99, 0))' },
  { name: "a frame of the supervisor's own", source: 'put(frame(3, 8))' },
  { name: 'ready again', source: `put(frame(${READY}, 0))` },
  { name: 'idle while busy', source: `put(frame(${IDLE}, 0))` },
  { name: 'failed while busy', source: `put(frame(${FAILED}, 3))` },
  { name: 'an end that is cut short', source: `put(frame(${DONE}, 3))` },
  { name: 'a step of an HTTP request that is cut short', source: `put(frame(${EGRESS}, 2))` },
]
