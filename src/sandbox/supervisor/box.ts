import { describeLimit, type Limits } from '../../contract/limits.ts'
import { messageOf } from '../../kernel/errors.ts'
import type { Artifact } from '../admission/artifact.ts'
import type { ComponentRole } from '../sandbox.ts'
import type { BoxedEvents, BoxedProcess } from '../launch/spawn-boxed.ts'
import { DONE_HEAD, END, FAULT, FROM_BOX, type LoadHead, readError, TO_BOX } from '../wire/box-frames.ts'
import { BOX_FRAME_BYTES, frame, frameHead, FrameReader } from '../wire/frames.ts'
import { u32 } from '../wire/server-frames.ts'
import { type Call, type CallEnd, trapped } from './call.ts'
import { CallOutput } from './call-output.ts'
import { explainDeath, isOutOfMemory, outOfMemory } from './explain-death.ts'
import { ProcessMeter } from './process-meter.ts'

/**
 * starting → warm → loading → idle ⇄ busy → refreshing → idle …; from anywhere → dying → dead.
 * In `loading` and `refreshing` an instance is made; `dying` was sent SIGKILL.
 */
export type BoxState = 'starting' | 'warm' | 'loading' | 'idle' | 'busy' | 'refreshing' | 'dying' | 'dead'

export type BoxEvents = {
  readonly onState: (box: Box, before: BoxState) => void
  readonly onHost: (call: Call, body: Buffer) => void
  readonly onEnd: (call: Call, end: CallEnd, facts: BoxFacts) => void
}

export type BoxFacts = {
  readonly runMs: number
  readonly cpuMs: number
  readonly stdout: Buffer
  readonly stderr: Buffer
}

const lastBytes = Buffer.allocUnsafe(64 * 1024)

/** The code of an error that a guest gave none. */
const UNNAMED = { tool: 'tool_error', agentloop: 'agentloop_failed' } as const

/** The meter counts in steps of 10 ms, and reading it costs 6 us: shorter spans are not worth it. */
const METER_MS = 20

/** Beside the text of a result or an event, a frame carries its method, lengths and a kind. */
const FRAME_SLACK = 64 * 1024

/** The longest frame that is taken from a box: a loop tells whole conversations. */
export const largestBoxFrame = (limits: Limits, role: ComponentRole = 'tool'): number =>
  Math.max(
    BOX_FRAME_BYTES,
    limits.executionOutputBytes,
    limits.emittedBytes,
    role === 'agentloop' ? limits.agentloopRequestBytes : 0,
  ) + FRAME_SLACK

/** One box: a process that serves one key, one call at a time. Every byte that comes out of it may be hostile. */
export class Box {
  key: string | undefined
  role: ComponentRole = 'tool'
  /** The call that will run here as soon as there is an instance. */
  claim: Call | undefined
  /** The call that runs here. */
  call: Call | undefined
  /** Why it ended, or could not load its component. */
  fault: CallEnd | undefined
  /** It had an instance ready at least once. */
  served = false
  memoryCheckedAt = 0
  /** It was given up before it was ready. */
  startFailed = false
  readonly #process: BoxedProcess
  readonly #reader: FrameReader
  readonly #events: BoxEvents
  readonly #limits: Limits
  #openMeter: ProcessMeter | undefined
  readonly #stdout = new CallOutput()
  readonly #stderr = new CallOutput()
  #state: BoxState = 'starting'
  #awaiting = false
  #cpuMs = 0
  #meteredAt = Number.NEGATIVE_INFINITY
  #spentCpuMs = 0
  #runStarted = 0

