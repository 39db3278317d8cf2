import type { Json } from '../../kernel/json.ts'
import type { SessionId, TenantId } from '../../kernel/ids.ts'
import type { Callback } from '../../contract/environment-protocol.ts'
import type { EnvironmentRef } from '../../contract/environment.ts'
import type { ToolError } from '../../contract/outcome.ts'
import type { SessionEnvironment } from '../../contract/session-request.ts'

/** An environment at the time of a call or an operation: one that was declared, or an instance of it. */
export type Place = {
  /** As declared, with the name and the configuration of the instance. */
  readonly environment: SessionEnvironment
  readonly reference: EnvironmentRef
  /** The declared environment's name. */
  readonly template: string
}

/** What the controller of an environment may ask for itself, beside whatever it runs (contract 5.2). */
export type ControllerServices = {
  /** Until the operation that it is given with is over. */
  readonly context: Callback
  /** For as long as the environment exists. */
  readonly reporter: Callback
  /** The operation is over. */
  readonly close: () => void
}

/** What is asked of an environment itself, committed as started and ready to be sent. */
export type EnvironmentOperation = {
  readonly tenant: TenantId
  readonly session: SessionId
  readonly place: Place
  readonly sequence: number
  readonly request:
    | { readonly type: 'setup'; readonly configuration: Json }
    | { readonly type: 'call'; readonly name: string; readonly input: Json }
    | { readonly type: 'detach' }
    | { readonly type: 'teardown' }
  /** Services of the operation, until its receipt is there. */
  readonly context: Callback
  /** Services of what the environment will be, for as long as it exists; absent where it is given up. */
  readonly reporter?: Callback
  /** Aborted when nobody waits for the receipt any more. */
  readonly signal: AbortSignal
}

/** What became of an operation. */
export type OperationReceipt =
  | { readonly type: 'accepted'; readonly onTurnEnd?: string }
  | { readonly type: 'result'; readonly output: Json }
  /** It failed, certainly. */
  | { readonly type: 'failure'; readonly error: ToolError }
  /** Whether it was done is not known. */
  | { readonly type: 'unknown'; readonly message: string }

export const ACCEPTED: OperationReceipt = { type: 'accepted' }
