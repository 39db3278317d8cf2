import { describeLimit, type Limits } from '../../contract/limits.ts'
import { errorText, REPLY_ERROR } from '../wire/box-frames.ts'
import type { Mount } from '../sandbox.ts'
import type { Artifact } from '../admission/artifact.ts'
import type { Box } from './box.ts'

/** As InvocationEnd, with the guest's text still as bytes. */
export type CallEnd =
  | { readonly type: 'returned'; readonly text: Buffer }
  | { readonly type: 'failed' | 'trapped'; readonly code: string; readonly message: string }
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

export type CallOrder = {
  readonly id: number
  readonly key: string
  readonly owner: string
  readonly component: string
  readonly mounts: readonly Mount[]
  readonly secrets: Readonly<Record<string, string>>
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
  readonly component: string
  readonly mounts: readonly Mount[]
  readonly secrets: Readonly<Record<string, string>>
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
  readonly #openFiles: OpenFiles
  #files: CallFiles | undefined
  #filesMs = 0

  constructor(order: CallOrder, limits: Limits, openFiles: OpenFiles) {
    this.id = order.id
    this.key = order.key
    this.owner = order.owner
    this.component = order.component
    this.mounts = order.mounts
    this.secrets = order.secrets
    this.invoke = order.invoke
    this.deadline = order.deadline
    this.#limits = limits
    this.#openFiles = openFiles
  }

  get fileOps(): number {
    return this.#files?.ops ?? 0
  }

  /** Time that the supervisor spent on its files: the call's as well, for the limit of its CPU time. */
  get filesMs(): number {
    return this.#filesMs
  }

  /** The reply to a file request. The broker is made at the first one: most calls never ask. */
  answerFiles(request: Buffer): readonly Buffer[] {
    const started = performance.now()
    try {
      this.#files ??= this.#openFiles(this.mounts, this.secrets)
      return this.#files.answer(request)
    } finally {
      this.#filesMs += performance.now() - started
    }
  }

  /** The limit that this call has used up, as the end that it brings. */
  exhausted(): CallEnd | undefined {
    if (this.hostCalls > this.#limits.hostCalls)
      return trapped(
        'host_call_limit',
        `The tool made more host calls than ${describeLimit('hostCalls', this.#limits)}`,
      )
    if (this.#files?.exhausted === true)
      return trapped('file_limit', `The tool used more than ${describeLimit('guestFileOps', this.#limits)} on files`)
    const { guestCpuSecs } = this.#limits
    if (guestCpuSecs > 0 && this.#filesMs > guestCpuSecs * 1000) return this.outOfTime()
    return undefined
  }

  outOfTime(): CallEnd {
    return trapped('compute_limit', `The tool computed longer than ${describeLimit('guestCpuSecs', this.#limits)}`)
  }

  /** Closes its files and removes its scratch directory. */
  release(): void {
    this.#files?.close()
    this.#files = undefined
  }
}

export const trapped = (code: string, message: string): CallEnd => ({ type: 'trapped', code, message })

/** A refused host call, as the box gets it. */
export const refusal = (code: string, message: string): Buffer =>
  Buffer.concat([Buffer.of(REPLY_ERROR), Buffer.from(errorText(code, message))])
