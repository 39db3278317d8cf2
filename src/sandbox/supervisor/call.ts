import { describeLimit, type Limits } from '../../contract/limits.ts'
import { errorText, REPLY_ERROR } from '../wire/box-frames.ts'
import type { ComponentRole, Mount } from '../sandbox.ts'
import type { Artifact } from '../admission/artifact.ts'
import type { Box } from './box.ts'

/** As InvocationEnd, with the guest's text still as bytes. */
export type CallEnd =
  | { readonly type: 'returned'; readonly text: Buffer }
  | { readonly type: 'failed' | 'failedRetryable' | 'trapped'; readonly code: string; readonly message: string }
  | { readonly type: 'refused'; readonly code: 'overloaded' | 'environment_not_ready'; readonly message: string }
  /** The artifact cannot be read: the server may make it again and call again. */
  | { readonly type: 'unloadable'; readonly code: 'environment_not_ready'; readonly message: string }
  | { readonly type: 'stopped'; readonly reason: 'timeout' | 'cancelled' }
  | { readonly type: 'lost'; readonly message: string }

/** The files that one call holds, behind requests as bytes (wire/files.ts). */
export type CallFiles = {
  /** @returns the parts of the reply */
  answer(request: Buffer): readonly Buffer[]
  /** Closes every handle and removes the scratch directory. */
  close(): void
  /** Requests answered so far. */
  readonly ops: number
  /** There were more requests than BRAIN_MAX_GUEST_FILE_OPS. */
  readonly exhausted: boolean
}

export type OpenFiles = (mounts: readonly Mount[], secrets: Readonly<Record<string, string>>) => CallFiles

/** The HTTP requests of one call, behind requests as bytes (wire/egress.ts). */
export type CallEgress = {
  /** @throws RangeError when the request is none */
  answer(request: Buffer): Promise<readonly Buffer[]>
  /** Closes every connection. */
  close(): void
  /** Milliseconds that the supervisor computed for them. */
  readonly workMs: number
}

/** Makes what a call reaches the world with, out of what it was granted. */
export type CallBrokers = {
  readonly files: OpenFiles
  readonly egress: (network: readonly string[], owner: string) => CallEgress
}

export type CallOrder = {
  readonly id: number
  readonly key: string
  readonly owner: string
  readonly role: ComponentRole
  readonly component: string
  readonly mounts: readonly Mount[]
  readonly secrets: Readonly<Record<string, string>>
  readonly network: readonly string[]
  /** The INVOKE frame, ready to be sent. */
  readonly invoke: Buffer
  /** Monotonic; Infinity = none. */
  readonly deadline: number
}

/** One invocation: everything that it holds, and what it has used. */
export class Call implements CallOrder {
  readonly id: number
  readonly key: string
  readonly owner: string
  readonly role: ComponentRole
  readonly component: string
  readonly mounts: readonly Mount[]
  readonly secrets: Readonly<Record<string, string>>
  readonly network: readonly string[]
  readonly invoke: Buffer
  readonly deadline: number
  /** The box that it runs in, or will. */
  box: Box | undefined
  artifact: Artifact | undefined
  hostCalls = 0
  /** It has a permit. */
  admitted = false
  ended = false
  readonly #limits: Limits
  readonly #brokers: CallBrokers
  #files: CallFiles | undefined
  #filesMs = 0
  #egress: CallEgress | undefined

  constructor(order: CallOrder, limits: Limits, brokers: CallBrokers) {
    this.id = order.id
    this.key = order.key
    this.owner = order.owner
    this.role = order.role
    this.component = order.component
    this.mounts = order.mounts
    this.secrets = order.secrets
    this.network = order.network
    this.invoke = order.invoke
    this.deadline = order.deadline
    this.#limits = limits
    this.#brokers = brokers
  }

  get fileOps(): number {
    return this.#files?.ops ?? 0
  }

  /** Time that the supervisor spent on its files and requests: the call's as well, for the limit of its CPU time. */
  get servedMs(): number {
    return this.#filesMs + (this.#egress?.workMs ?? 0)
  }

  /** The reply to a file request. The broker is made at the first one: most calls never ask. */
  answerFiles(request: Buffer): readonly Buffer[] {
    const started = performance.now()
    try {
      this.#files ??= this.#brokers.files(this.mounts, this.secrets)
      return this.#files.answer(request)
    } finally {
      this.#filesMs += performance.now() - started
    }
  }

  /** The reply to a step of an HTTP request. @throws RangeError when it is none */
  answerEgress(request: Buffer): Promise<readonly Buffer[]> {
    this.#egress ??= this.#brokers.egress(this.network, this.owner)
    return this.#egress.answer(request)
  }

  /** The limit that this call has used up, as the end that it brings. */
  exhausted(): CallEnd | undefined {
    if (this.hostCalls > this.#limits.hostCalls)
      return trapped(
        'host_call_limit',
        `The ${this.role} made more host calls than ${describeLimit('hostCalls', this.#limits)}`,
      )
    if (this.#files?.exhausted === true)
      return trapped(
        'file_limit',
        `The ${this.role} used more than ${describeLimit('guestFileOps', this.#limits)} on files`,
      )
    const { guestCpuSecs } = this.#limits
    if (guestCpuSecs > 0 && this.servedMs > guestCpuSecs * 1000) return this.outOfTime()
    return undefined
  }

  outOfTime(): CallEnd {
    return trapped(
      'compute_limit',
      `The ${this.role} computed longer than ${describeLimit('guestCpuSecs', this.#limits)}`,
    )
  }

  /** Closes its files and connections, and removes its scratch directory. */
  release(): void {
    this.#egress?.close()
    this.#egress = undefined
    this.#files?.close()
    this.#files = undefined
  }
}

export const trapped = (code: string, message: string): CallEnd => ({ type: 'trapped', code, message })

/** A refused host call, as the box gets it. */
export const refusal = (code: string, message: string): Buffer =>
  Buffer.concat([Buffer.of(REPLY_ERROR), Buffer.from(errorText(code, message))])
