import type { Budget } from './budget.ts'

/** Asks the session's model on behalf of a tool (contract 6.3, 7.4, A18). */
export interface ToolModel {
  call(requestText: string, caller: { sequence: number; budget: Budget; signal: AbortSignal }): Promise<string>
}
