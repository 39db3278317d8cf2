import type { Json } from '../kernel/json.ts'
import type { Message, ModelRequest, ModelResult, ToolDefinition, UserInput } from '../contract/message.ts'
import type { JournalRecord, ToolInvocation } from '../journal/record.ts'

/** A tool as a loop sees it (contract 7.2). */
export type ActivationTool = ToolDefinition & { readonly environments: readonly string[] }

/** What a loop starts from (contract 7.2). */
export type TurnInput = {
  /** Absent on a wake by events. */
  readonly input?: UserInput
  readonly transcript: readonly Message[]
  readonly kv: Readonly<Record<string, Json>>
  /** At most 1,000 records since the last successful activation. */
  readonly events: readonly JournalRecord[]
  readonly configuration: Json
  readonly system: string
  readonly tools: readonly ActivationTool[]
}

export type ToolReturn = {
  readonly call_id: string
  readonly sequence: number
  readonly events: readonly JournalRecord[]
  readonly finished: boolean
}

export type EventPage = { readonly events: readonly JournalRecord[]; readonly next_cursor: number }

/**
 * What a loop may do; built-in, component and HTTP loops get the same (contract A2, 7.2). Everything that names a
 * sequence answers after its commit. After the activation has ended or was cancelled every method rejects.
 */
export interface LoopHost {
  model(request: ModelRequest): Promise<ModelResult>
  /** Answers when every call has released, in input order (contract 7.3). */
  dispatch(invocations: readonly ToolInvocation[]): Promise<readonly ToolReturn[]>
  events(after: number): Promise<EventPage>
  /** Writes the difference to the transcript so far; nothing when there is none. */
  setTranscript(messages: readonly Message[]): Promise<number>
  kvRead(key: string): Promise<Json | undefined>
  kvPut(key: string, value: Json): Promise<number>
  kvDelete(key: string): Promise<number>
  emit(kind: string, data: Json): Promise<number>
  telemetry(record: Json): void
}

/** A way of conducting turns. */
export interface Agentloop {
  /** Runs one activation. What it returns becomes `turn_ended.result`; a throw fails the turn. */
  run(input: TurnInput, host: LoopHost, signal: AbortSignal): Promise<{ readonly result?: Json }>
}
