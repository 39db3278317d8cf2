import type { Json } from '../../kernel/json.ts'
import { Lock } from '../../kernel/lock.ts'
import type { Message, ModelRequest, ModelResult } from '../../contract/message.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import type { EventPage, ToolReturn } from '../agentloop/agentloop-context.ts'
import { BrainError } from '../brain-error.ts'
import { checkIdentifier } from '../declare/names.ts'
import { environmentServices, type EnvironmentServices } from '../host/environment-services.ts'
import { publishedOutcome } from '../host/published-outcome.ts'
import type { Presentation } from '../host/tool-context.ts'
import { jsonOf } from '../json-value.ts'
import { quietly } from '../quietly.ts'
import { sequenceOf, type CallbackClient } from './callback-client.ts'

/** A tool call that an agentloop asks for (contract 7.3). */
export type ToolInvocation = {
  readonly call_id: string
  readonly name: string
  readonly environment: string
  /** Needed where the environment's reference has another sequence than 1. */
  readonly environment_sequence?: number
  readonly input: Json
}

/** Values that outlive a turn. */
export interface KeyValues {
  /** What was set last, undefined where there is nothing; null is a value. */
  readonly get: (key: string) => Promise<Json | undefined>
  /** Keeps a value, in place of what was there. @returns the sequence of its record; the last one's when nothing changes */
  readonly set: (key: string, value: unknown) => Promise<number>
  /** Forgets what is there. @returns as `set` */
  readonly delete: (key: string) => Promise<number>
}

/**
 * What a tool or agentloop that an environment runs may ask of Brain (contract 5.3). A method that is not among `granted`
 * rejects with `not_granted`; after the end of the execution all of them reject. Those that answer a sequence answer once
 * its record is durable. A lost answer is `ambiguous`: Brain may have done what was asked, and nothing is sent twice.
 */
export interface ExecutionServices {
  /** Names of the wire, such as `emit` and `set_transcript`: those of a tool or those of an agentloop. */
  readonly granted: readonly string[]
  /** An event of the tool's or loop's own; its sequence. */
  readonly emit: (kind: string, data: unknown) => Promise<number>
  /** Of a tool: one result, after which it stays open. */
  readonly emitResult: (value: unknown, presentation?: Presentation) => Promise<number>
  /** Of a tool: lets go of who waits for it, with a result if there is a value; the call stays open. */
  readonly returned: (value?: unknown, presentation?: Presentation) => Promise<number>
  /** Of a tool: the end, after everything that was asked for before, with a last result if there is a value. */
  readonly finish: (value?: unknown, presentation?: Presentation) => Promise<number>
  /** Asks the session's model. */
  readonly model: (request: ModelRequest) => Promise<ModelResult>
  /** Environments that the tool or loop was granted something with. */
  readonly environments: EnvironmentServices
  /** For the log of the server; never in the journal. */
  readonly telemetry: (record: unknown) => Promise<void>
  /** Of an agentloop: calls tools. Answers when every one has released, in the order of `calls`. */
  readonly dispatch: (calls: readonly ToolInvocation[]) => Promise<readonly ToolReturn[]>
  /** Of an agentloop: what is in the journal after `after`. */
  readonly events: (after: number) => Promise<EventPage>
  /** Of an agentloop: what the conversation is from now on. */
  readonly setTranscript: (messages: readonly Message[]) => Promise<number>
  /** Of an agentloop. */
  readonly kv: KeyValues
}

/** Answers that leave a call open: what was sent is refused, and something else may follow. */
const REFUSALS = new Set([400, 413, 422, 500, 503])

/** The services of one execution, and whether Brain has acknowledged its end. */
export class HostedExecution {
  readonly services: ExecutionServices
  readonly #client: CallbackClient
  readonly #onFinished: () => void
  /** Updates leave one after the other, in the order in which they were asked for. */
  readonly #updates = new Lock()
  #isFinishing = false
  #isFinished = false

