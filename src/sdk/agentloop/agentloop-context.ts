import type { Json } from '../../kernel/json.ts'
import type { Message, ModelRequest, ModelResult, ToolDefinition, UserInput } from '../../contract/message.ts'
import type { WireEvent } from '../client/session-event.ts'
import type { EnvironmentRef } from '../../contract/environment.ts'
import type { EnvironmentServices } from '../host/environment-services.ts'

/** A tool of the session, as a loop sees it. */
export type ActivationTool = ToolDefinition & {
  /** Where it is placed. */
  readonly environments: readonly string[]
  /** The same with their sequences, where one of them is not 1. */
  readonly environment_refs?: readonly EnvironmentRef[]
}

/** A tool call that a loop makes. */
export type LoopCall = {
  readonly name: string
  readonly input: unknown
  /** Names the call among those of one batch; default: a name that no other call of the activation has. */
  readonly call_id?: string
  /** Default: the first that the tool is placed in. */
  readonly environment?: string
  readonly environment_sequence?: number
}

/** How far a call has come: `events` are its records so far, and `finished` says that there are no more to come. */
export type ToolReturn = {
  readonly call_id: string
  /** Of its `tool_call_started`. */
  readonly sequence: number
  readonly events: readonly WireEvent[]
  readonly finished: boolean
}

/** Records of the journal; `next_cursor` is the `after` of the next page. */
export type EventPage = { readonly events: readonly WireEvent[]; readonly next_cursor: number }

/** The loop's own memory in the session. What was set stays also when the activation fails. */
export interface LoopMemory {
  /** A copy of the value, with what this activation has set; undefined where there is none. */
  readonly get: (key: string) => Json | undefined
  /** @param value JSON, `null` included @returns the sequence @throws TypeError for what is no JSON, undefined included */
  readonly set: (key: string, value: unknown) => number
  /** Forgets the value of a key. @returns the sequence */
  readonly delete: (key: string) => number
}

/** As {@link EnvironmentServices}, of a loop, which is answered at once. */
export type LoopEnvironments = {
  readonly [Operation in keyof EnvironmentServices]: (
    ...args: Parameters<EnvironmentServices[Operation]>
  ) => Awaited<ReturnType<EnvironmentServices[Operation]>>
}

/**
 * What one activation starts from, and what it may do (contract 7.2, 9.3). Everything that answers a number answers the
 * journal sequence of what it committed. What the host refuses is thrown as a BrainError with its code, and the activation
 * goes on for whoever catches it.
 */
export interface AgentloopContext {
  /** What the user sent; undefined where later records woke the session. */
  readonly input: UserInput | undefined
  readonly transcript: readonly Message[]
  /** At most 1000 records since the last activation that ended well, oldest first. */
  readonly events: readonly WireEvent[]
  /** The options that the loop was placed with. */
  readonly configuration: Json
  readonly system: string
  readonly tools: readonly ActivationTool[]
  /** The same whenever this activation is looked at again: when it began, and 32 numbers from 0 to 255. */
  readonly runtime: { readonly logical_time_ms: number; readonly deterministic_seed: readonly number[] }
  readonly kv: LoopMemory
  readonly environments: LoopEnvironments
  /** Asks the session's model; what is left out is the session's own. */
  readonly model: (request: ModelRequest) => ModelResult
  /** Makes a call. @returns when it has returned or ended */
  readonly callTool: (call: LoopCall) => ToolReturn
  /** Makes calls at once. @returns when each has returned or ended, in the same order */
  readonly callTools: (calls: readonly LoopCall[]) => readonly ToolReturn[]
  /** Makes this the conversation. */
  readonly setTranscript: (messages: readonly Message[]) => number
  /** Reads the journal on from a sequence; `events` is empty at its end. */
  readonly readEvents: (after: number) => EventPage
  /** Commits an event: `output_emitted` for what the user is shown, or a kind of the loop's own. */
  readonly emit: (kind: string, data: unknown) => number
  /** Leaves a line in the activation's log. Best effort. */
  readonly telemetry: (record: unknown) => void
}

/**
 * One activation. What it returns becomes `turn_ended.result`; what it throws fails the turn, with the `code` of what was
 * thrown or `agentloop_failed`. It may be async, though the context answers everything at once.
 */
export type AgentloopHandler = (ctx: AgentloopContext) => Json | undefined | void | Promise<Json | undefined | void>
