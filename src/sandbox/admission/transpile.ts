import { BrainError } from '../../kernel/errors.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import type { BoxedEvents, BoxedProcess, BoxLimits } from '../launch/spawn-boxed.ts'
import { FrameReader } from '../wire/frames.ts'
import { isCoreName } from './artifact.ts'
import { printable, quoted, refusal } from './refusal.ts'
import { FROM_TRANSPILER, TRANSPILE_FAULT, type TranspileOrder } from './transpiler/protocol.ts'
import type { TranspilerProgram } from './transpiler/program.ts'

const MIB = 1024 * 1024
/** sandbox J3: 1.3 kB can ask for minutes and gigabytes. */
const CPU_SECS = 5
const DATA_BYTES = 1536 * MIB
const NODE_FLAGS = ['--max-old-space-size=512', '--wasm-max-table-size=65536']
/** Below this size jco is done before its optimised code would pay; above, unoptimised code takes twice as long. */
const SMALL_BYTES = 4 * MIB
const MAX_CORES = 128
const MAX_OUTPUT_BYTES = 8192
/** A frame is a script, or a core that jco made, and a little head. */
const FRAME_SLACK = 1024

/** Starts the child; `compose` binds it to the level and the launcher. */
export type SpawnTranspiler = (
  start: { readonly program: Buffer; readonly nodeFlags: readonly string[]; readonly limits: BoxLimits },
  events: BoxedEvents,
) => BoxedProcess

export type TranspileSettings = {
  readonly transpiler: TranspilerProgram
  readonly spawn: SpawnTranspiler
  readonly limits: Limits
  /** Kills the child when the server stops. */
  readonly signal: AbortSignal
}

type Slice = { readonly offset: number; readonly size: number }

/** A core by name: where it lies in the upload, or the bytes that jco made. */
export type TranspiledCore = { readonly name: string } & (Slice | { readonly bytes: Buffer })

/** What came back, bounded but otherwise unchecked: hostile JavaScript, and cores. */
export type TranspiledComponent = { readonly js: Buffer; readonly cores: readonly TranspiledCore[] }

/**
 * Transpiles an upload in a boxed process that serves it alone and is killed afterwards: the generator can be made to
 * break, to loop and to fill memory, and whatever it returns is foreign bytes.
 *
 * @param modules where the gate found core modules in `upload`.
 * @param onGenerated is called when most of the work is done and a script will follow; a child that was turned may call
 *   it any number of times.
 * @throws BrainError `invalid_request` naming the cause; `sandbox_unavailable` when no child can be started.
 */
export function transpile(
  upload: Buffer,
  modules: readonly Slice[],
  settings: TranspileSettings,
  onGenerated: () => void = () => {},
): Promise<TranspiledComponent> {
  return new Promise((resolve, reject) => {
    new TranspileRun({ upload, modules, settings, onGenerated }, { resolve, reject }).start()
  })
}

type Work = {
  readonly upload: Buffer
  readonly modules: readonly Slice[]
  readonly settings: TranspileSettings
  readonly onGenerated: () => void
}
type Settle = { readonly resolve: (result: TranspiledComponent) => void; readonly reject: (error: unknown) => void }

class TranspileRun {
  readonly #work: Work
  readonly #settle: Settle
  readonly #cores: TranspiledCore[] = []
  #js: Buffer | undefined
  #privateBytes = 0
  #sliceBytes = 0
  #ready = false
  #settled = false
  #output = ''
  #gone: { readonly how?: string; readonly closed?: true } = {}
  #child: BoxedProcess | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #onAbort = (): void => this.#fail(new BrainError('overloaded', 'Cannot transpile: the server is stopping'))

  constructor(work: Work, settle: Settle) {
    this.#work = work
    this.#settle = settle
  }

