import type { BrainError } from '../../kernel/errors.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import { AdmissionChild, type ChildSettings, sized } from './admission-child.ts'
import { isCoreName } from './artifact.ts'
import { printable, quoted, refusal } from './refusal.ts'
import { FROM_TRANSPILER, TRANSPILE_FAULT, type TranspileOrder, type TranspilerStart } from './transpiler/protocol.ts'
import type { TranspilerProgram } from './transpiler/program.ts'

const MIB = 1024 * 1024
/** sandbox J3: 1.3 kB can ask for minutes and gigabytes. */
const CPU_SECS = 5
const DATA_BYTES = 1536 * MIB
const NODE_FLAGS = ['--max-old-space-size=512', '--wasm-max-table-size=65536']
/** Below this size jco is done before its optimised code would pay; above, unoptimised code takes twice as long. */
const SMALL_BYTES = 4 * MIB
const MAX_CORES = 128
const MAX_TEXT_BYTES = 8192
/** A frame is a script, or a core that jco made, and a little head. */
const FRAME_SLACK = 1024

export type TranspileSettings = ChildSettings & { readonly transpiler: TranspilerProgram }

type Slice = { readonly offset: number; readonly size: number }

/** A core by name: where it lies in the upload, or the bytes that jco made. */
export type TranspiledCore = { readonly name: string } & (Slice | { readonly bytes: Buffer })

/** What came back, bounded but otherwise unchecked: hostile JavaScript, and cores. */
export type TranspiledComponent = { readonly js: Buffer; readonly cores: readonly TranspiledCore[] }

export type TranspileEvents = {
  /** The generator is loaded and begins. Once, if at all. */
  readonly onReady?: () => void
  /** The script is there, and the cores follow. Once, if at all. */
  readonly onScript?: (js: Buffer) => void
}

/** An upload, and where the gate found core modules in it. */
export type TranspileWork = { readonly upload: Buffer; readonly modules: readonly Slice[] }

/** Transpiles an upload. @throws as {@link Generator.transpile} */
export const transpile = (
  upload: Buffer,
  modules: readonly Slice[],
  settings: TranspileSettings,
  events?: TranspileEvents,
): Promise<TranspiledComponent> => Generator.for(upload.length, settings).transpile({ upload, modules }, events)

/**
 * The generator in a boxed process that serves one upload alone and is killed afterwards: it can be made to break, to loop
 * and to fill memory, and whatever it returns is foreign bytes.
 */
export class Generator {
  readonly #settings: TranspileSettings
  readonly #isForSmall: boolean
  readonly #child: AdmissionChild<TranspiledComponent>
  #work: TranspileWork | undefined
  #events: TranspileEvents = {}
  readonly #cores: TranspiledCore[] = []
  #js: Buffer | undefined
  #privateBytes = 0
  #sliceBytes = 0

  /** One for an upload of a size. */
  static for(bytes: number, settings: TranspileSettings): Generator {
    return new Generator(settings, bytes < SMALL_BYTES)
  }

