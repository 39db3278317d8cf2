import type { ErrorCode } from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import { EGRESS_CHUNK_BYTES, EGRESS_OP, EGRESS_REPLY, SUBJECT_BYTES, START_HEAD } from '../../wire/egress.ts'
import { packTexts, unpackBytes } from '../../wire/texts.ts'
import { Failure } from './failure.ts'

type Send = (parts: readonly Uint8Array[]) => Buffer

export type StartFields = {
  /** Milliseconds: to connect, to the first byte, between bytes. */
  readonly timeouts: readonly [number, number, number]
  /** Of the body; UNKNOWN_LENGTH when it follows. */
  readonly length: number
  /** Method, scheme, authority, path, then names and values. */
  readonly texts: readonly (string | Uint8Array)[]
}

/** Fields of an answer, names as they came. */
export type ReceivedHead = { readonly status: number; readonly fields: readonly (readonly [string, Uint8Array])[] }

function toErrorCode(text: string): ErrorCode {
  const [tag = '', ...rest] = text.split('\n')
  const value = rest.length === 0 ? undefined : rest.join('\n')
  switch (tag) {
    case 'DNS-error':
      return { tag, val: value === undefined ? {} : { rcode: value } }
    case 'HTTP-request-body-size':
    case 'HTTP-response-body-size':
      return { tag, val: value === undefined ? undefined : BigInt(value) }
    case 'HTTP-request-header-section-size':
    case 'HTTP-response-header-section-size':
      return { tag, val: value === undefined ? undefined : Number(value) }
    case 'HTTP-response-transfer-coding':
    case 'internal-error':
      return { tag, val: value }
    default:
      return { tag } as ErrorCode // the broker's tags are those of wasi:http
  }
}

function handleFrame(op: number, handle: number, extra = 0): Buffer {
  const head = Buffer.alloc(5 + extra)
  head[0] = op
  head.writeUInt32LE(handle, 1)
  return head
}

/** Asks the egress broker (wire/egress.ts). Every method throws a Failure with the `error-code` of what went wrong. */
export class EgressRequests {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /** @returns the handle of the exchange */
  start({ timeouts, length, texts }: StartFields): number {
    const head = Buffer.alloc(START_HEAD)
    head[0] = EGRESS_OP.START
    for (const [index, ms] of timeouts.entries()) head.writeUInt32LE(ms, 1 + 4 * index)
    head.writeDoubleLE(length, 13)
    return this.#ask([head, packTexts(texts)]).readUInt32LE(1)
  }

  /** Waits until the bytes are on their way. */
  write(handle: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += EGRESS_CHUNK_BYTES)
      this.#ask([handleFrame(EGRESS_OP.WRITE, handle), bytes.subarray(at, at + EGRESS_CHUNK_BYTES)])
  }

  finish(handle: number): void {
    this.#ask([handleFrame(EGRESS_OP.FINISH, handle)])
  }

  /** Undefined while there is none. */
  response(handle: number): ReceivedHead | undefined {
    const reply = this.#ask([handleFrame(EGRESS_OP.RESPONSE, handle)])
    if (reply[0] === EGRESS_REPLY.PENDING) return undefined
    const status = reply.readUInt16LE(1)
    const texts = unpackBytes(Buffer.from(reply), 3)
    const fields: [string, Uint8Array][] = []
    for (let at = 0; at < texts.length; at += 2)
      fields.push([texts[at]?.toString('latin1') ?? '', texts[at + 1] ?? Buffer.alloc(0)])
    return { status, fields }
  }

  /** A copy of the next bytes, none while there are none, undefined at the end. */
  read(handle: number, wait: boolean): Buffer | undefined {
    const request = handleFrame(EGRESS_OP.READ, handle, 1)
    request[5] = wait ? 1 : 0
    const reply = this.#ask([request])
    return reply[0] === EGRESS_REPLY.END ? undefined : Buffer.from(reply.subarray(1))
  }

  /** @returns 1 for each that is ready */
  poll(subjects: readonly { readonly handle: number; readonly phase: number }[], waitMs: number): Uint8Array {
    const request = Buffer.alloc(9 + SUBJECT_BYTES * subjects.length)
    request[0] = EGRESS_OP.POLL
    request.writeDoubleLE(waitMs, 1)
    for (const [index, { handle, phase }] of subjects.entries()) {
      request.writeUInt32LE(handle, 9 + SUBJECT_BYTES * index)
      request[13 + SUBJECT_BYTES * index] = phase
    }
    return Uint8Array.from(this.#ask([request]).subarray(1))
  }

  close(handle: number): void {
    this.#ask([handleFrame(EGRESS_OP.CLOSE, handle)])
  }

  #ask(parts: readonly Uint8Array[]): Buffer {
    const reply = this.#send(parts)
    if (reply[0] === EGRESS_REPLY.ERROR) throw new Failure<ErrorCode>(toErrorCode(reply.toString('utf8', 1)))
    return reply
  }
}
