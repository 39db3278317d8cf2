import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import type { Json } from '../kernel/json.ts'
import { setLongTimeout } from '../kernel/long-timeout.ts'
import type { ModelRequest, ModelResult } from '../contract/message.ts'
import { describeLimit, type Limits } from '../contract/limits.ts'
import { ToolFailure } from '../contract/tool-failure.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'
import { toolsOf } from '../contract/tool-service.ts'
import type { NewRecord, Origin } from '../journal/record.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { Budget } from '../dispatch/budget.ts'
import { ModelFailure, type ModelProvider } from '../model/model-provider.ts'

export type ModelAccess = {
  readonly provider: ModelProvider
  readonly name: string
  readonly apiKey: string
  readonly settings: Json
}

type Caller = {
  readonly budget: Budget
  readonly signal: AbortSignal
  /** The call on whose behalf the model is asked; absent for the loop. */
  readonly toolSequence?: number
  /** What the request says about the saved transcript: its first `keep` messages, and the rest. */
  readonly transcript: { readonly throughSequence: number; readonly keep: number }
}

/** Makes journalled model calls of one session: started durable, sent once, ended or failed (contract 7.4). */
export class ModelCaller {
  readonly #log: SessionLog
  readonly #access: () => Promise<ModelAccess>
  readonly #limits: Limits
  #callsSoFar: number

  constructor(log: SessionLog, access: () => Promise<ModelAccess>, limits: Limits, callsSoFar: number) {
    this.#log = log
    this.#access = access
    this.#limits = limits
    this.#callsSoFar = callsSoFar
  }

  /** @throws BrainError `model_call_limit`; ModelFailure after its record is durable. */
  async call(request: ModelRequest, caller: Caller): Promise<ModelResult> {
    caller.signal.throwIfAborted()
    caller.budget.chargeModelCall()
    const access = await this.#access()
    caller.signal.throwIfAborted()
    const callIndex = this.#callsSoFar++
    const origin: { origin?: Origin } =
      caller.toolSequence === undefined ? {} : { origin: { kind: 'tool', sequence: caller.toolSequence } }
    const [started] = await this.#log.commit({
      records: [{ kind: 'model_call_started', data: startedData(request, caller), ...origin }],
    })
    const sequence = started?.sequence ?? 0
    try {
      const result = await this.#send(request, caller, access, { callIndex, sequence })
      await this.#log.insist({ records: [{ kind: 'model_call_ended', data: { sequence, result }, ...origin }] })
      return result
    } catch (error) {
      const failure = toFailure(error, caller.signal)
      const { code, retryable, ambiguous, response } = failure
      const told = response === undefined ? {} : { response }
      const data = { sequence, code, message: clip(failure.message), retryable, ambiguous, ...told }
      const record: NewRecord = { kind: 'model_call_failed', data, ...origin }
      await this.#log.insist({ records: [record] })
      throw failure
    }
  }

  async #send(
    request: ModelRequest,
    caller: Caller,
    access: ModelAccess,
    at: { callIndex: number; sequence: number },
  ): Promise<ModelResult> {
    // An abort while its record was written: nobody will be told of it any more.
    if (caller.signal.aborted) throw new ModelFailure('cancelled', 'The model call was stopped before it was sent')
    const late = new AbortController()
    const timer = setLongTimeout(() => late.abort(), this.#limits.modelSecs * 1000)
    const signal = AbortSignal.any([caller.signal, late.signal])
    let isOver = false
    const call = access.provider.call({
      model: access.name,
      apiKey: access.apiKey,
      request,
      callIndex: at.callIndex,
      settings: access.settings,
      signal,
      onFrame: ({ type, ...frame }) => {
        // What a tool asks is not part of the conversation (contract A18); and an answer that nobody waits for is no news.
        if (caller.toolSequence === undefined && !isOver)
          this.#log.publish({ type, data: { ...frame, model_call_sequence: at.sequence } })
      },
    })
    const aborted = Promise.withResolvers<never>()
    const onAbort = (): void => aborted.reject(late.signal.aborted ? this.#late() : stopped())
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([call, aborted.promise])
    } finally {
      isOver = true
      timer.clear()
      signal.removeEventListener('abort', onAbort)
      call.catch(() => undefined)
      aborted.promise.catch(() => undefined)
    }
  }

  #late(): ModelFailure {
    return new ModelFailure(
      'timeout',
      `The model did not answer within ${describeLimit('modelSecs', this.#limits)}; the provider may have done the work`,
      { ambiguous: true },
    )
  }
}

const stopped = (cause?: unknown): ModelFailure =>
  new ModelFailure('unknown', 'The model call was stopped; the provider may have answered it', {
    ambiguous: true,
    cause,
  })

function startedData(request: ModelRequest, caller: Caller): (NewRecord & { kind: 'model_call_started' })['data'] {
  const { messages, system, tools, response_format: format, max_output_tokens: most, options } = request
  const { throughSequence, keep } = caller.transcript
  return {
    system: system ?? '',
    tools: tools ?? [],
    messages: messages.length,
    context: { through_sequence: throughSequence, delta: { keep, append: messages.slice(keep) } },
    ...(format === undefined || format === null ? {} : { response_format: format }),
    ...(most === undefined ? {} : { max_output_tokens: most }),
    ...(options === undefined ? {} : { options }),
    ...(caller.toolSequence === undefined ? {} : { tool_sequence: caller.toolSequence }),
  }
}

function toFailure(error: unknown, signal: AbortSignal): ModelFailure {
  if (error instanceof ModelFailure) return error
  if (signal.aborted) return stopped(error)
  if (error instanceof BrainError) return new ModelFailure(error.code, error.message, { cause: error })
  return new ModelFailure('model_provider_failed', messageOf(error), { ambiguous: true, cause: error })
}

/** A tool or a loop is told of a failed model call with the code that is on record. */
export function tellGuest(error: unknown): never {
  if (!(error instanceof ModelFailure)) throw error
  throw new ToolFailure(error.code, error.message, { cause: error, retryable: error.retryable })
}

/** The whole configuration's tools as a model is shown them. */
export const toolDefinitions = (configuration: SessionConfiguration): ModelRequest['tools'] & {} =>
  toolsOf(configuration).map(({ name, description, input_schema, output_schema }) => ({
    name,
    description,
    input_schema,
    ...(output_schema === undefined ? {} : { output_schema }),
  }))