  /** Starts it, and it loads. @param isForSmall whether uploads are not large; default: so it is */
  constructor(settings: TranspileSettings, isForSmall = true) {
    this.#settings = settings
    this.#isForSmall = isForSmall
    const { transpiler, limits } = settings
    this.#child = new AdmissionChild(settings, {
      action: 'transpile the component',
      program: transpiler.script,
      nodeFlags: isForSmall ? [...NODE_FLAGS, '--liftoff-only'] : NODE_FLAGS,
      limits: { dataBytes: DATA_BYTES, cpuSecs: CPU_SECS },
      frameBytes: limits.transpiledBytes + FRAME_SLACK,
      onReady: () => this.#events.onReady?.(),
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => refusal('cannot_transpile', `the generator answered with ${reason}`),
      onLate: () =>
        refusal('too_complex', `transpiling it takes longer than ${describeLimit('admissionSecs', limits)}`),
      onDeath: faultOfDeath,
    })
    const start: TranspilerStart = { jco: transpiler.cores.map((core) => core.length) }
    this.#child.load(sized(Buffer.from(JSON.stringify(start))), ...transpiler.cores)
  }

  /** Whether it can be given an upload of a size. */
  suits(bytes: number): boolean {
    return !this.#child.isOver && this.#work === undefined && bytes < SMALL_BYTES === this.#isForSmall
  }

  /**
   * Once.
   *
   * @throws BrainError `invalid_request` naming the cause; `sandbox_unavailable` when no child can be started.
   */
  transpile(work: TranspileWork, events: TranspileEvents = {}): Promise<TranspiledComponent> {
    this.#work = work
    this.#events = events
    const { upload, modules } = work
    const { transpiledBytes: maxScriptBytes } = this.#settings.limits
    const order: TranspileOrder = { upload: upload.length, modules, maxScriptBytes }
    this.#child.send(sized(Buffer.from(JSON.stringify(order))), upload)
    if (this.#child.isReady) events.onReady?.()
    return this.#child.result
  }

  /** Ends it, where it is still there. */
  close(): void {
    this.#child.close()
  }

  #onFrame(type: number, body: Buffer): void {
    const work = this.#work
    if (work === undefined) return this.#child.fail(refusal('cannot_transpile', 'the generator answered unasked'))
    switch (type) {
      case FROM_TRANSPILER.SCRIPT:
        return this.#onScript(Buffer.from(body))
      case FROM_TRANSPILER.SLICE:
      case FROM_TRANSPILER.CORE:
        return this.#onCore(type, body, work)
      case FROM_TRANSPILER.DONE:
        return this.#onDone()
      case FROM_TRANSPILER.FAILED:
        return this.#child.fail(this.#faultOf(body[0] ?? 0, body.toString('utf8', 1, MAX_TEXT_BYTES)))
      default:
        return this.#child.fail(refusal('cannot_transpile', 'the generator answered with an unknown frame'))
    }
  }

  #onScript(js: Buffer): void {
    if (js.length > this.#settings.limits.transpiledBytes)
      return this.#child.fail(tooMuchScript(js.length, this.#settings.limits))
    if (this.#js !== undefined) return this.#child.fail(refusal('cannot_transpile', 'the generator made two scripts'))
    this.#js = js
    this.#events.onScript?.(js)
  }

  #onCore(type: number, body: Buffer, { upload, modules }: TranspileWork): void {
    const isSlice = type === FROM_TRANSPILER.SLICE
    const number = body.length < 4 ? 0 : body.readUInt32LE()
    const end = isSlice ? body.length : 4 + number
    if (end > body.length)
      return this.#child.fail(refusal('cannot_transpile', 'the generator answered with half a frame'))
    const name = body.toString('latin1', 4, end)
    const made = isSlice ? undefined : { bytes: Buffer.from(body.subarray(end)) }
    const source = made ?? modules[number]
    this.#privateBytes += made?.bytes.length ?? 0
    const { transpiledBytes } = this.#settings.limits
    if (source === undefined || !isCoreName(name) || this.#cores.some((core) => core.name === name))
      return this.#child.fail(refusal('cannot_transpile', `the generator named a core module ${quoted(name)}`))
    // Each core is in the upload once for every name that it has: the supervisor holds as many bytes as it is given names.
    if (!('bytes' in source)) this.#sliceBytes += source.size
    const isTooMuch = this.#privateBytes > transpiledBytes || this.#sliceBytes > upload.length
    if (this.#cores.length >= MAX_CORES || isTooMuch)
      return this.#child.fail(refusal('too_complex', 'the generator made too many core modules'))
    this.#cores.push({ name, ...source })
  }

  #onDone(): void {
    if (this.#js === undefined) return this.#child.fail(refusal('cannot_transpile', 'the generator made no JavaScript'))
    this.#child.succeed({ js: this.#js, cores: this.#cores })
  }

  #faultOf(fault: number, text: string): BrainError {
    const said = printable(text, 500)
    switch (fault) {
      case TRANSPILE_FAULT.CORE:
        return refusal('cannot_transpile', `one of its core modules cannot be compiled: ${said}`)
      case TRANSPILE_FAULT.LARGE:
        return tooMuchScript(Number.parseInt(text, 10), this.#settings.limits)
      default:
        return faultOfGenerator(said)
    }
  }
}

export function tooMuchScript(bytes: number, limits: Limits): BrainError {
  const limit = describeLimit('transpiledBytes', limits)
  return refusal('too_complex', `it becomes ${bytes} bytes of JavaScript; ${limit} are allowed`)
}

/** Only the kernel kills it with this signal: at RLIMIT_CPU, or when the machine is out of memory. */
function faultOfDeath(how: string): BrainError {
  const reason =
    how === 'SIGKILL'
      ? `transpiling it takes more than ${CPU_SECS} seconds of CPU time`
      : `transpiling it takes more than ${DATA_BYTES / MIB} MiB of memory, or breaks the generator (${how})`
  return refusal('too_complex', `${reason}. Make its types and its nesting simpler`)
}

const OFFSET = /\(at offset 0x([0-9a-f]{1,8})\)/

/** The generator's validator says where; its own breakdowns say nothing of use. */
function faultOfGenerator(said: string): BrainError {
  const [, hex] = OFFSET.exec(said) ?? []
  if (hex === undefined) return refusal('cannot_transpile', `the generator cannot translate it: ${said}`)
  const offset = Number.parseInt(hex, 16)
  return refusal('malformed', `it is malformed at byte ${offset}: ${said.replace(OFFSET, '').trim()}`, offset)
}
