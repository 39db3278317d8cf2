import type { Json, JsonObject } from '../kernel/json.ts'

/** A picture or document that a message points at (contract 1.3, 3.6). */
export type Media =
  | { readonly type: 'image'; readonly url: string }
  | { readonly type: 'file'; readonly media_type: 'application/pdf'; readonly url: string }

/** Words, of whoever the message is from. */
export type TextBlock = { readonly type: 'text'; readonly text: string }
/** What only one provider understands, such as sealed reasoning; it is given back to that provider as it is. */
export type NativeBlock = { readonly type: 'native'; readonly format: string; readonly data: Json }
/** A call that the model asks for; `id` is what its result refers to. */
export type ToolUseBlock = {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: Json
}
/** What came of a call: text, or JSON that the model is shown as text. */
export type ToolResultBlock = {
  readonly type: 'tool_result'
  readonly tool_use_id: string
  readonly content: Json
  readonly is_error: boolean
  readonly media?: readonly Media[]
}
/** One part of a message. */
export type Block = TextBlock | Media | NativeBlock | ToolUseBlock | ToolResultBlock

/** One message of a transcript (contract 3.6). */
export type Message = { readonly role: 'user' | 'assistant' | 'developer'; readonly content: readonly Block[] }

/** What is sent to a session; `media` have https URLs that the provider fetches. */
export type UserInput = { readonly message: string; readonly media?: readonly Media[] }

/** A tool as a model is told of it; schemas are JSON Schema 2020-12. */
export type ToolDefinition = {
  readonly name: string
  readonly description: string
  readonly input_schema: JsonObject
  readonly output_schema?: JsonObject
}

/** What a loop or a tool asks of the session's model (contract 7.4). */
export type ModelRequest = {
  readonly messages: readonly Message[]
  readonly system?: string
  readonly tools?: readonly ToolDefinition[]
  readonly response_format?: JsonObject | null
  readonly max_output_tokens?: number
  readonly options?: JsonObject
}

/** Why a model stopped, in the words of all providers. */
export type StopReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence' | 'refusal' | 'unknown'

/** Token counts of one call; an absent member is not known, which is not the same as 0. */
export type Usage = {
  readonly total_input_tokens?: number
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly reasoning_tokens?: number
  readonly provider_cost_usd?: string
}

/** What a model said, once it is over. */
export type ModelResult = { readonly message: Message; readonly stop_reason: StopReason; readonly usage: Usage }
