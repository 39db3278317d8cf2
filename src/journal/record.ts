import type { JsonObject, Json } from '../kernel/json.ts'
import type { Message, ModelResult, StopReason, ToolDefinition, Usage, UserInput } from '../contract/message.ts'
import type { EnvironmentRef, EnvironmentView, Observation } from '../contract/environment.ts'
import type { Outcome, ToolOutput, ToolResult } from '../contract/outcome.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'

/** Why something failed, as the journal keeps it (contract 3.2). */
export type Failure = {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly ambiguous: boolean
}

export type ToolInvocation = {
  readonly call_id: string
  readonly name: string
  readonly environment: string
  readonly environment_sequence?: number
  readonly input: Json
}

type Empty = Record<never, never>

/** What is done to an environment, each with a start and one end (contract 3.2). */
export type EnvironmentOperation = 'setup' | 'call' | 'detach' | 'teardown' | 'replace'

type OperationStarted = {
  readonly environment: string
  readonly environment_sequence: number
  readonly request: JsonObject
}
type OperationEnded = { readonly sequence: number; readonly result: JsonObject }
/** `transport`: it is not known what has become of it. */
type OperationFailed = { readonly sequence: number } & Failure & {
    readonly details?: Json
    readonly domain: 'transport' | 'environment'
  }

/** `data` of every kind that the kernel writes (contract 3.2). Extension events carry any JSON under their own kind. */
export type KernelData = {
  session_creation_started: SessionConfiguration
  session_creation_ended: { readonly configuration: SessionConfiguration }
  session_creation_failed: Failure
  session_suspended: Empty
  session_resumed: Empty
  session_interrupted: Empty
  session_end_started: Empty
  session_end_failed: Failure
  session_ended: Empty
  turn_started: { readonly input: UserInput } | { readonly trigger: 'events' }
  activation_started: { readonly since: number }
  activation_ended: Empty
  activation_failed: Failure
  turn_ended: { readonly result: Json; readonly events_through: number }
  turn_failed: Failure
  transcript_delta: { readonly keep: number; readonly append: readonly Message[] }
  kv_set: { readonly key: string; readonly value: Json }
  kv_delete: { readonly key: string }
  model_call_started: {
    readonly system: string
    readonly tools: readonly ToolDefinition[]
    readonly messages: number
    readonly context: {
      readonly through_sequence: number
      readonly delta: { readonly keep: number; readonly append: readonly Message[] }
    }
    readonly response_format?: JsonObject
    readonly max_output_tokens?: number
    readonly options?: JsonObject
    readonly tool_sequence?: number
  }
  model_call_ended: { readonly sequence: number; readonly result: ModelResult }
  model_call_failed: { readonly sequence: number } & Failure & {
      readonly response?: {
        readonly stop_reason: StopReason
        readonly usage: Usage
        readonly usage_complete: boolean
      }
    }
  tool_call_started: {
    readonly tool: string
    readonly environment: string
    readonly environment_sequence: number
    readonly invocation: ToolInvocation
    readonly deadline_ms: number | null
  }
  tool_result_emitted: { readonly sequence: number; readonly result: ToolResult }
  tool_call_returned: { readonly sequence: number }
  tool_call_ended: { readonly sequence: number; readonly outcome: ToolOutput }
  tool_call_failed: { readonly sequence: number } & Failure
  tool_cancel_started: { readonly target_sequence: number; readonly tool: string; readonly environment: string }
  tool_cancel_ended: { readonly sequence: number }
  tool_cancel_failed: {
    readonly sequence: number
    readonly code: 'unknown'
    readonly ambiguous: boolean
    readonly message: string
  }
  environment_declared: EnvironmentView
  environment_updated: { readonly environment: EnvironmentRef; readonly configuration: Json }
  environment_closed: { readonly environment: string }
  environment_observation: { readonly observation: Observation; readonly content?: string }
} & { [Operation in EnvironmentOperation as `environment_${Operation}_started`]: OperationStarted } & {
  [Operation in EnvironmentOperation as `environment_${Operation}_ended`]: OperationEnded
} & { [Operation in EnvironmentOperation as `environment_${Operation}_failed`]: OperationFailed }

export type KernelKind = keyof KernelData

/**
 * Kinds of the closed list of contract 3.2. Extensions may emit any identifier outside of it; `output_emitted` is on
 * the list there but theirs to emit. Kinds that no path writes yet are reserved all the same.
 */
const RESERVED_KINDS: ReadonlySet<string> = new Set([
  ...['started', 'ended', 'failed'].map((end) => `session_creation_${end}`),
  ...['suspended', 'resumed', 'interrupted', 'end_started', 'end_failed', 'ended'].map((end) => `session_${end}`),
  ...['turn', 'activation', 'model_call', 'tool_call', 'tool_cancel'].flatMap((noun) => [
    `${noun}_started`,
    `${noun}_ended`,
    `${noun}_failed`,
  ]),
  'transcript_delta',
  'kv_set',
  'kv_delete',
  'tool_result_emitted',
  'tool_call_returned',
  ...['setup', 'call', 'detach', 'teardown', 'replace'].flatMap((noun) => [
    `environment_${noun}_started`,
    `environment_${noun}_ended`,
    `environment_${noun}_failed`,
  ]),
  ...['declared', 'updated', 'closed', 'unreachable', 'observation'].map((end) => `environment_${end}`),
])

export const isReservedKind = (kind: string): boolean => RESERVED_KINDS.has(kind)

/** Who caused a record; assigned by Brain, no payload can change it (contract 3.1). */
export type Origin =
  | { readonly kind: 'agentloop'; readonly sequence: number }
  | { readonly kind: 'tool'; readonly sequence: number }
  | { readonly kind: 'environment'; readonly environment: EnvironmentRef }
  | { readonly kind: 'application' }

/** A record before the journal gave it a sequence. `data` is plain JSON. */
export type NewRecord =
  | {
      [Kind in KernelKind]: { readonly kind: Kind; readonly data: KernelData[Kind]; readonly origin?: Origin }
    }[KernelKind]
  | { readonly kind: 'event'; readonly event_type: string; readonly data: Json; readonly origin: Origin }

/** A committed record, exactly as clients see it (contract 3.1). */
export type JournalRecord = {
  readonly sequence: number
  readonly recorded_at_ms: number
  readonly event_type: string
  readonly data: Json
  readonly origin?: Origin
}

/** The type that a record has on the wire. */
export const eventTypeOf = (record: NewRecord): string => (record.kind === 'event' ? record.event_type : record.kind)

/** `data` of a committed record of a known kind; undefined when it is of another. */
export function dataOf<Kind extends KernelKind>(record: JournalRecord, kind: Kind): KernelData[Kind] | undefined {
  return record.event_type === kind ? (record.data as unknown as KernelData[Kind]) : undefined
}

export type { Outcome }
