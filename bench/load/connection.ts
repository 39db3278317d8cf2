import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import type { Lane } from './plan.ts'

const KEY_DIGITS = 12
const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = /^content-length: *(\d+)/im

/**
 * One keep-alive HTTP/1.1 connection that sends the same request with a fresh Idempotency-Key each time. It does as little
 * as can be done, since it shares the processors with the server that it measures; every answer is checked all the same.
 */
export class Connection {
  readonly #socket: Socket
  readonly #lane: Lane
  readonly #request: Buffer
  /** Where the digits of the key stand that change; a GET has none. */
  readonly #keyAt: number | undefined
  readonly #onAnswer: () => void
  readonly #onFault: (reason: string) => void
  #sent = 0
  #received: Buffer = Buffer.alloc(0)

  constructor(port: number, lane: Lane, events: { onAnswer: () => void; onFault: (reason: string) => void }) {
    this.#lane = lane
    this.#onAnswer = events.onAnswer
    this.#onFault = events.onFault
    const key = `${randomBytes(8).toString('hex')}-${'0'.repeat(KEY_DIGITS)}`
    const { head, body } = printRequest(port, lane, key)
    this.#request = Buffer.from(`${head}${body}`)
    this.#keyAt = lane.method === 'POST' ? head.indexOf(key) + key.length - KEY_DIGITS : undefined
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (chunk: Buffer) => this.#onData(chunk))
    this.#socket.on('error', (error) => this.#onFault(error.message))
    this.#socket.on('close', () => this.#onFault('the connection was closed'))
  }

  send(): void {
    if (this.#keyAt !== undefined)
      this.#request.write(String(this.#sent++).padStart(KEY_DIGITS, '0'), this.#keyAt, 'latin1')
    this.#socket.write(this.#request)
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    const data = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    this.#received = data
    const headEnd = data.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = data.toString('latin1', 0, headEnd)
    const status = Number(head.slice(9, 12))
    const size = status === 204 ? 0 : Number(LENGTH.exec(head)?.[1] ?? Number.NaN)
    if (Number.isNaN(size)) return this.#onFault(`an answer without content-length: ${head.slice(0, 200)}`)
    const bodyAt = headEnd + HEAD_END.length
    if (data.length < bodyAt + size) return
    this.#received = Buffer.alloc(0)
    const body = data.toString('utf8', bodyAt)
    const missing = this.#lane.contains.find((part) => !body.includes(part))
    if (status !== this.#lane.status) this.#onFault(`status ${status}: ${body.slice(0, 500)}`)
    else if (missing !== undefined) this.#onFault(`an answer without ${missing}: ${body.slice(0, 500)}`)
    else this.#onAnswer()
  }
}

function printRequest(port: number, lane: Lane, key: string): { head: string; body: string } {
  const body = lane.body ?? ''
  const lines = [`${lane.method} ${lane.path} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'connection: keep-alive']
  if (lane.method === 'POST')
    lines.push(
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      `idempotency-key: ${key}`,
    )
  return { head: `${lines.join('\r\n')}\r\n\r\n`, body }
}
