import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { Limits } from '../../contract/limits.ts'
import { OneShotBox } from '../launch/one-shot-box.ts'
import type { BoxedEvents, BoxedProcess, BoxLimits } from '../launch/spawn-boxed.ts'
import { FrameReader } from '../wire/frames.ts'
import { READY } from './child-ready.ts'
import { printable } from './refusal.ts'

const MAX_WORDS = 8192
const MAX_REASON = 500

type ChildStart = { readonly program: Buffer; readonly nodeFlags: readonly string[]; readonly limits: BoxLimits }

/** Starts a child in a box; `compose` binds it to the level and the launcher. */
export type SpawnChild = (start: ChildStart, events: BoxedEvents) => BoxedProcess

export type ChildSettings = {
  readonly spawn: SpawnChild
  readonly limits: Limits
  /** Ends the child when the server stops. */
  readonly signal: AbortSignal
}

/** What a child is for, and how its ends are told. */
export type ChildTask = ChildStart & {
  /** After "Cannot". */
  readonly action: string
  /** Frames of more bytes than this are none. */
  readonly frameBytes: number
  /** It runs. Once, if at all. */
  readonly onReady?: () => void
  /** Frames but READY; the body is valid until this returns. */
  readonly onFrame: (type: number, body: Buffer) => void
  /** The child answered with something that is no frame of its protocol. */
  readonly onBroken: (reason: string) => BrainError
  /** It is not done `admissionSecs` after it was sent its work. */
  readonly onLate: () => BrainError
  /** It ended on its own, after READY: by a limit, or because its work broke it. */
  readonly onDeath: (how: string) => BrainError
}

/**
 * A boxed process that serves one upload: it is sent its work once and answers in frames. Whatever happens first decides
 * what the work comes to, and the child never outlives that. Until it is sent its work it may wait for as long as one likes.
 */
export class AdmissionChild<Result> {
  readonly #settings: ChildSettings
  readonly #task: ChildTask
  readonly #result = Promise.withResolvers<Result>()
  #box: OneShotBox | undefined
  #timer: NodeJS.Timeout | undefined
  #isReady = false
  #settled = false
  readonly #onAbort = (): void => this.fail(new BrainError('overloaded', `${this.#cannot} the server is stopping`))

  /** Starts it. What cannot be started is told by `result`. */
  constructor(settings: ChildSettings, task: ChildTask) {
    this.#settings = settings
    this.#task = task
    // Whoever ends it early does not ask for its result.
    this.#result.promise.catch(() => {})
    if (settings.signal.aborted) this.#onAbort()
    else this.#start()
  }

  #start(): void {
    const { spawn, signal } = this.#settings
    const task = this.#task
    signal.addEventListener('abort', this.#onAbort, { once: true })
    const reader = new FrameReader(task.frameBytes, {
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => this.fail(task.onBroken(reason)),
    })
    try {
      this.#box = new OneShotBox((events) => spawn(task, events), MAX_WORDS, {
        onBytes: (bytes) => reader.push(bytes),
        onEnd: ({ how, words }) =>
          this.fail(this.#isReady ? task.onDeath(how) : this.#unavailable(`${how}: ${printable(words, MAX_REASON)}`)),
      })
    } catch (cause) {
      this.fail(this.#unavailable(messageOf(cause)))
    }
  }

  /**
   * What its work comes to.
   *
   * @throws BrainError of the task; `sandbox_unavailable` where no child can be started; `overloaded` when the server stops.
   */
  get result(): Promise<Result> {
    return this.#result.promise
  }

  /** It runs, and nothing has happened yet. */
  get isReady(): boolean {
    return this.#isReady && !this.#settled
  }

  /** It serves nothing any more. */
  get isOver(): boolean {
    return this.#settled
  }

  /** Gives it what it loads before its work, of which it is no part. The caller gives the buffers away. */
  load(...parts: readonly Buffer[]): void {
    if (!this.#settled) this.#box?.write(...parts)
  }

  /** Gives it its work, which from now on has its time. The caller gives the buffers away. */
  send(...parts: readonly Buffer[]): void {
    if (this.#settled) return
    const ms = this.#settings.limits.admissionSecs * 1000
    this.#timer = setTimeout(() => this.fail(this.#task.onLate()), ms)
    this.#box?.write(...parts)
  }

  succeed(result: Result): void {
    if (this.#end()) this.#result.resolve(result)
  }

  fail(error: BrainError): void {
    if (this.#end()) this.#result.reject(error)
  }

  /** Ends it, where it is still there. */
  close(): void {
    this.fail(this.#unavailable('it was closed'))
  }

  #onFrame(type: number, body: Buffer): void {
    if (this.#settled) return
    if (type !== READY) return this.#task.onFrame(type, body)
    if (this.#isReady) return
    this.#isReady = true
    this.#task.onReady?.()
  }

  get #cannot(): string {
    return `Cannot ${this.#task.action}:`
  }

  #unavailable(reason: string): BrainError {
    return new BrainError('sandbox_unavailable', `${this.#cannot} ${reason}`)
  }

  #end(): boolean {
    if (this.#settled) return false
    this.#settled = true
    clearTimeout(this.#timer)
    this.#settings.signal.removeEventListener('abort', this.#onAbort)
    this.#box?.close()
    return true
  }
}

/** Bytes as children read them: u32 length, then the bytes. */
export function sized(bytes: Buffer): Buffer {
  const size = Buffer.allocUnsafe(4)
  size.writeUInt32LE(bytes.length)
  return Buffer.concat([size, bytes])
}
