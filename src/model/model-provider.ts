import { BrainError } from '../kernel/errors.ts'
import type { Json, JsonObject } from '../kernel/json.ts'
import type { Media, Message, ModelRequest, ModelResult, StopReason, Usage } from '../contract/message.ts'
import type { MediaKind } from '../contract/model-catalogue.ts'

/** A live-only frame of a running call (contract 3.5); `index` counts the parts of the answer. */
export type ModelFrame =
  | { readonly type: 'model_request'; readonly input_bytes: number; readonly media_inputs: number }
  | { readonly type: 'model_usage'; readonly usage: Usage }
  | { readonly type: 'model_output'; readonly output_bytes: number }
  | { readonly type: 'assistant_delta' | 'refusal_delta'; readonly index: number; readonly text: string }
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
  readonly onFrame: (frame: ModelFrame) => void
}

/** What of a session's configuration a provider may refuse. */
export type ModelDemands = {
  readonly responseFormat: JsonObject | undefined
  readonly transcript: readonly Message[]
}

/**
 * Something that answers model requests.
 *
 * M1  A request is sent at most once.
 * M2  A failure says whether it is certain: `ambiguous` when the provider may have done the work.
 * M3  What a provider answers is a stranger's: size, form and time are checked, and a fault of it is a ModelFailure.
 * M4  Nothing that is thrown, returned or shown as a frame because of a failure holds the API key.
 */
export interface ModelProvider {
  readonly id: string
  /** What messages may point at, beside their text. */
  readonly mediaInputs: readonly MediaKind[]
  /** @throws BrainError `invalid_request` when the provider cannot carry what is asked. */
  checkModel(model: JsonObject, demands: ModelDemands): void
  /** @throws ModelFailure, or BrainError `invalid_request` when the request was not sent */
  call(call: ModelCall): Promise<ModelResult>
}

/** Every kind of media; for providers that take them all. */
export const ALL_MEDIA: readonly MediaKind[] = ['image', 'application/pdf']

/** @throws BrainError `invalid_request` naming the kind that the provider does not take (contract 1.3) */
export function assertTakesMedia(
  { id, mediaInputs }: Pick<ModelProvider, 'id' | 'mediaInputs'>,
  media: readonly Media[],
): void {
  const foreign = media.map(kindOf).find((kind) => !mediaInputs.includes(kind))
  if (foreign === undefined) return
  const taken = ['text', ...mediaInputs].join(' and ')
  throw new BrainError('invalid_request', `Cannot show ${foreign} to the model: provider "${id}" takes ${taken}`, {
    details: { admission: 'rejected' },
  })
}

const kindOf = (media: Media): MediaKind => (media.type === 'image' ? 'image' : media.media_type)

/** What is known of an answer that came to nothing; journalled with the failure (contract 3.2). */
export type FailedResponse = {
  readonly stop_reason: StopReason
  readonly usage: Usage
  readonly usage_complete: boolean
}

type FailureOptions = {
  readonly retryable?: boolean
  readonly ambiguous?: boolean
  readonly response?: FailedResponse | undefined
  readonly cause?: unknown
}

/** A failed model call, as the journal keeps it (contract 3.2, 7.4). */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure'
  readonly code: string
  readonly retryable: boolean
  readonly ambiguous: boolean
  readonly response: FailedResponse | undefined

  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.ambiguous = options.ambiguous ?? false
    this.response = options.response
  }
}
