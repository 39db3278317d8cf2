import { BrainError, messageOf } from '../../kernel/errors.ts'
import { describeLimit } from '../../contract/limits.ts'
import type { BoxedProcess } from '../launch/spawn-boxed.ts'
import { FrameReader } from '../wire/frames.ts'
import { printable, refusal } from './refusal.ts'
import { FROM_SCRIPT_CHECK } from './script-check/protocol.ts'
import type { TranspileSettings } from './transpile.ts'

const MIB = 1024 * 1024
/** The syntax tree of the largest script that is allowed can be made to take more; those of real tools take far less. */
const HEAP_MIB = 512
const LIMITS = { dataBytes: 1536 * MIB, cpuSecs: 5 }
const FRAME_BYTES = 4096

/**
 * Whether generated JavaScript is what the generator emits: definitions alone, of familiar names. The process that made
 * it read a hostile upload and may have been turned, so another one judges, in a box of its own that sees nothing but
 * this text. And still the box in which the script runs is what holds it (sandbox J1, decision 0012).
 */
export class ScriptCheck {
  readonly #settings: TranspileSettings
  readonly #verdict = Promise.withResolvers<void>()
  #started = false
  #ready = false
  #settled = false
  #output = ''
  #gone: { readonly how?: string; readonly closed?: true } = {}
  #child: BoxedProcess | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #onAbort = (): void =>
    this.#end(new BrainError('overloaded', 'Cannot check the generated JavaScript: the server is stopping'))

  constructor(settings: TranspileSettings) {
    this.#settings = settings
    // Whoever does not ask for the verdict is not told of it.
    this.#verdict.promise.catch(() => {})
  }

  /** Starts the child, which takes as long as judging a small script; {@link judge} does it where this was not called. */
  start(): void {
    if (this.#started || this.#settled) return
    this.#started = true
    const { transpiler, spawn, signal } = this.#settings
    if (signal.aborted) return this.#onAbort()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    const reader = new FrameReader(FRAME_BYTES, {
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => this.#end(costly(`is judged with ${reason}`)),
    })
    try {
      this.#child = spawn(
        { program: transpiler.scriptCheck, nodeFlags: [`--max-old-space-size=${HEAP_MIB}`], limits: LIMITS },
        {
          onChannel: { onBytes: (bytes) => reader.push(bytes), onClose: () => this.#onGone({ closed: true }) },
          onOutput: (_fd, bytes) => {
            if (this.#output.length < FRAME_BYTES) this.#output += bytes.toString('utf8', 0, FRAME_BYTES)
          },
          onExit: (how) => this.#onGone({ how }),
        },
      )
    } catch (cause) {
      this.#end(unavailable(messageOf(cause)))
    }
  }

  /**
   * Once.
   *
   * @throws BrainError `invalid_request` naming the difference; `sandbox_unavailable` when no child can be started.
   */
  judge(script: Buffer): Promise<void> {
    this.start()
    const { limits } = this.#settings
    const tooLong = () => this.#end(costly(`takes longer than ${describeLimit('admissionSecs', limits)} to check`))
    if (!this.#settled) this.#timer = setTimeout(tooLong, limits.admissionSecs * 1000)
    const size = Buffer.allocUnsafe(4)
    size.writeUInt32LE(script.length)
    for (const part of [size, script]) if (!this.#settled) this.#child?.channel.write(part)
    return this.#verdict.promise
  }

  /** Ends the child, if there is one. */
  close(): void {
    this.#end(unavailable('it was closed'))
  }

  #onFrame(type: number, body: Buffer): void {
    if (type === FROM_SCRIPT_CHECK.READY) this.#ready = true
    else if (type !== FROM_SCRIPT_CHECK.VERDICT) this.#end(costly('is judged with an unknown frame'))
    else if (body.length === 0) this.#end()
    else this.#end(unlike(printable(body.toString('utf8'))))
  }

  #onGone(part: { readonly how?: string; readonly closed?: true }): void {
    this.#gone = { ...this.#gone, ...part }
    const { how, closed } = this.#gone
    if (how === undefined || closed === undefined) return
    if (!this.#ready) return this.#end(unavailable(`${how}: ${printable(this.#output, 500)}`))
    this.#end(costly(`takes more than ${LIMITS.cpuSecs} seconds of CPU time or ${HEAP_MIB} MiB to check (${how})`))
  }

  /** Whatever happened first counts; the child never outlives it. */
  #end(error?: BrainError): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#settings.signal.removeEventListener('abort', this.#onAbort)
    this.#child?.kill()
    this.#child?.channel.close()
    if (error === undefined) this.#verdict.resolve()
    else this.#verdict.reject(error)
  }
}

const unlike = (reason: string): BrainError =>
  refusal(
    'cannot_transpile',
    `its generated JavaScript is not what the generator emits: ${reason}. Rename what its types or exports call so`,
  )

const costly = (reason: string): BrainError => refusal('too_complex', `its generated JavaScript ${reason}`)

const unavailable = (reason: string): BrainError =>
  new BrainError('sandbox_unavailable', `Cannot start the check of generated JavaScript: ${reason}`)