  /** @param onFinished is called when Brain has acknowledged the end, and when it is not known whether it has it */
  constructor(client: CallbackClient, onFinished: () => void) {
    this.#client = client
    this.#onFinished = onFinished
    this.services = this.#servicesOf()
  }

  /** Whether Brain has acknowledged that the call is over. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  get isAgentloop(): boolean {
    return this.#client.methods.includes('dispatch')
  }

  #servicesOf(): ExecutionServices {
    return Object.freeze<ExecutionServices>({
      granted: Object.freeze([...this.#client.methods]),
      emit: (kind, data) => quietly(this.#emit(kind, data)),
      emitResult: (value, presentation) => quietly(this.#update('result', outcomeOf(value, presentation))),
      returned: (value, presentation) => quietly(this.#update('returned', optionalOutcome(value, presentation))),
      finish: (value, presentation) => quietly(this.#finish(value, presentation)),
      model: (request) => this.#ask('model', request),
      environments: environmentServices((request) => this.#ask('environments', request)),
      telemetry: (record) => this.#ask('telemetry', record),
      dispatch: (calls) => this.#ask('dispatch', calls),
      events: (after) => this.#ask('events', after),
      setTranscript: (messages) => quietly(this.#sequenced('set_transcript', messages)),
      kv: Object.freeze<KeyValues>({
        get: async (key) => (await this.#ask<{ value?: Json }>('kv_read', key)).value,
        set: (key, value) => quietly(this.#setValue(key, value)),
        delete: (key) => quietly(this.#sequenced('kv_delete', key)),
      }),
    })
  }

  async #emit(kind: string, data: unknown): Promise<number> {
    this.#checkOpen()
    checkIdentifier(kind, 'Cannot emit: kind')
    const input = { event_type: kind, data: jsonOf(data, 'data') }
    return this.#updates.run(async () => sequenceOf(await this.#client.call('emit', input), 'emit'))
  }

  async #update(method: 'result' | 'returned', reading: Promise<ToolOutput | null>): Promise<number> {
    void quietly(reading)
    this.#checkOpen()
    return this.#updates.run(async () => this.#send(method, await reading))
  }

  async #finish(value: unknown, presentation?: Presentation): Promise<number> {
    this.#checkOpen()
    this.#isFinishing = true
    const reading = quietly(optionalOutcome(value, presentation))
    return this.#updates.run(async () => {
      try {
        const sequence = await this.#send('finish', await reading)
        this.#isFinished = true
        this.#onFinished()
        return sequence
      } catch (error) {
        // What got lost on its way is never sent again; what was refused may be followed by something smaller.
        if (mayFollow(error)) this.#isFinishing = false
        else this.#onFinished()
        throw error
      }
    })
  }

  async #send(method: string, outcome: ToolOutput | null): Promise<number> {
    return sequenceOf(await this.#client.call(method, outcome as Json), method)
  }

  #ask<Answer>(method: string, input: unknown): Promise<Answer> {
    const ask = async (): Promise<Answer> => (await this.#client.call(method, jsonOf(input, method))) as Answer
    return quietly(ask())
  }

  async #sequenced(method: string, input: unknown): Promise<number> {
    return sequenceOf(await this.#ask<Json>(method, input), method)
  }

  async #setValue(key: string, value: unknown): Promise<number> {
    return this.#sequenced('kv_put', { key, value: jsonOf(value, 'value') })
  }

  #checkOpen(): void {
    if (this.#isFinishing) throw new BrainError(0, 'invalid_request', 'Cannot go on with the call: it is finished')
  }
}

/** Nothing was sent, or it was refused. */
const mayFollow = (error: unknown): boolean =>
  error instanceof BrainError &&
  (error.code === 'invalid_output' ||
    error.code === 'not_granted' ||
    (error.code !== 'ambiguous' && REFUSALS.has(error.status)))

const outcomeOf = (value: unknown, presentation?: Presentation): Promise<ToolOutput> =>
  publishedOutcome(value, undefined, presentation)

const optionalOutcome = async (value: unknown, presentation?: Presentation): Promise<ToolOutput | null> =>
  value === undefined ? null : outcomeOf(value, presentation)
