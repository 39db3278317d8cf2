import type { Json, JsonObject } from '../kernel/json.ts'
import type { ModelRequest, ModelResult } from '../contract/message.ts'

/** A live-only frame of a running call (contract 3.5). */
export type ModelDelta =
  | { readonly type: 'assistant_delta'; readonly index: number; readonly text: string }
  | {
      readonly type: 'tool_call_delta'
      readonly index: number
      readonly id?: string
      readonly name?: string
      readonly partial_json?: string
    }

export type ModelCall = {
  readonly model: string
  readonly apiKey: string
  readonly request: ModelRequest
  /** How many model calls the session had started before this one. */
  readonly callIndex: number
  /** What the session keeps for its provider; the scripted one finds its script here. */
  readonly settings: Json
  readonly signal: AbortSignal
  readonly onDelta: (delta: ModelDelta) => void
}

/**
 * Something that answers model requests.
 *
 * M1  A request is sent at most once.
 * M2  A failure says whether it is certain: `ambiguous` when the provider may have done the work.
 */
export interface ModelProvider {
  readonly id: string
  /** @throws BrainError `invalid_request` when the provider cannot carry what is asked. */
  checkModel(model: JsonObject): void
  /** @throws ModelFailure */
  call(call: ModelCall): Promise<ModelResult>
}

/** A failed model call, as the journal keeps it (contract 3.2, 7.4). */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure'
  readonly code: string
  readonly retryable: boolean
  readonly ambiguous: boolean

  constructor(
    code: string,
    message: string,
    options: { retryable?: boolean; ambiguous?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.ambiguous = options.ambiguous ?? false
  }
}
