import { type NetworkOrigin, parseOrigin } from '../../../contract/network-origin.ts'
import { EGRESS_OP, EGRESS_REPLY, type EgressError, packEgressError, SUBJECT_BYTES } from '../../wire/egress.ts'
import { u32 } from '../../wire/server-frames.ts'
import { packTexts } from '../../wire/texts.ts'
import { EgressFailure } from './egress-failure.ts'
import { Exchange } from './exchange.ts'
import { type EgressLimits, readRequestHead } from './request-head.ts'
import type { Lookup } from './resolve.ts'
import { WorkMeter } from './work-meter.ts'

export type EgressParts = {
  /** Origins that were granted (contract/network-origin.ts). */
  readonly network: readonly string[]
  readonly limits: EgressLimits
  readonly lookup: Lookup
}

const LONGEST_WAIT_MS = 0x7fff_ffff
const POLL_HEAD = 9
/** A guest holds fewer handles; each costs a look at every change. */
const MOST_SUBJECTS = 4096

type Reply = readonly Buffer[]
const OK = Buffer.of(EGRESS_REPLY.OK)
const DONE: Reply = [OK]
const PENDING: Reply = [Buffer.of(EGRESS_REPLY.PENDING)]
const END: Reply = [Buffer.of(EGRESS_REPLY.END)]

const refuse = (error: EgressError): Reply => [Buffer.of(EGRESS_REPLY.ERROR), Buffer.from(packEgressError(error))]

/**
 * The HTTP requests of one invocation: what its box asks is answered here, out of what it was granted. All connections end
 * with `close`.
 */
export class EgressBroker {
  readonly #parts: EgressParts
  readonly #granted: readonly NetworkOrigin[]
  readonly #exchanges = new Map<number, Exchange>()
  readonly #meter = new WorkMeter()
  #made = 0
  #closed = false
  #onChange = (): void => {}

  constructor(parts: EgressParts) {
    this.#parts = parts
    this.#granted = parts.network.flatMap((origin) => parseOrigin(origin) ?? [])
  }

  /** Milliseconds that were computed for it in this process. */
  get workMs(): number {
    return this.#meter.ms
  }

  /**
   * The reply to one request, in parts. The box asks no other before it has it.
   * @throws RangeError for what no box of ours sends
   */
  async answer(request: Buffer): Promise<Reply> {
    try {
      if (request[0] === EGRESS_OP.START) return this.#meter.run(() => this.#start(request))
      if (request[0] === EGRESS_OP.POLL) return await this.#poll(request)
      return await this.#step(request)
    } catch (error) {
      if (error instanceof EgressFailure) return refuse(error.error)
      throw error
    }
  }

  /** Closes every connection. Again: does nothing. */
  close(): void {
    this.#closed = true
    for (const exchange of this.#exchanges.values()) exchange.close()
    this.#exchanges.clear()
  }

  #start(request: Buffer): Reply {
    const { limits, lookup } = this.#parts
    const handle = this.#made++
    if (this.#closed) throw new EgressFailure('HTTP-request-denied')
    if (this.#made > limits.requests)
      throw new EgressFailure('internal-error', `more than ${limits.requests} requests (BRAIN_MAX_EGRESS_REQUESTS)`)
    const head = readRequestHead(request, this.#granted, limits)
    if (this.#exchanges.size >= limits.openRequests) throw new EgressFailure('connection-limit-reached')
    this.#exchanges.set(
      handle,
      new Exchange(head, { limits, lookup, meter: this.#meter, onChange: () => this.#onChange() }),
    )
    return [OK, u32(handle)]
  }

  #exchange(handle: number): Exchange {
    const exchange = this.#exchanges.get(handle)
    if (exchange === undefined) throw new EgressFailure('internal-error', 'no such request')
    return exchange
  }

  async #step(request: Buffer): Promise<Reply> {
    const exchange = this.#exchange(request.readUInt32LE(1))
    if (request[0] === EGRESS_OP.WRITE) {
      await this.#until(() => exchange.isWritable)
      this.#meter.run(() => exchange.write(request.subarray(5)))
      await this.#until(() => exchange.isWritable)
      return DONE
    }
    if (request[0] === EGRESS_OP.READ && request.readUInt8(5) === 1) await this.#until(() => exchange.isReady(1))
    return this.#meter.run(() => this.#stepNow(request, exchange))
  }

  #stepNow(request: Buffer, exchange: Exchange): Reply {
    switch (request[0]) {
      case EGRESS_OP.FINISH:
        exchange.finish()
        return DONE
      case EGRESS_OP.RESPONSE: {
        const response = exchange.response()
        if (response === undefined) return PENDING
        const status = Buffer.alloc(2)
        status.writeUInt16LE(response.status)
        return [OK, status, packTexts(response.fields.map((field) => Buffer.from(field, 'latin1')))]
      }
      case EGRESS_OP.READ: {
        const bytes = exchange.read()
        if (bytes === undefined) return END
        return bytes.length === 0 ? PENDING : [OK, bytes]
      }
      case EGRESS_OP.CLOSE:
        this.#exchanges.delete(request.readUInt32LE(1))
        exchange.close()
        return DONE
      default:
        throw new RangeError('an unknown request')
    }
  }

  async #poll(request: Buffer): Promise<Reply> {
    const waitMs = request.readDoubleLE(1)
    if (request.length > POLL_HEAD + MOST_SUBJECTS * SUBJECT_BYTES) throw new RangeError('too much to wait for')
    const subjects: [Exchange | undefined, number][] = []
    for (let at = POLL_HEAD; at < request.length; at += SUBJECT_BYTES)
      subjects.push([this.#exchanges.get(request.readUInt32LE(at)), request.readUInt8(at + 4)])
    const ready = (): boolean[] => subjects.map(([exchange, phase]) => exchange?.isReady(phase) ?? true)
    await this.#until(() => this.#meter.run(() => ready().includes(true)), waitMs >= 0 ? waitMs : 0)
    return this.#meter.run(() => [OK, Buffer.from(ready().map(Number))])
  }

  /** One request is answered at a time, so that one thing is waited for. */
  #until(isReached: () => boolean, mostMs = LONGEST_WAIT_MS): Promise<void> {
    if (isReached() || mostMs === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#onChange = () => {}
        resolve()
      }
      const timer = setTimeout(done, Math.min(mostMs, LONGEST_WAIT_MS))
      this.#onChange = () => {
        if (isReached()) done()
      }
    })
  }
}
