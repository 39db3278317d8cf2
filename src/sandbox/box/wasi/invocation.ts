import { LIMITS } from '../../../contract/limits.ts'
import type { HostMethod } from '../../sandbox.ts'
import { LimitReached } from './ending.ts'
import { EgressRequests } from './egress-requests.ts'
import { FileRequests } from './file-requests.ts'

/** The box's ways out (box/rpc.ts). */
export type BoxChannel = {
  /** @returns the reply, valid until the next request */
  fileRequest(parts: readonly Uint8Array[]): Buffer
  /** @returns the reply, valid until the next request */
  egressRequest(parts: readonly Uint8Array[]): Buffer
  /** @throws an Error with the guest's tool-error as its own `payload` */
  hostCall(method: HostMethod, texts: readonly (string | undefined)[]): string
  writeOutput(fd: 1 | 2, bytes: Uint8Array): void
}

export type WasiLimits = { readonly guestHandles: number }

/** What a call may see. `mounts`: guest paths; the broker's handles 0, 1, … are these, in this order. */
export type InvocationContext = { readonly mounts: readonly string[] }

/** Text kept of each standard stream; what follows is dropped here already. */
const OUTPUT_BYTES = 64 * 1024

/** Everything that exists for one call only. After its end, nothing that is still held of it works. */
export class Invocation {
  readonly mounts: readonly string[]
  readonly channel: BoxChannel
  readonly files: FileRequests
  readonly egress: EgressRequests
  /** Bytes that stdout and stderr still take. */
  readonly outputLeft = { 1: OUTPUT_BYTES, 2: OUTPUT_BYTES }
  /** The same for the whole call, fresh for each. */
  insecureSeed: [bigint, bigint] | undefined
  readonly #mostHandles: number
  #handles = 0
  #ended = false

  constructor(context: InvocationContext, channel: BoxChannel, limits: WasiLimits) {
    this.mounts = context.mounts
    this.channel = channel
    this.files = new FileRequests((parts) => {
      this.#assertOpen()
      return channel.fileRequest(parts)
    })
    this.egress = new EgressRequests((parts) => {
      this.#assertOpen()
      return channel.egressRequest(parts)
    })
    this.#mostHandles = limits.guestHandles
  }

  /** Counts a new handle. @throws LimitReached */
  takeHandle(): void {
    if (this.#handles >= this.#mostHandles) {
      const { unit, variable } = LIMITS.guestHandles
      const limit = `${this.#mostHandles} ${unit} (${variable})`
      throw new LimitReached('handle_limit', `The component holds more than ${limit}`)
    }
    this.#handles++
  }

  dropHandle(): void {
    this.#handles--
  }

  get isOver(): boolean {
    return this.#ended
  }

  end(): void {
    this.#ended = true
  }

  #assertOpen(): void {
    if (this.#ended) throw new Error('the invocation of this handle is over')
  }
}

/** The current invocation, if there is one: imports are called with it, and trap without it. */
export class CurrentInvocation {
  #current: Invocation | undefined

  get(): Invocation {
    if (this.#current === undefined) throw new Error('host imports are not available while an instance is made')
    return this.#current
  }

  begin(invocation: Invocation): void {
    this.#current = invocation
  }

  end(): void {
    this.#current?.end()
    this.#current = undefined
  }
}

/** Something that a guest holds by a handle. Counted from its making until the guest drops it. */
export abstract class Resource {
  readonly #invocation: Invocation
  #dropped = false

  constructor(invocation: Invocation) {
    invocation.takeHandle()
    this.#invocation = invocation
  }

  /** The call that this belongs to. */
  get invocation(): Invocation {
    return this.#invocation
  }

  /** Called by jco when the guest drops its handle; must not throw. */
  [Symbol.dispose](): void {
    if (this.#dropped) return
    this.#dropped = true
    this.#invocation.dropHandle()
    this.onDrop()
  }

  protected onDrop(): void {}
}
