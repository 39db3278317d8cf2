import type { Json } from '../../kernel/json.ts'
import type { ModelResult } from '../../contract/message.ts'
import type { ToolOutput } from '../../contract/outcome.ts'

/**
 * What a call asks of Brain, whichever way it goes there. Numbers are journal sequences; each promise is settled once
 * what was asked is on record.
 *
 * @throws BrainError with the status and code of a refusal, which leaves the call open; anything else is a request that
 * got lost, of which nobody knows whether it arrived
 */
export interface CallServices {
  emit(kind: string, data: Json): Promise<number>
  result(outcome: ToolOutput): Promise<number>
  returned(outcome: ToolOutput | undefined): Promise<void>
  finish(outcome: ToolOutput | undefined): Promise<void>
  /** As `finish`, of a call that its function did not end: it threw, was not called, or nobody waits for it any more. */
  fail(outcome: ToolOutput): Promise<void>
  model(request: Json, signal: AbortSignal): Promise<ModelResult>
  environments(request: object, signal: AbortSignal): Promise<Json | undefined>
}
