// The box's only way out: blocking frames on fd 3. One request at a time; the answer is read before anything else.
import { readSync, writeSync } from 'node:fs'
import { FRAME_HEAD } from '../wire/frames.ts'
import { FROM_BOX, HOST_METHODS, readError, REPLY_OK, REPLY_RETRYABLE_ERROR } from '../wire/box-frames.ts'
import { packTexts } from '../wire/texts.ts'

const CHANNEL = 3
const INBOX_BYTES = 256 * 1024

let inbox = Buffer.allocUnsafe(INBOX_BYTES)
let from = 0
let to = 0

function fill(need: number): void {
  if (from + need > inbox.length) {
    const next = need > inbox.length ? Buffer.allocUnsafe(need) : inbox
    inbox.copy(next, 0, from, to)
    inbox = next
    to -= from
    from = 0
  }
  while (to - from < need) {
    const count = readSync(CHANNEL, inbox, to, inbox.length - to, null)
    if (count === 0) process.exit(0)
    to += count
  }
}

/** Writes all of `bytes`, waiting where the descriptor is full. */
export function writeAll(fd: number, bytes: Uint8Array, length = bytes.length): void {
  for (let at = 0; at < length;) at += writeSync(fd, bytes, at, length - at)
}

export type Frame = { readonly type: number; readonly body: Buffer }

/** The next frame; its body is valid until the next call. Ends the process when the supervisor is gone. */
export function receive(): Frame {
  if (from === to) from = to = 0
  fill(FRAME_HEAD)
  const size = inbox.readUInt32LE(from) + 4
  const type = inbox[from + 4] ?? 0
  fill(size)
  const body = inbox.subarray(from + FRAME_HEAD, from + size)
  from += size
  return { type, body }
}

/** Gives back the large receive buffer that an artifact came through. */
export function shrinkInbox(): void {
  if (inbox.length > INBOX_BYTES && from === to) {
    inbox = Buffer.allocUnsafe(INBOX_BYTES)
    from = to = 0
  }
}

let outbox = Buffer.allocUnsafe(64 * 1024)

/** Sends one frame of the parts in a row. */
export function send(type: number, parts: readonly Uint8Array[] = []): void {
  let size = FRAME_HEAD
  for (const part of parts) size += part.length
  if (size > outbox.length) outbox = Buffer.allocUnsafe(size)
  outbox.writeUInt32LE(size - 4, 0)
  outbox[4] = type
  let at = FRAME_HEAD
  for (const part of parts) {
    outbox.set(part, at)
    at += part.length
  }
  writeAll(CHANNEL, outbox, size)
}

let open = false

/** Requests exist only while an invocation runs: not while an instance is made, not after the end. */
export function openGate(on: boolean): void {
  open = on
}

/** @throws Error, a trap of the guest, outside an invocation */
export function assertInvocation(): void {
  if (!open) throw new Error('host imports are not available while an instance is made')
}

/**
 * One request to the file broker.
 *
 * @param parts the request of wire/files.ts, written in a row.
 * @returns the reply's bytes, valid until the next request.
 */
export function fileRequest(parts: readonly Uint8Array[]): Buffer {
  assertInvocation()
  send(FROM_BOX.FILES, parts)
  return receive().body
}

/** One request to the egress broker (wire/egress.ts); as `fileRequest`. */
export function egressRequest(parts: readonly Uint8Array[]): Buffer {
  assertInvocation()
  send(FROM_BOX.EGRESS, parts)
  return receive().body
}

export type HostMethodName = (typeof HOST_METHODS)[number]

type RefusalPayload = { readonly code: string; readonly message: string; readonly retryable: boolean }

/** A refusal of the host: jco hands `payload` to the guest as the error of its result; tools are not told `retryable`. */
export class HostRefusal extends Error {
  readonly payload: RefusalPayload
  constructor(payload: RefusalPayload) {
    super(payload.message)
    this.payload = payload
  }
}

let largest = Number.POSITIVE_INFINITY

/** Longest request that the supervisor takes; a longer one is refused here, which is kinder than the kill there. */
export function limitRequests(bytes: number): void {
  largest = bytes
}

/** Asks the server. @throws HostRefusal with the answer's code and message */
export function hostCall(method: HostMethodName, texts: readonly (string | undefined)[]): string {
  assertInvocation()
  const packed = packTexts(texts)
  if (packed.length + 2 > largest)
    throw new HostRefusal({
      code: 'output_limit',
      message: `Cannot call ${method}: its arguments have ${packed.length} bytes, the limit is ${largest} bytes`,
      retryable: false,
    })
  send(FROM_BOX.HOST, [Uint8Array.of(HOST_METHODS.indexOf(method)), packed])
  const { body } = receive()
  if (body[0] === REPLY_OK) return body.toString('utf8', 1)
  throw new HostRefusal({ ...readError(body.subarray(1)), retryable: body[0] === REPLY_RETRYABLE_ERROR })
}

const written = { 1: 0, 2: 0 }

/** What the guest writes to its stdout (1) or stderr (2). The supervisor keeps the first bytes of a call. */
export function writeOutput(fd: 1 | 2, bytes: Uint8Array): void {
  assertInvocation()
  written[fd] += bytes.length
  writeAll(fd, bytes)
}

/** Bytes that this invocation wrote to stdout and stderr; starts the next count. */
export function takeOutputCounts(): readonly [stdout: number, stderr: number] {
  const counts = [written[1], written[2]] as const
  written[1] = written[2] = 0
  return counts
}
