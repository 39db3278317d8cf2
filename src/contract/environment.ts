import type { Json, JsonObject } from '../kernel/json.ts'
import type { ToolDefinition } from './message.ts'

/** One environment at one time: `sequence` is 1 for what the session declared, and changes when it is replaced. */
export type EnvironmentRef = { readonly name: string; readonly sequence: number }

export const ENVIRONMENT_STATES = [
  'declared',
  'starting',
  'ready',
  'failed',
  'unknown',
  'deleting',
  'deleted',
  'detached',
] as const

/** How far an environment has come (contract 5.4). */
export type EnvironmentState = (typeof ENVIRONMENT_STATES)[number]

export const AVAILABILITIES = ['available', 'unavailable', 'unknown'] as const

/** Whether an environment can be used, as its controller has last said. */
export type Availability = (typeof AVAILABILITIES)[number]

/** What may be asked of an environment by name (contract 2.1). */
export type EnvironmentMethod = {
  readonly description: string
  readonly input_schema: JsonObject
  readonly output_schema?: JsonObject
  /** `replace`: a call makes another environment of it, under a new sequence. Default `none`. */
  readonly effect?: 'none' | 'replace'
}

/** What may be asked of an environment, by the names of its methods. */
export type EnvironmentMethods = Readonly<Record<string, EnvironmentMethod>>

/** Lets environments be made from a declared one, each with a configuration that the schema allows (contract 2.1). */
export type EnvironmentTemplate = { readonly max_instances: number; readonly configuration_schema: JsonObject }

/** What a controller says of its environment of its own accord (contract 5.4). */
export type Observation =
  | { readonly scope: 'environment'; readonly availability: Availability; readonly message: string }
  | { readonly scope: 'resource'; readonly resource: string; readonly code: string; readonly message: string }
  | {
      readonly scope: 'operation'
      readonly sequence: number
      readonly resolution:
        | { readonly status: 'ready' | 'deleted' | 'detached' }
        | { readonly status: 'failed'; readonly error: JsonObject }
    }

/** An environment as callers see it (contract 5.4). */
export type EnvironmentView = {
  readonly reference: EnvironmentRef
  /** The declared environment that this one was made from, or is. */
  readonly template: string
  readonly lifecycle: 'automatic' | 'manual'
  readonly state: EnvironmentState
  readonly configuration: Json
  readonly methods: EnvironmentMethods
  /** Tools that are placed here. */
  readonly tools: readonly ToolDefinition[]
  /** An operation that has no certain end yet. */
  readonly pending_operation?: number
  readonly availability?: Availability
  readonly observed_at_ms?: number
  readonly observation?: Observation
}

/** What `environments` services and `POST …/environments` take (contract 5.4). */
export type EnvironmentControlRequest =
  | { readonly operation: 'list' }
  | { readonly operation: 'get'; readonly environment: EnvironmentRef }
  | { readonly operation: 'create'; readonly template: string; readonly name: string; readonly configuration: Json }
  | { readonly operation: 'setup'; readonly environment: EnvironmentRef }
  | { readonly operation: 'update'; readonly environment: EnvironmentRef; readonly configuration: Json }
  | { readonly operation: 'delete'; readonly environment: EnvironmentRef }
  | {
      readonly operation: 'call'
      readonly environment: EnvironmentRef
      readonly method: string
      readonly input: Json
    }

/** What a controller reports, by its reporter or within an operation (contract 5.2). */
export type EnvironmentEvent =
  | { readonly type: 'event'; readonly event_type: string; readonly data: Json }
  | { readonly type: 'result'; readonly output: { readonly observation: Observation; readonly content?: string } }
