/** The wire that a provider speaks (contract 1.1, 7.4); `openai_chat` is chat completions, for an operator's own. */
export type Dialect = 'openai_responses' | 'anthropic_messages' | 'openai_chat'

/** What a message may point at besides its text. */
export type MediaKind = 'image' | 'application/pdf'

/** What an operator knows of one model; what is left out is not known (contract 1.1). */
export type ModelDefinition = {
  readonly id: string
  readonly context_window_tokens?: number
  readonly max_output_tokens?: number
  readonly attachment?: boolean
  readonly reasoning?: boolean
  readonly tool_call?: boolean
  readonly structured_output?: boolean
  readonly input_modalities?: readonly string[]
  readonly output_modalities?: readonly string[]
  /** USD per million tokens. */
  readonly cost?: {
    readonly input: number
    readonly output: number
    readonly cache_read?: number
    readonly cache_write?: number
  }
}

/** A provider that is reached over HTTP. */
export type ProviderDefinition = {
  readonly name: string
  readonly dialect: Dialect
  /** Without a slash at its end; the path of the operation is put behind it. */
  readonly baseUrl: string
  /** Whether its models are called `vendor/model`. */
  readonly namespacedModel: boolean
  readonly supportsResponseFormat: boolean
  readonly models: readonly ModelDefinition[]
}

/** What `GET /v1/models` answers. */
export type ModelCatalogue = {
  /** Changes when anything below it does. */
  readonly snapshot_digest: string
  readonly providers: readonly {
    readonly id: string
    readonly dialect: Dialect
    readonly media_inputs: readonly MediaKind[]
    readonly models: readonly ModelDefinition[]
  }[]
}
