import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Message } from '../../contract/message.ts'
import type { PlacedAgentloop } from '../declare/agentloop.ts'
import type { Environment } from '../declare/environments.ts'
import type { PlacedTool } from '../declare/tool.ts'

/** When environments are set up: `automatic` within create, `manual` when somebody who was granted it does. */
export type Lifecycle = 'automatic' | 'manual'

/** The model of a session. */
export type ModelOptions = {
  /** One that the server knows, see `brain.models()`. */
  readonly provider: string
  readonly name: string
  /** Never in the journal. */
  readonly apiKey: string
  /** What the provider `scripted` answers, for tests and demonstrations. */
  readonly script?: readonly Json[]
}

/** What a session is made of. */
export type SessionOptions = {
  readonly model: ModelOptions
  /** What conducts its turns; the loop that is part of the server when absent. */
  readonly agentloop?: PlacedAgentloop
  /** Instructions for the model; '' when absent. */
  readonly system?: string
  readonly tools?: readonly PlacedTool[]
  /** Distributed tools of the operator's that the session has, by name: those of `brain.catalog()`. */
  readonly config?: { readonly tools: readonly string[] }
  /** Environments beside those that loop and tools are placed in. */
  readonly environments?: readonly Environment[]
  /** When its environments are set up: `bindings` by name, else `default`, else `automatic`. */
  readonly environment?: {
    readonly lifecycle?: { readonly default?: Lifecycle; readonly bindings?: Readonly<Record<string, Lifecycle>> }
  }
  /** A conversation to start from. */
  readonly transcript?: readonly Message[]
  /** As given to the model, where its provider has one. */
  readonly responseFormat?: JsonObject
  /** Milliseconds without work until the session is suspended; 0 = never; the server's default when absent. */
  readonly idleTtlMs?: number
  /** At most 16, to find the session by. */
  readonly labels?: Readonly<Record<string, string>>
}

export const SESSION_OPTIONS = [
  'model',
  'agentloop',
  'system',
  'tools',
  'config',
  'environments',
  'environment',
  'transcript',
  'responseFormat',
  'idleTtlMs',
  'labels',
]