  start(): void {
    const { settings, upload, modules } = this.#work
    const { transpiler, limits, signal } = settings
    if (signal.aborted) return this.#onAbort()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    const reader = new FrameReader(limits.transpiledBytes + FRAME_SLACK, {
      onFrame: (type, body) => this.#onFrame(type, body),
      onBroken: (reason) => this.#fail(this.#refusal(`the generator answered with ${reason}`)),
    })
    try {
      this.#child = settings.spawn(
        {
          program: transpiler.script,
          nodeFlags: upload.length < SMALL_BYTES ? [...NODE_FLAGS, '--liftoff-only'] : NODE_FLAGS,
          limits: { dataBytes: DATA_BYTES, cpuSecs: CPU_SECS },
        },
        {
          onChannel: { onBytes: (bytes) => reader.push(bytes), onClose: () => this.#onGone({ closed: true }) },
          onOutput: (_fd, bytes) => this.#onOutput(bytes),
          onExit: (how) => this.#onGone({ how }),
        },
      )
    } catch (cause) {
      return this.#fail(this.#unavailable(cause instanceof Error ? cause.message : String(cause)))
    }
    this.#timer = setTimeout(() => this.#onTimeout(), limits.admissionSecs * 1000)
    const order: TranspileOrder = {
      jco: transpiler.cores.map((core) => core.length),
      upload: upload.length,
      modules,
      maxScriptBytes: limits.transpiledBytes,
    }
    const head = Buffer.from(JSON.stringify(order))
    const size = Buffer.allocUnsafe(4)
    size.writeUInt32LE(head.length)
    for (const part of [Buffer.concat([size, head]), ...transpiler.cores, upload]) this.#child.channel.write(part)
  }

  #onFrame(type: number, body: Buffer): void {
    if (this.#settled) return
    const { limits } = this.#work.settings
    switch (type) {
      case FROM_TRANSPILER.READY:
        this.#ready = true
        return
      case FROM_TRANSPILER.GENERATED:
        return this.#work.onGenerated()
      case FROM_TRANSPILER.SCRIPT:
        if (body.length > limits.transpiledBytes) return this.#fail(this.#tooMuchScript(body.length))
        this.#js = Buffer.from(body)
        return
      case FROM_TRANSPILER.SLICE:
      case FROM_TRANSPILER.CORE:
        return this.#onCore(type, body)
      case FROM_TRANSPILER.DONE:
        return this.#onDone()
      case FROM_TRANSPILER.FAILED:
        return this.#fail(this.#faultOf(body[0] ?? 0, body.toString('utf8', 1, MAX_OUTPUT_BYTES)))
      default:
        return this.#fail(this.#refusal('the generator answered with an unknown frame'))
    }
  }

  #onCore(type: number, body: Buffer): void {
    const isSlice = type === FROM_TRANSPILER.SLICE
    const number = body.length < 4 ? 0 : body.readUInt32LE()
    const end = isSlice ? body.length : 4 + number
    if (end > body.length) return this.#fail(this.#refusal('the generator answered with half a frame'))
    const name = body.toString('latin1', 4, end)
    const made = isSlice ? undefined : { bytes: Buffer.from(body.subarray(end)) }
    const source = made ?? this.#work.modules[number]
    this.#privateBytes += made?.bytes.length ?? 0
    const { transpiledBytes } = this.#work.settings.limits
    if (source === undefined || !isCoreName(name) || this.#cores.some((core) => core.name === name))
      return this.#fail(this.#refusal(`the generator named a core module ${quoted(name)}`))
    // Each core is in the upload once for every name that it has: the supervisor holds as many bytes as it is given names.
    if (!('bytes' in source)) this.#sliceBytes += source.size
    const isTooMuch = this.#privateBytes > transpiledBytes || this.#sliceBytes > this.#work.upload.length
    if (this.#cores.length >= MAX_CORES || isTooMuch)
      return this.#fail(this.#refusal('the generator made too many core modules', 'too_complex'))
    this.#cores.push({ name, ...source })
  }

  #onDone(): void {
    if (this.#js === undefined) return this.#fail(this.#refusal('the generator made no JavaScript'))
    const result = { js: this.#js, cores: this.#cores }
    if (this.#end()) this.#settle.resolve(result)
  }

  #onOutput(bytes: Buffer): void {
    if (this.#output.length < MAX_OUTPUT_BYTES) this.#output += bytes.toString('utf8', 0, MAX_OUTPUT_BYTES)
  }

  #onTimeout(): void {
    const { limits } = this.#work.settings
    const limit = describeLimit('admissionSecs', limits)
    this.#fail(this.#refusal(`transpiling it takes longer than ${limit}`, 'too_complex'))
  }

  /** It may have said all that there is to say before it ended: what is still in the channel is read first. */
  #onGone(part: { readonly how?: string; readonly closed?: true }): void {
    this.#gone = { ...this.#gone, ...part }
    const { how, closed } = this.#gone
    if (how === undefined || closed === undefined || this.#settled) return
    if (!this.#ready) return this.#fail(this.#unavailable(`${how}: ${printable(this.#output, 500)}`))
    // Only the kernel kills it with this signal: at RLIMIT_CPU, or when the machine is out of memory.
    const reason =
      how === 'SIGKILL'
        ? `transpiling it takes more than ${CPU_SECS} seconds of CPU time`
        : `transpiling it takes more than ${DATA_BYTES / MIB} MiB of memory, or breaks the generator (${how})`
    this.#fail(this.#refusal(`${reason}. Make its types and its nesting simpler`, 'too_complex'))
  }

  #faultOf(fault: number, text: string): BrainError {
    const said = printable(text, 500)
    switch (fault) {
      case TRANSPILE_FAULT.CORE:
        return this.#refusal(`one of its core modules cannot be compiled: ${said}`)
      case TRANSPILE_FAULT.SCRIPT:
        return this.#refusal(`a name in it makes JavaScript that cannot be parsed: ${said}. Rename what it exports`)
      case TRANSPILE_FAULT.LARGE:
        return this.#tooMuchScript(Number.parseInt(text, 10))
      default:
        return faultOfGenerator(said)
    }
  }

  #tooMuchScript(bytes: number): BrainError {
    const limit = describeLimit('transpiledBytes', this.#work.settings.limits)
    return this.#refusal(`it becomes ${bytes} bytes of JavaScript; ${limit} are allowed`, 'too_complex')
  }

  #refusal(reason: string, fault: 'cannot_transpile' | 'too_complex' = 'cannot_transpile'): BrainError {
    return refusal(fault, reason)
  }

  #unavailable(reason: string): BrainError {
    return new BrainError('sandbox_unavailable', `Cannot start the transpiler: ${reason}`)
  }

  #fail(error: BrainError): void {
    if (this.#end()) this.#settle.reject(error)
  }

  /** Whatever happened first counts; the child never outlives it. */
  #end(): boolean {
    if (this.#settled) return false
    this.#settled = true
    clearTimeout(this.#timer)
    this.#work.settings.signal.removeEventListener('abort', this.#onAbort)
    this.#child?.kill()
    this.#child?.channel.close()
    return true
  }
}

const OFFSET = /\(at offset 0x([0-9a-f]{1,8})\)/

/** The generator's validator says where; its own breakdowns say nothing of use. */
function faultOfGenerator(said: string): BrainError {
  const [, hex] = OFFSET.exec(said) ?? []
  if (hex === undefined) return refusal('cannot_transpile', `the generator cannot translate it: ${said}`)
  const offset = Number.parseInt(hex, 16)
  return refusal('malformed', `it is malformed at byte ${offset}: ${said.replace(OFFSET, '').trim()}`, offset)
}
