import type { ToolOutput, ToolResult } from '../../contract/outcome.ts'
import { sessionEvent, type SessionEvent, type WireEvent } from './session-event.ts'

/** What a direct call of a tool has come to (contract A11). */
export type ToolCallAnswer = {
  /** Of its `tool_call_started`. */
  readonly sequence: number
  /** Whether the call is over; one that has only returned goes on. */
  readonly finished: boolean
  /** How it ended; only when it is over. */
  readonly outcome?: ToolOutput
  /** What it has published so far, in order. */
  readonly results: readonly ToolResult[]
  /** Its records so far: results, events of its own, return and end. */
  readonly events: readonly SessionEvent[]
}

type WireAnswer = Omit<ToolCallAnswer, 'events'> & { readonly events: readonly WireEvent[] }

/** An answer of the server; a number is that of a call which nobody waited for. */
export function toolCallAnswer(answer: unknown): ToolCallAnswer {
  if (typeof answer === 'number') return { sequence: answer, finished: false, results: [], events: [] }
  const { events, ...rest } = answer as WireAnswer
  return { ...rest, events: events.map(sessionEvent) }
}
