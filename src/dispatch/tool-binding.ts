import type { Json } from '../kernel/json.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { EnvironmentGrant, SessionEnvironment } from '../contract/session-request.ts'
import type { ToolError } from '../contract/outcome.ts'
import type {
  ControllerServices,
  EnvironmentOperation,
  OperationReceipt,
  Place,
} from './environments/environment-operation.ts'

/** One call, committed as started and ready to be sent (contract 3.2, `tool_call_started`). */
export type BoundCall = {
  readonly tenant: TenantId
  readonly session: SessionId
  readonly sequence: number
  readonly tool: string
  readonly place: Place
  /** What the tool may do with environments. */
  readonly grants: readonly EnvironmentGrant[]
  readonly implementation: Json
  /** Text of the validated input. */
  readonly input: string
  /** Absolute deadline for whoever is told it, milliseconds since the epoch; 0 = none. */
  readonly deadlineAtMs: number
  /** What is left of it on the monotonic clock; undefined = none. */
  readonly deadlineInMs: number | undefined
  /** The W3C trace that the request belongs to which caused the call, if it does. */
  readonly traceparent?: string
  /** Services for who runs the place, to go with the operation of that sequence. */
  readonly controllerServices: (sequence: number) => ControllerServices
}

/**
 * What becomes of a call whose last value is malformed or against the output schema: it ends `invalid_output`
 * (contract A17), or it stays open and whoever asked is told (contract 3.3).
 */
export type OnFault = 'end' | 'refuse'

/**
 * What an executor may ask while its call is open. Everything answers after the commit (contract 3.1).
 * @throws BrainError when refused; the call then stays open unless it was over already.
 */
export interface CallServices {
  /** Whether the call takes anything; once it has ended it never does again. */
  readonly isOpen: boolean
  /** Resolves when the call has ended, however. */
  readonly ended: Promise<void>
  emit(eventType: string, payloadText: string): Promise<number>
  emitResult(outcomeText: string): Promise<number>
  returned(outcomeText: string | undefined, onFault?: OnFault): Promise<number>
  finish(outcomeText: string | undefined, onFault?: OnFault): Promise<number>
  /** @returns text of the ModelResult. */
  model(requestText: string): Promise<string>
  /** @returns text of a view, a list or a method's output. */
  environments(requestText: string): Promise<string>
  /** Shows whoever watches the session how far the call is (contract A5); never journalled. */
  progress(data: Json): void
  /** Adds to the call's log (contract A29); never fails, is never journalled. */
  note(entry: CallNote): void
}

export type CallNote =
  | { readonly type: 'stdout'; readonly text: string }
  | { readonly type: 'stderr'; readonly text: string }
  | { readonly type: 'telemetry'; readonly record: string }
  | { readonly type: 'warning'; readonly message: string }
  | { readonly type: 'trap'; readonly message: string }

/** How an executor's work ended. It is looked at only while the call is open. */
export type Receipt =
  /** It gave back this JSON text; the empty text is no result. */
  | { readonly type: 'result'; readonly text: string }
  /** It failed, certainly. */
  | { readonly type: 'failure'; readonly error: ToolError }
  /** Its deadline or our cancellation ended it. */
  | { readonly type: 'stopped'; readonly reason: 'timeout' | 'cancelled' }
  /** Whether it did its work is not known. */
  | { readonly type: 'unknown'; readonly message: string }

export interface RunningCall {
  /** Never rejects. */
  readonly receipt: Promise<Receipt>
  /**
   * Asks the executor to stop. Answers when it was told, not when it has stopped; rejects when it cannot be told.
   *
   * @param sequence of the `tool_cancel_started`.
   */
  cancel(reason: 'timeout' | 'cancelled', sequence: number): Promise<void>
  /**
   * Asked at the deadline, before the call is interrupted for it: how a call ends of which nothing has left yet, and now
   * never will. Absent, or undefined: it ends `timeout`, since its work may have been done (contract A15).
   */
  unsent?(): Receipt | undefined
}

/** A way of reaching tools: one adapter per driver of an environment. */
export interface ToolBinding {
  readonly driver: SessionEnvironment['driver']
  /**
   * Checks a placement before a session exists.
   * @throws BrainError `invalid_request`, `unsupported`, `sandbox_unavailable` naming what is missing.
   */
  checkPlacement(tenant: TenantId, implementation: Json, environment: SessionEnvironment): Promise<void>
  /**
   * Checks what an environment asks for against what is there and what the operator allows.
   * @throws BrainError `invalid_request` naming what is missing or denied.
   */
  checkEnvironment(tenant: TenantId, environment: SessionEnvironment): void
  /**
   * Sends an operation to an environment, once.
   * @throws BrainError when it certainly was not done
   */
  operate(operation: EnvironmentOperation): Promise<OperationReceipt>
  /** The bound of a call of this tool, milliseconds, in place of the server's (contract A9). */
  timeoutMs?(tool: string): number | undefined
  /** Its results have a bound that the operator has set for each tool, which replaces BRAIN_MAX_EMITTED_BYTES. */
  readonly boundsResults?: true
  /** Sends the call, once. Never throws: what goes wrong is the receipt. */
  start(call: BoundCall, services: CallServices): RunningCall
}
