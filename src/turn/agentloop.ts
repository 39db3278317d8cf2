import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { Message, ModelRequest, ModelResult, ToolDefinition, UserInput } from '../contract/message.ts'
import type { EnvironmentRef } from '../contract/environment.ts'
import type { SessionAgentloop, SessionEnvironment } from '../contract/session-request.ts'
import type { ControllerServices, Place } from '../dispatch/environments/environment-operation.ts'
import type { Placing } from '../dispatch/environments/places.ts'
import type { JournalRecord, ToolInvocation } from '../journal/record.ts'

/** A tool as a loop sees it (contract 7.2). */
export type ActivationTool = ToolDefinition & {
  /** Where it can be called: environments that the session declared, and instances of them. */
  readonly environments: readonly string[]
  /** The same as references; only when one of their sequences is not 1. */
  readonly environment_refs?: readonly EnvironmentRef[]
}

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
  /** The same whenever this activation is looked at again: made of the session and its records alone. */
  readonly runtime: {
    /** When `activation_started` was recorded. */
    readonly logical_time_ms: number
    /** 32 numbers from 0 to 255. */
    readonly deterministic_seed: readonly number[]
  }
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
  /** Control of environments within the loop's grants (contract 5.4). @returns JSON text */
  environments(requestText: string): Promise<string>
  telemetry(record: Json): void
}

/** What `turn_failed` will say, where a loop knows better than that it failed. */
export class AgentloopFailure extends Error {
  override readonly name = 'AgentloopFailure'
  readonly code: string
  readonly retryable: boolean
  /** Whether it is not known what the loop has done. */
  readonly ambiguous: boolean

  constructor(
    code: string,
    message: string,
    options: { readonly retryable?: boolean; readonly ambiguous?: boolean } = {},
  ) {
    super(message)
    this.code = code
    this.retryable = options.retryable ?? false
    this.ambiguous = options.ambiguous ?? false
  }
}

/** Where and when a loop runs. */
export type ActivationContext = {
  readonly tenant: TenantId
  readonly session: SessionId
  /** Of `activation_started`. */
  readonly sequence: number
  /** Aborted when nobody waits for the loop any more: it is to be stopped, whatever it does. */
  readonly signal: AbortSignal
  /** Services for who runs the place of the loop, until the activation is over. */
  readonly controllerServices: (place: Place) => ControllerServices
}

/** A way of conducting turns. */
export interface Agentloop {
  /**
   * Runs one activation. What it returns becomes `turn_ended.result`; a throw fails the turn.
   * @throws AgentloopFailure, ModelFailure, BrainError with the code that the turn fails with; anything else is
   *   `agentloop_failed`.
   */
  run(input: TurnInput, host: LoopHost, context: ActivationContext): Promise<{ readonly result?: Json }>
}

/** The loops of a server. */
export interface Agentloops {
  /**
   * Checks the loop that a session asks for, before there is a session.
   * @throws BrainError `invalid_request`, `sandbox_unavailable` naming what is wrong.
   */
  check(
    tenant: TenantId,
    asked: { readonly implementation: Json; readonly environment?: SessionEnvironment },
  ): Promise<SessionAgentloop['implementation']>
  of(session: Placing): Agentloop
}
