import { messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { Lock } from '../../kernel/lock.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import { BrainError } from '../brain-error.ts'
import { sequenceOf, type CallbackClient } from '../environment/callback-client.ts'
import { environmentServices } from '../host/environment-services.ts'
import { publishedOutcome } from '../host/published-outcome.ts'
import type { Presentation, ToolContext } from '../host/tool-context.ts'
import { quietly } from '../quietly.ts'
import type { HostExecutable } from '../declare/tool.ts'
import type { HttpToolCall } from './tool-call.ts'

/** What both versions tell a function of its call, with everything else refused. */
export function plainContext(call: HttpToolCall, options: unknown, signal: AbortSignal): ToolContext {
  const refuse =
    (member: string, remedy = 'calls over HTTP have none') =>
    () =>
      quietly(Promise.reject(new BrainError(0, 'unsupported', `Cannot use ctx.${member}: ${remedy}`)))
  const remedy = 'return the value, or place the tool with applicationTool()'
  return {
    options,
    sessionId: call.sessionId,
    sequence: call.sequence,
    deadline: new Date(call.deadlineAtMs),
    signal,
    emit: refuse('emit'),
    emitResult: refuse('emitResult', remedy),
    finish: refuse('finish', remedy),
    model: refuse('model'),
    environments: environmentServices(refuse('environments')),
  }
}

/** A call of version 2: what its function says goes through the relay of the bridge, and is durable when it is answered. */
export class RelayedCall {
  readonly #client: CallbackClient
  readonly #executable: HostExecutable
  /** Updates leave one after the other, in the order in which they were asked for. */
  readonly #updates = new Lock()
  #isFinishing = false
  #isFinished = false
  #fault: Error | undefined

  constructor(client: CallbackClient, executable: HostExecutable) {
    this.#client = client
    this.#executable = executable
  }

  /** Whether Brain has acknowledged its end. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** Why its last finish or its return was refused or is in doubt. */
  get fault(): Error | undefined {
    return this.#fault
  }

  blame(error: unknown): void {
    this.#fault ??= error instanceof Error ? error : new Error(messageOf(error))
  }

  context(call: HttpToolCall, signal: AbortSignal): ToolContext {
    return Object.freeze<ToolContext>({
      ...plainContext(call, this.#executable.options, signal),
      emitResult: (value, presentation) => quietly(this.#emitResult(value, presentation)),
      finish: (value, presentation) => quietly(this.#finish(value, presentation)),
    })
  }

  /** Publishes what its function returned, unless it has finished. */
  async publishReturn(value: unknown): Promise<void> {
    // What it did not await counts as well.
    await this.#updates.run(async () => undefined)
    if (this.#isFinishing) return
    const outcome = value === undefined ? null : await this.#outcome(value)
    if (outcome !== null && outcome.status !== 'ok') await this.#finish(outcome)
    else await this.#updates.run(() => this.#send('returned', outcome))
  }

  async #emitResult(value: unknown, presentation?: Presentation): Promise<number> {
    this.#checkOpen()
    const reading = quietly(this.#outcome(value, presentation))
    return this.#updates.run(async () => this.#send('result', await reading))
  }

  async #finish(value: unknown, presentation?: Presentation): Promise<void> {
    this.#checkOpen()
    this.#isFinishing = true
    const reading = value === undefined ? undefined : quietly(this.#outcome(value, presentation))
    await this.#updates.run(async () => {
      try {
        await this.#send('finish', (await reading) ?? null)
        this.#isFinished = true
      } catch (error) {
        this.blame(error)
        // What got lost on its way is never sent again; what was refused may be followed by something smaller.
        if (!(error instanceof BrainError && error.code === 'ambiguous')) this.#isFinishing = false
        throw error
      }
    })
  }

  async #send(method: string, outcome: ToolOutput | null): Promise<number> {
    return sequenceOf(await this.#client.call(method, outcome as Json), method)
  }

  #outcome(value: unknown, presentation?: Presentation): Promise<ToolOutput> {
    return publishedOutcome(value, this.#executable.output, presentation)
  }

  #checkOpen(): void {
    if (this.#isFinishing) throw new BrainError(0, 'invalid_request', 'Cannot go on with the call: it is finished')
  }
}
