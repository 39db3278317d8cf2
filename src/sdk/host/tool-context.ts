import type { ModelRequest, ModelResult } from '../../contract/message.ts'
import type { ToolError } from '../../contract/outcome.ts'
import type { EnvironmentServices } from './environment-services.ts'

/**
 * What a tool may finish, return or emit as a result: ordinary output, or an outcome that says outright how it went. An
 * object whose `status` is one of the five words is always read as an outcome; `value` of an ok one never is.
 */
export type ToolValue<Value> =
  | Value
  | { readonly status: 'ok'; readonly value: Value; readonly content?: string }
  | { readonly status: 'error'; readonly error: ToolError; readonly content?: string }
  | { readonly status: 'timeout' | 'cancelled'; readonly content?: string }
  | { readonly status: 'unknown'; readonly message: string; readonly content?: string }

/** Text that stands for a result in front of a model; value and status stay what they are. */
export type Presentation = { readonly content?: string }

/** The second argument of `run`: what a tool knows of its call, and what it may ask of Brain while the call is open. */
export interface ToolContext<Value = unknown, Options = unknown> {
  /** What the factory was called with, parsed once and frozen. */
  readonly options: Options
  readonly sessionId: string
  /** The journal's number of this call: with the session id it names the call everywhere. */
  readonly sequence: number
  /** When the call is over, whatever it does; undefined when nothing limits it. The same for the whole call. */
  readonly deadline: Date | undefined
  /** Aborts at the deadline, when the call is cancelled, when the connection is lost and when the client is closed. */
  readonly signal: AbortSignal
  /**
   * Appends an event of the tool's own to the journal.
   *
   * @param kind an identifier that is none of the journal's own record kinds
   * @param data JSON
   * @returns its sequence, once it is durable
   * @throws BrainError when the call is over, or the server refuses the event; the call stays open
   */
  readonly emit: (kind: string, data: unknown) => Promise<number>
  /**
   * Publishes a result and leaves the call open.
   *
   * @returns its sequence, once it is durable
   * @throws BrainError `invalid_output` for what the output schema or JSON does not allow; nothing is written then
   */
  readonly emitResult: (value: ToolValue<Value>, presentation?: Presentation) => Promise<number>
  /**
   * Ends the call, after everything emitted before. With a value, null included, that is its last result; without one
   * nothing more is published. What the output schema does not allow ends the call with `invalid_output`.
   *
   * @throws BrainError when the call is over already, or the server refuses the value, as with `emit_limit`
   */
  readonly finish: (value?: ToolValue<Value>, presentation?: Presentation) => Promise<void>
  /**
   * Asks the session's model, apart from its conversation. Counts for the activation that the call belongs to.
   *
   * @throws BrainError as the server answers it; and when the call is over
   */
  readonly model: (request: ModelRequest) => Promise<ModelResult>
  /** Environments that the tool was granted something with. */
  readonly environments: EnvironmentServices
  /** Leaves a line in the call's log, in a component; an application has a log of its own, and no such function. */
  readonly telemetry?: (record: unknown) => void
}

/** The function of an application tool. */
export type ToolFunction<Input, Value, Options> = (
  input: Input,
  ctx: ToolContext<Value, Options>,
) => ToolValue<Value> | void | Promise<ToolValue<Value> | void>

/** As {@link ToolFunction}, of any tool. */
export type AnyToolFunction = (input: never, ctx: never) => unknown
