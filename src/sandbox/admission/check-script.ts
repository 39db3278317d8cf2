import { BrainError, messageOf } from '../../kernel/errors.ts'
import { describeLimit } from '../../contract/limits.ts'
import type { BoxedProcess } from '../launch/spawn-boxed.ts'
import { FrameReader } from '../wire/frames.ts'
import { printable, refusal } from './refusal.ts'
import { FROM_SCRIPT_CHECK } from './script-check/protocol.ts'
import type { TranspileSettings } from './transpile.ts'

const MIB = 1024 * 1024
/** The syntax tree of the largest script that is allowed can be made to take more; jco's, of 1.4 MB, takes 150 MiB. */
const HEAP_MIB = 512
const LIMITS = { dataBytes: 1536 * MIB, cpuSecs: 5 }
const FRAME_BYTES = 4096

/**
 * Whether generated JavaScript is what the generator emits: definitions alone, of familiar names. The process that made
 * it read a hostile upload and may have been turned, so another one judges, in a box of its own that sees nothing but
 * this text. And still the box in which the script runs is what holds it (sandbox J1, decision 0012).
 *
 * @throws BrainError `invalid_request` naming the difference; `sandbox_unavailable` when no child can be started.
 */
export function checkScript(script: Buffer, settings: TranspileSettings): Promise<void> {
  return new Promise((resolve, reject) => new ScriptCheck(settings, { resolve, reject }).start(script))
}

type Settle = { readonly resolve: () => void; readonly reject: (error: BrainError) => void }

class ScriptCheck {
  readonly #settings: TranspileSettings
  readonly #settle: Settle
  #ready = false
  #settled = false
  #output = ''
  #gone: { readonly how?: string; readonly closed?: true } = {}
  #child: BoxedProcess | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #onAbort = (): void =>
    this.#end(new BrainError('overloaded', 'Cannot check the generated JavaScript: the server is stopping'))

  constructor(settings: TranspileSettings, settle: Settle) {
    this.#settings = settings
    this.#settle = settle
  }

  start(script: Buffer): void {
    const { transpiler, spawn, limits, signal } = this.#settings
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
      return this.#end(unavailable(messageOf(cause)))
    }
    const limit = describeLimit('admissionSecs', limits)
    this.#timer = setTimeout(
      () => this.#end(costly(`takes longer than ${limit} to check`)),
      limits.admissionSecs * 1000,
    )
    const size = Buffer.allocUnsafe(4)
    size.writeUInt32LE(script.length)
    this.#child.channel.write(size)
    this.#child.channel.write(script)
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
    if (error === undefined) this.#settle.resolve()
    else this.#settle.reject(error)
  }
}

const unlike = (reason: string): BrainError =>
  refusal(
    'cannot_transpile',
    `its generated JavaScript is not what the generator emits: ${reason}. Rename what it exports`,
  )

const costly = (reason: string): BrainError => refusal('too_complex', `its generated JavaScript ${reason}`)

const unavailable = (reason: string): BrainError =>
  new BrainError('sandbox_unavailable', `Cannot start the check of generated JavaScript: ${reason}`)
