import type { BrainError } from '../../kernel/errors.ts'
import { describeLimit } from '../../contract/limits.ts'
import { AdmissionChild, sized } from './admission-child.ts'
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
  #child: AdmissionChild<void> | undefined

  constructor(settings: TranspileSettings) {
    this.#settings = settings
  }

  /** Starts the child, which takes as long as judging a small script; {@link judge} does it where this was not called. */
  start(): AdmissionChild<void> {
    const { transpiler, limits } = this.#settings
    return (this.#child ??= new AdmissionChild(this.#settings, {
      action: 'check the generated JavaScript',
      program: transpiler.scriptCheck,
      nodeFlags: [`--max-old-space-size=${HEAP_MIB}`],
      limits: LIMITS,
      frameBytes: FRAME_BYTES,
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => costly(`is judged with ${reason}`),
      onLate: () => costly(`takes longer than ${describeLimit('admissionSecs', limits)} to check`),
      onDeath: (how) =>
        costly(`takes more than ${LIMITS.cpuSecs} seconds of CPU time or ${HEAP_MIB} MiB to check (${how})`),
    }))
  }

  /**
   * Once.
   *
   * @throws BrainError `invalid_request` naming the difference; `sandbox_unavailable` when no child can be started.
   */
  async judge(script: Buffer): Promise<void> {
    const child = this.start()
    child.send(sized(script))
    await child.result
  }

  /** Ends the child, if there is one. */
  close(): void {
    this.#child?.close()
  }

  #onFrame(type: number, body: Buffer): void {
    if (type !== FROM_SCRIPT_CHECK.VERDICT) this.#child?.fail(costly('is judged with an unknown frame'))
    else if (body.length === 0) this.#child?.succeed()
    else this.#child?.fail(unlike(printable(body.toString('utf8'))))
  }
}

const unlike = (reason: string): BrainError =>
  refusal(
    'cannot_transpile',
    `its generated JavaScript is not what the generator emits: ${reason}. Rename what its types or exports call so`,
  )

const costly = (reason: string): BrainError => refusal('too_complex', `its generated JavaScript ${reason}`)