  constructor(start: (events: BoxedEvents) => BoxedProcess, limits: Limits, events: BoxEvents) {
    this.#events = events
    this.#limits = limits
    this.#reader = new FrameReader(largestBoxFrame(limits), {
      onFrame: (type, body, last) => this.#onFrame(type, body, last),
      onBroken: (reason) => this.#violate(reason),
    })
    this.#process = start({
      onChannel: { onBytes: (bytes) => this.#reader.push(bytes) },
      onOutput: (fd, bytes) => (fd === 1 ? this.#stdout : this.#stderr).push(bytes),
      onExit: (how) => this.#onExit(how),
    })
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Opened once the box has spoken: before that its process may not be known yet. */
  get #meter(): ProcessMeter {
    return (this.#openMeter ??= new ProcessMeter(this.pid))
  }

  get state(): BoxState {
    return this.#state
  }

  /** CPU time of the running call so far, too much by at most METER_MS for each thread. */
  get callCpuMs(): number {
    return Math.max(0, this.#meter.cpuMs() - this.#cpuMs)
  }

  /** CPU time since the start, as of the last time that it became idle. */
  get idleCpuMs(): number {
    return this.#cpuMs
  }

  /** Hands it a component: from now on it serves this key only. */
  load({ key, role }: Call, artifact: Artifact): void {
    this.key = key
    this.role = role
    this.#reader.cap = largestBoxFrame(this.#limits, role)
    const { js, cores } = artifact
    const head = Buffer.from(
      JSON.stringify({
        role,
        js: js.length,
        cores: cores.map(({ name, bytes }) => [name, bytes.length]),
        limits: {
          linearMemoryBytes: this.#limits.linearMemoryBytes,
          guestHandles: this.#limits.guestHandles,
          guestReadBytes: this.#limits.guestReadBytes,
          frameBytes: largestBoxFrame(this.#limits, role),
        },
      } satisfies LoadHead),
    )
    const size = cores.reduce((sum, core) => sum + core.bytes.length, 4 + head.length + js.length)
    // Not joined: a Python component has 11 MB.
    const { channel } = this.#process
    for (const part of [frameHead(TO_BOX.LOAD, size), u32(head.length), head, js, ...cores.map((core) => core.bytes)])
      channel.write(part)
    this.#enter('loading')
  }

  /** Runs a call in the instance that is ready. */
  run(call: Call): void {
    this.claim = undefined
    this.call = call
    call.box = this
    this.#stdout.restart()
    this.#stderr.restart()
    this.#runStarted = performance.now()
    this.#process.channel.write(call.invoke)
    this.#enter('busy')
  }

  /** Answers the outstanding host call, or step of a request; does nothing where there is none. */
  answer(body: Buffer): void {
    if (!this.#awaiting || this.#state !== 'busy') return
    this.#awaiting = false
    this.#process.channel.write(frame(TO_BOX.REPLY, body))
  }

  /** SIGKILL. The call in it ends as `end` says once the process is gone. */
  kill(end?: CallEnd): void {
    if (this.#state === 'dying' || this.#state === 'dead') return
    this.fault ??= end
    this.#reader.close()
    this.#spentCpuMs = this.callCpuMs // nothing tells it after the death
    this.#process.kill()
    this.#enter('dying')
  }

  #enter(state: BoxState): void {
    const before = this.#state
    this.#state = state
    this.#events.onState(this, before)
  }

  #onFrame(type: number, body: Buffer, last: boolean): void {
    switch (this.#state) {
      case 'busy':
        return this.#onBusyFrame(type, body, last)
      case 'starting':
        if (type === FROM_BOX.READY && last) return this.#enter('warm')
        break
      case 'loading':
      case 'refreshing':
        if (type === FROM_BOX.IDLE && last) return this.#onIdle()
        if (type === FROM_BOX.FAILED) return this.#onFailed(body)
        break
      case 'warm':
      case 'idle':
      case 'dying':
      case 'dead':
        break
      default:
        this.#state satisfies never
    }
    this.#violate(`frame ${type} while ${this.#state}`)
  }

  #onBusyFrame(type: number, body: Buffer, last: boolean): void {
    const { call } = this
    // It reads an answer to its end before it can ask again. One that does not would make us keep its answers.
    if (call === undefined || this.#awaiting || this.#process.channel.backlog > 0)
      return this.#violate('a frame before the answer to the one before')
    if (type === FROM_BOX.DONE) return this.#onDone(call, body)
    if (!last) return this.#violate('a frame before the answer to the one before')
    if (type === FROM_BOX.FILES) return this.#onFileRequest(call, body)
    if (type !== FROM_BOX.HOST && type !== FROM_BOX.EGRESS) return this.#violate(`frame ${type} while busy`)
    call.hostCalls++
    const exhausted = call.exhausted()
    if (exhausted !== undefined) return this.kill(exhausted)
    this.#awaiting = true
    if (type === FROM_BOX.HOST) return this.#events.onHost(call, body)
    call.answerEgress(Buffer.from(body)).then(
      (reply) => {
        if (this.call === call) this.answer(Buffer.concat(reply))
      },
      (error: unknown) => {
        if (this.call === call) this.#violate(`a step of a request: ${messageOf(error)}`)
      },
    )
  }

  #onFileRequest(call: Call, body: Buffer): void {
    let reply: Buffer
    try {
      reply = frame(TO_BOX.REPLY, ...call.answerFiles(body))
    } catch (error) {
      // Requests never throw: what was granted could not be opened.
      return this.kill(trapped('tool_error', messageOf(error)))
    }
    const exhausted = call.exhausted()
    if (exhausted === undefined) this.#process.channel.write(reply)
    else this.kill(exhausted)
  }

  #onIdle(): void {
    const now = performance.now()
    if (now - this.#meteredAt > METER_MS) {
      this.#meteredAt = now
      this.#cpuMs = this.#meter.cpuMs()
    }
    this.served = true
    this.#enter('idle')
  }

  /** The next instance could not be made. What a call is told of it, it is told when it tries: in a new box. */
  #onFailed(body: Buffer): void {
    const { code, message } = readError(body.subarray(1))
    if (code === 'memory_limit') return this.kill(outOfMemory(this.role, this.#limits))
    this.kill(
      body[0] === FAULT.CANNOT_COMPILE
        ? { type: 'refused', code: 'environment_not_ready', message: `Cannot load the ${this.role}: ${message}` }
        : trapped('tool_error', `Cannot start the ${this.role}: ${message}`),
    )
  }

  #onDone(call: Call, body: Buffer): void {
    if (body.length < DONE_HEAD) return this.#violate('an end that is cut short')
    this.#stdout.catchUp(this.#process.output[0], body.readUInt32LE(9))
    this.#stderr.catchUp(this.#process.output[1], body.readUInt32LE(13))
    const end = this.#readEnd(body[0] ?? END.FATAL, body.subarray(DONE_HEAD))
    const facts = this.#facts(body.readDoubleLE(1))
    this.call = undefined
    // Before anybody is told: the box must be known as what it is when the next call looks for one.
    if (end.type === 'trapped') this.kill(end)
    else this.#enter('refreshing')
    this.#events.onEnd(call, end, facts)
  }

  #readEnd(kind: number, text: Buffer): CallEnd {
    const most = this.#limits.executionOutputBytes
    switch (kind) {
      case END.VALUE:
        if (text.length <= most) return { type: 'returned', text }
        return trapped(
          'output_limit',
          `The ${this.role} returned ${text.length} bytes, the limit is ${describeLimit('executionOutputBytes', this.#limits)}`,
        )
      case END.ERROR:
        return { type: 'failed', ...readError(text, UNNAMED[this.role]) }
      case END.RETRYABLE_ERROR:
        return { type: 'failedRetryable', ...readError(text, UNNAMED[this.role]) }
      case END.EXIT:
        return trapped(
          'tool_error',
          `The ${this.role} ended itself with ${text[0] === 1 ? 'success' : 'failure'} before it returned`,
        )
      default: {
        const { code, message } = readError(text)
        if (code === 'memory_limit' || isOutOfMemory(this.#stderr.bytes)) return outOfMemory(this.role, this.#limits)
        return trapped(code, message)
      }
    }
  }

  #facts(runMs: number): BoxFacts {
    const wallMs = performance.now() - this.#runStarted
    // Below the resolution of the meter the wall clock says more, and costs nothing.
    const cpuMs = wallMs < METER_MS ? wallMs : this.callCpuMs
    return { runMs, cpuMs, stdout: this.#stdout.bytes, stderr: this.#stderr.bytes }
  }

  #violate(what: string): void {
    this.kill({ type: 'lost', message: `The box of the ${this.role} broke its protocol (${what}) and was killed` })
  }

  #onExit(how: string): void {
    this.#readLastFrames()
    this.#reader.close()
    const [stdout, stderr] = this.#process.output
    this.#stdout.catchUp(stdout, Number.POSITIVE_INFINITY)
    this.#stderr.catchUp(stderr, Number.POSITIVE_INFINITY)
    for (const channel of [this.#process.channel, ...this.#process.output]) channel.close()
    this.#openMeter?.close()
    this.fault ??= explainDeath(this.role, how, this.#stderr.bytes, this.#limits)
    const { call } = this
    this.call = undefined
    if (call !== undefined)
      this.#events.onEnd(call, this.fault, {
        runMs: performance.now() - this.#runStarted,
        cpuMs: this.#spentCpuMs,
        stdout: this.#stdout.bytes,
        stderr: this.#stderr.bytes,
      })
    this.#enter('dead')
  }

  /** It may have said how its call ended, and ended itself, before the event loop came round to its channel. */
  #readLastFrames(): void {
    for (let size: number; (size = this.#process.channel.readNow(lastBytes)) > 0;)
      this.#reader.push(lastBytes.subarray(0, size))
  }

  /** The last words of the process, for a log. */
  get lastWords(): string {
    return this.#stderr.bytes.toString('utf8').slice(-500)
  }
}
