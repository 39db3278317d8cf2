import type { Limits } from '../../contract/limits.ts'
import type { ModelResult } from '../../contract/message.ts'
import type { MediaKind, ProviderDefinition } from '../../contract/model-catalogue.ts'
import type { ModelCall } from '../model-provider.ts'

/** What a wire can carry. */
export type DialectRules = {
  readonly mediaInputs: readonly MediaKind[]
  /** Names that `options` of a request may have (contract 7.4). */
  readonly options: readonly string[]
  /** What its API takes as the name of a tool. */
  readonly toolName: RegExp
  /** Marks native blocks of this wire; raised when their form changes. */
  readonly nativeFormat: string
}

export type RemoteCall = ModelCall & {
  readonly provider: ProviderDefinition
  readonly limits: Limits
  /** Takes the API key out of a text. */
  readonly redact: (text: string) => string
}

/** One wire: how requests are written on it, and answers read. */
export interface Dialect extends DialectRules {
  /** The request was checked. @throws ModelFailure */
  ask(call: RemoteCall): Promise<ModelResult>
}
