import { clip, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { Lock } from '../../kernel/lock.ts'
import { setLongTimeout, type LongTimeout } from '../../kernel/long-timeout.ts'
import { errorOutcome, type Outcome, type ToolOutput } from '../../contract/outcome.ts'
import type { ModelRequest, ModelResult } from '../../contract/message.ts'
import type { HostCommand } from '../../contract/host-protocol.ts'
import { BrainError } from '../brain-error.ts'
import { checkIdentifier } from '../declare/names.ts'
import type { HostExecutable } from '../declare/tool.ts'
import { jsonOf } from '../json-value.ts'
import { quietly } from '../quietly.ts'
import type { CallServices } from './call-services.ts'
import { environmentServices } from './environment-services.ts'
import { faultsOf } from '../zod-faults.ts'
import { invalidOutput, publishedOutcome } from './published-outcome.ts'
import { Slots } from './slots.ts'
import type { Presentation, ToolContext } from './tool-context.ts'

/** Why nobody waits for a call any more. The first reason stays. */
export type Interruption = 'timeout' | 'cancelled' | 'unknown' | 'closed'

/** One call, as whoever runs its function was told of it. */
export type Call = Pick<HostCommand, 'session_id' | 'sequence' | 'deadline_at_ms'> & { readonly input: Json }

const REASONS: Readonly<Record<Interruption, () => DOMException>> = {
  timeout: () => new DOMException('The deadline of the call has passed', 'TimeoutError'),
  cancelled: () => new DOMException('The call was cancelled', 'AbortError'),
  unknown: () => new DOMException('The connection to the server was lost', 'AbortError'),
  closed: () => new DOMException('The client was closed', 'AbortError'),
}

/** More of them at once are refused by the server (contract 4.2). */
const MOST_IN_HAND = 8

const FAIL_AGAIN_MS = 250
const LONGEST_FAIL_AGAIN_MS = 5000

/** Answers that leave a call open: what was sent is refused, and something else may follow. */
const REFUSALS = new Set([400, 413, 422, 500, 503])

/** One call of a function: from its command until it has finished or nobody waits for it. */
export class Execution {
  readonly #call: Call
  readonly #executable: HostExecutable
  readonly #services: CallServices
  readonly #onOver: () => void
  readonly #signal = new AbortController()
  readonly #requests = new AbortController()
  readonly #interrupted = Promise.withResolvers<never>()
  /** Updates leave one after the other, in the order in which they were asked for. */
  readonly #updates = new Lock()
  readonly #inHand = new Slots(MOST_IN_HAND)
  #timer: LongTimeout | undefined
  #isFinishing = false
  #isOver = false

  constructor(call: Call, executable: HostExecutable, services: CallServices, onOver: () => void) {
    this.#call = call
    this.#executable = executable
    this.#services = services
    this.#onOver = onOver
    this.#interrupted.promise.catch(() => {})
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const deadline = this.#call.deadline_at_ms
    if (deadline !== undefined) {
      const left = deadline - Date.now()
      if (left <= 0) return this.interrupt('timeout')
      this.#timer = setLongTimeout(() => this.interrupt('timeout'), left)
    }
    try {
      const { input, run } = this.#executable
      const parsed = await this.#unlessInterrupted(input.safeParseAsync(this.#call.input))
      if (!parsed.success) return await this.#fail(errorOutcome('invalid_input', faultsOf(parsed.error)))
      const ran = (async () => run(parsed.data as never, this.#context() as never))()
      await this.#publishReturn(await this.#unlessInterrupted(ran))
    } catch (error) {
      await this.#fail(errorOutcome('tool_error', messageOf(error) || 'The tool failed without a message'))
    }
  }

  /** Ends the call without asking its function, which hears of it through its signal. */
  interrupt(cause: Interruption): void {
    if (this.#isOver) return
    const outcome = outcomeOf(cause)
    const reason = REASONS[cause]()
    this.#close()
    this.#signal.abort(reason)
    this.#interrupted.reject(reason)
    // The server has usually said so itself; then this is refused.
    if (outcome !== undefined) this.#services.fail(outcome).catch(() => {})
  }

  #context(): ToolContext {
    const { session_id: sessionId, sequence, deadline_at_ms: deadline } = this.#call
    return Object.freeze<ToolContext>({
      options: this.#executable.options,
      sessionId,
      sequence,
      deadline: deadline === undefined ? undefined : new Date(deadline),
      signal: this.#signal.signal,
      emit: (kind, data) => quietly(this.#emit(kind, data)),
      emitResult: (value, presentation) => quietly(this.#emitResult(value, presentation)),
      finish: (value, presentation) => quietly(this.#finish(value, presentation)),
      model: (request) => quietly(this.#model(request)),
      environments: environmentServices((request) =>
        this.#request((signal) => this.#services.environments(request, signal)),
      ),
    })
  }

  async #emit(kind: string, data: unknown): Promise<number> {
    this.#checkOpen()
    checkIdentifier(kind, `Cannot emit: kind`)
    const copy = jsonOf(data, 'data')
    return this.#inOrder(() => this.#services.emit(kind, copy))
  }

  async #emitResult(value: unknown, presentation?: Presentation): Promise<number> {
    this.#checkOpen()
    // Read now: what the function does to the value later is no part of this result.
    const reading = quietly(this.#unlessInterrupted(this.#outcome(value, presentation)))
    return this.#inOrder(async () => this.#services.result(await reading))
  }

  async #finish(value: unknown, presentation?: Presentation): Promise<void> {
    this.#checkOpen()
    this.#isFinishing = true
    const reading =
      value === undefined ? undefined : quietly(this.#unlessInterrupted(this.#lastOutcome(value, presentation)))
    await this.#inOrder(async () => {
      const outcome = await reading
      await this.#end(() => this.#services.finish(outcome))
    })
  }

  async #model(request: ModelRequest): Promise<ModelResult> {
    const copy = jsonOf(request, 'request')
    return this.#request((signal) => this.#services.model(copy, signal))
  }

  /** What does not wait for updates: it ends with the call. */
  async #request<Answer>(ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    this.#checkOpen()
    return this.#inHand.run(async () => {
      if (this.#isOver) throw finished()
      return ask(this.#requests.signal)
    })
  }

  async #publishReturn(value: unknown): Promise<void> {
    if (this.#isFinishing || this.#isOver) return
    const outcome = value === undefined ? undefined : await this.#unlessInterrupted(this.#lastOutcome(value))
    if (outcome !== undefined && outcome.status !== 'ok') return this.#endBadly(() => this.#services.finish(outcome))
    await this.#inOrder(async () => {
      if (!this.#isFinishing) await this.#services.returned(outcome)
    }).catch((error: unknown) => this.#fail(outcomeOfLostReturn(error)))
  }

  #fail(outcome: ToolOutput): Promise<void> {
    return this.#endBadly(() => this.#services.fail(outcome))
  }

  /** Ends the call, unless it has an end. Nobody else would: what the server cannot take now it is told again. */
  async #endBadly(tell: () => Promise<void>): Promise<void> {
    for (
      let wait = FAIL_AGAIN_MS;
      !this.#isFinishing && !this.#isOver;
      wait = Math.min(wait * 2, LONGEST_FAIL_AGAIN_MS)
    ) {
      this.#isFinishing = true
      const ending = this.#inOrder(() => this.#end(tell))
      const error: unknown = await ending.catch((cause: unknown) => cause)
      if (!(error instanceof BrainError && error.status === 503)) return
      await this.#pause(wait)
    }
  }

  /** Ends early with the call. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    await this.#unlessInterrupted(promise).catch(() => {})
    clearTimeout(timer)
  }

  async #end(tell: () => Promise<void>): Promise<void> {
    try {
      await tell()
    } catch (error) {
      // What got lost on its way is never sent again; what was refused may be followed by something smaller.
      if (error instanceof BrainError && REFUSALS.has(error.status)) this.#isFinishing = false
      else this.#close()
      throw error
    }
    this.#close()
  }

  #outcome(value: unknown, presentation?: Presentation): Promise<ToolOutput> {
    return publishedOutcome(value, this.#executable.output, presentation)
  }

  #lastOutcome(value: unknown, presentation?: Presentation): Promise<ToolOutput> {
    return this.#outcome(value, presentation).catch(invalidOutput)
  }

  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#updates.run(async () => {
      if (this.#isOver) throw finished()
      return work()
    })
  }

  #unlessInterrupted<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#interrupted.promise])
  }

  #checkOpen(): void {
    if (this.#isFinishing || this.#isOver) throw finished()
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#timer?.clear()
    this.#requests.abort(finished())
    this.#onOver()
  }
}

const finished = (): BrainError => new BrainError(0, 'invalid_request', 'Cannot go on with the call: it is finished')

function outcomeOf(cause: Interruption): Outcome | undefined {
  if (cause === 'closed') return undefined
  return cause === 'unknown'
    ? { status: 'unknown', message: 'The connection of the host was lost after the call was sent' }
    : { status: cause }
}

/** What was refused has failed; what got lost on its way may be on record, and its function has done its work. */
function outcomeOfLostReturn(error: unknown): Outcome {
  if (error instanceof BrainError && error.code !== 'http_error') return errorOutcome(error.code, messageOf(error))
  return { status: 'unknown', message: clip(`What the tool returned may not have arrived: ${messageOf(error)}`) }
}
