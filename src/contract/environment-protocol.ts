import type { Json } from '../kernel/json.ts'

/** The protocol between Brain and environments that are elsewhere (contract 5.1). */
export const ENVIRONMENT_CONTRACT = 'environment/v1'

/** Where an environment may answer back, and with what. */
export type Callback = { readonly url: string; readonly token: string; readonly methods: readonly string[] }

/** What an environment is asked to do. */
export type EnvironmentRequest =
  | { readonly type: 'setup'; readonly configuration: Json }
  | { readonly type: 'call'; readonly name: string; readonly input: Json }
  | {
      readonly type: 'execute'
      readonly implementation: Json
      readonly input: Json
      /** What is left of the deadline, milliseconds; absent = none. */
      readonly deadline_ms?: number
      readonly callback?: Callback
    }
  | { readonly type: 'cancel'; readonly target_sequence: number }
  | { readonly type: 'detach' }
  | { readonly type: 'teardown' }

/** Body of `POST {url}/v1/operations`. */
export type EnvironmentCommand = {
  readonly contract: typeof ENVIRONMENT_CONTRACT
  readonly operation: {
    readonly session_id: string
    /** The environment's name; with the session and `sequence` it names the operation. */
    readonly environment: string
    readonly sequence: number
    /** The environment as it is referred to. */
    readonly binding?: { readonly name: string; readonly sequence: number }
    readonly configuration?: Json
    /** Of an environment that was made from a declared one: that one's name. */
    readonly template?: string
    /** Services of this operation, until it ends. */
    readonly context?: Callback
    /** Services for as long as the environment exists. */
    readonly reporter?: Callback
    readonly request: EnvironmentRequest
  }
}

/** What an operation came to; which of them are a success depends on what was asked. */
export type EnvironmentReceipt =
  | { readonly type: 'accepted'; readonly on_turn_end?: string }
  | { readonly type: 'progress'; readonly data: Json }
  | { readonly type: 'result'; readonly output: Json }
  | { readonly type: 'returned'; readonly output?: Json }
  | {
      readonly type: 'failure'
      readonly code: string
      readonly message: string
      readonly retryable: boolean
      readonly details?: Json
    }
  | { readonly type: 'unknown'; readonly message: string }

/** What an environment answers, with status 200. */
export type EnvironmentResponse = {
  readonly contract: typeof ENVIRONMENT_CONTRACT
  readonly sequence: number
  readonly receipt: EnvironmentReceipt
}
