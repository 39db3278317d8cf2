import { BrainError, clip, messageOf } from '../../kernel/errors.ts'
import { ToolFailure } from '../../contract/tool-failure.ts'
import type { Execution, HostServices, InvocationEnd, InvocationFacts } from '../sandbox.ts'
import { errorText, HOST_METHODS, REPLY_ERROR, REPLY_OK, REPLY_RETRYABLE_ERROR } from '../wire/box-frames.ts'
import { frame } from '../wire/frames.ts'
import { ENDS, STOP_REASONS, TO_SUPERVISOR, u32, unpackDone } from '../wire/server-frames.ts'
import { unpackTexts } from '../wire/texts.ts'
import type { SandboxLogger } from './logger.ts'

type Ended = Awaited<Execution['ended']>

export type ExecutionLink = {
  readonly id: number
  readonly services: HostServices
  readonly send: (bytes: Buffer) => boolean
  readonly logger: SandboxLogger
}

export const noFacts: InvocationFacts = { stdout: '', stderr: '', runMs: 0, cpuMs: 0, fileOps: 0, hostCalls: 0 }

const OK = Buffer.of(REPLY_OK)
const ERROR = Buffer.of(REPLY_ERROR)
const RETRYABLE_ERROR = Buffer.of(REPLY_RETRYABLE_ERROR)
const ARITY: Readonly<Record<(typeof HOST_METHODS)[number], number>> = {
  emit: 2,
  emitResult: 1,
  returned: 1,
  finish: 1,
  model: 1,
  environments: 1,
  telemetry: 1,
  dispatch: 1,
  events: 1,
  setTranscript: 1,
  kvRead: 1,
  kvPut: 2,
  kvDelete: 1,
}

/** One invocation as the server sees it, from its frame to its one end. */
export class RunningExecution implements Execution {
  readonly ended: Promise<Ended>
  readonly #link: ExecutionLink
  readonly #settle: (ended: Ended) => void
  #over = false
  #stopped: 'timeout' | 'cancelled' | undefined

  constructor(link: ExecutionLink) {
    this.#link = link
    const { promise, resolve } = Promise.withResolvers<Ended>()
    this.ended = promise
    this.#settle = resolve
  }

  /** Asked to stop; it may not have begun yet. */
  get stopped(): 'timeout' | 'cancelled' | undefined {
    return this.#stopped
  }

  stop(reason: 'timeout' | 'cancelled'): void {
    if (this.#over) return
    this.#stopped ??= reason
    this.#link.send(frame(TO_SUPERVISOR.STOP, u32(this.#link.id), Buffer.of(STOP_REASONS.indexOf(reason))))
  }

  /** Ends it; the first end counts. */
  finish(end: InvocationEnd, facts: InvocationFacts = noFacts): void {
    if (this.#over) return
    this.#over = true
    this.#settle({ end, facts })
  }

  /** A host call of the guest. @param body valid until this returns */
  onHostCall(body: Buffer): void {
    const method = HOST_METHODS[body[4] ?? 0]
    const texts = readTexts(body)
    if (method === undefined || texts === undefined || texts.length !== ARITY[method])
      return this.#answer(ERROR, errorText('invalid_request', 'Cannot read the host call: it has another shape'))
    Promise.try(() => this.#link.services.call(method, texts)).then(
      (answer) => this.#answer(OK, answer),
      (error: unknown) => this.#refuse(method, error),
    )
  }

  #refuse(method: string, error: unknown): void {
    if (error instanceof BrainError || error instanceof ToolFailure)
      return this.#answer(error.retryable ? RETRYABLE_ERROR : ERROR, errorText(error.code, clip(error.message)))
    this.#link.logger.warn({ method, error: messageOf(error) }, 'A host call failed by a defect of the server')
    this.#answer(ERROR, errorText('internal', `Cannot answer ${method}: the host failed`))
  }

  #answer(kind: Buffer, text: string): void {
    if (!this.#over) this.#link.send(frame(TO_SUPERVISOR.HOST_REPLY, u32(this.#link.id), kind, text))
  }
}

function readTexts(body: Buffer): (string | undefined)[] | undefined {
  try {
    return unpackTexts(body, 5)
  } catch {
    return undefined
  }
}

/** The end of an invocation as the supervisor reports it. */
export type ReportedEnd = Ended & { readonly unloadable: boolean }

/** @param body of a DONE frame, valid until this returns */
export function readDone(body: Buffer): ReportedEnd {
  const { texts, end, runMs, cpuMs, fileOps, hostCalls } = unpackDone(body)
  const [first, second, stdout, stderr] = texts
  const type = ENDS[end] ?? 'lost'
  return {
    end: readEnd(type, first?.toString('utf8') ?? '', second?.toString('utf8') ?? ''),
    unloadable: type === 'unloadable',
    facts: {
      runMs,
      cpuMs,
      fileOps,
      hostCalls,
      stdout: stdout?.toString('utf8') ?? '',
      stderr: stderr?.toString('utf8') ?? '',
    },
  }
}

function readEnd(type: (typeof ENDS)[number], first: string, second: string): InvocationEnd {
  switch (type) {
    case 'returned':
      return { type, text: first }
    case 'stopped':
      return { type, reason: first === 'cancelled' ? first : 'timeout' }
    case 'lost':
      return { type, message: first }
    case 'refused':
      return { type, code: first === 'overloaded' ? first : 'environment_not_ready', message: second }
    case 'unloadable':
      return { type: 'refused', code: 'environment_not_ready', message: second }
    case 'trapped':
      return { type, code: first, message: second }
    case 'failed':
    case 'failedRetryable':
      return { type: 'failed', code: first, message: second, retryable: type === 'failedRetryable' }
    default:
      return type satisfies never
  }
}
