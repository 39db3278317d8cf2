import type { BrainError } from '../../kernel/errors.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import { AdmissionChild, sized } from './admission-child.ts'
import { printable, refusal } from './refusal.ts'
import { FROM_SCRIPT_CHECK } from './script-check/protocol.ts'
import { tooMuchScript, type TranspileSettings } from './transpile.ts'

const MIB = 1024 * 1024
/** The syntax tree of the largest script that is allowed can be made to take more; those of real tools take far less. */
const HEAP_MIB = 512
const LIMITS = { dataBytes: 1536 * MIB, cpuSecs: 5 }
/** What is rearranged for boxes is a little longer than it was; where that passes the limit, the size can be told. */
const MAX_GROWTH = 2
/** It lives too briefly for optimised code to pay, and makes a syntax tree, all of which survives. */
const NODE_FLAGS = [
  `--max-old-space-size=${HEAP_MIB}`,
  '--no-opt',
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
]

/**
 * Whether generated JavaScript is what the generator emits, definitions alone, of familiar names; and that script as boxes
 * load it. The process that made it read a hostile upload and may have been turned, so another one judges, in a box of its
 * own that sees nothing but this text. And still the box in which the script runs is what holds it (sandbox J1, decisions
 * 0012 and 0014).
 */
export class ScriptCheck {
  readonly #child: AdmissionChild<Buffer>
  readonly #limits: Limits

  /** Starts the child: until the generator is done it has time to load. */
  constructor(settings: TranspileSettings) {
    const { transpiler, limits } = settings
    this.#limits = limits
    this.#child = new AdmissionChild(settings, {
      action: 'check the generated JavaScript',
      program: transpiler.scriptCheck,
      nodeFlags: NODE_FLAGS,
      limits: LIMITS,
      frameBytes: MAX_GROWTH * limits.transpiledBytes,
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => costly(`is judged with ${reason}`),
      onLate: () => costly(`takes longer than ${describeLimit('admissionSecs', limits)} to check`),
      onDeath: (how) =>
        costly(`takes more than ${LIMITS.cpuSecs} seconds of CPU time or ${HEAP_MIB} MiB to check (${how})`),
    })
  }

  /** Whether it can be given a script. */
  get isThere(): boolean {
    return !this.#child.isOver
  }

  /** Once. */
  judge(script: Buffer): void {
    this.#child.send(sized(script))
  }

  /**
   * The script for boxes, where it was judged.
   *
   * @throws BrainError `invalid_request` naming the difference; `sandbox_unavailable` when no child can be started.
   */
  get script(): Promise<Buffer> {
    return this.#child.result
  }

  /** Ends the child, where it is still there. */
  close(): void {
    this.#child.close()
  }

  #onFrame(type: number, body: Buffer): void {
    const { transpiledBytes } = this.#limits
    if (type === FROM_SCRIPT_CHECK.FAULT) this.#child.fail(unlike(printable(body.toString('utf8'))))
    else if (type !== FROM_SCRIPT_CHECK.SCRIPT) this.#child.fail(costly('is judged with an unknown frame'))
    else if (body.length > transpiledBytes) this.#child.fail(tooMuchScript(body.length, this.#limits))
    else this.#child.succeed(Buffer.from(body))
  }
}

const unlike = (reason: string): BrainError =>
  refusal(
    'cannot_transpile',
    `its generated JavaScript is not what the generator emits: ${reason}. Rename what its types or exports call so`,
  )

const costly = (reason: string): BrainError => refusal('too_complex', `its generated JavaScript ${reason}`)
