// What of the journal and of conversations this loop reads and writes; docs/journal.md has all of it.

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json }

export type ToolUse = { type: 'tool_use'; id: string; name: string; input: Json }
export type Block =
  | { type: 'text'; text: string }
  | { type: 'tool_result'; tool_use_id: string; content: Json; is_error: boolean }
  | ToolUse
export type Message = { role: 'user' | 'assistant' | 'developer'; content: Block[] }

export type ToolResult = { call_id: string; output: Json; is_error: boolean; content?: string }
export type Outcome =
  | { status: 'ok'; value: Json }
  | { status: 'error'; error: { code: string; message: string }; content?: string }
  | { status: 'timeout' | 'cancelled' | 'unknown'; message?: string; content?: string }

/**
 * A record, of which `data` is of the kind `event_type`. Tools emit kinds of their own with any data, `null` or what looks
 * like another's result: look at the kind first.
 */
export type JournalRecord = {
  sequence: number
  event_type: string
  origin?: { kind: string }
  data: {
    sequence?: number
    result?: ToolResult
    outcome?: Outcome
    message?: string
    invocation?: { call_id: string }
  }
}

export type ToolReturn = { call_id: string; sequence: number; events: JournalRecord[]; finished: boolean }
export type Tool = { name: string; environments: string[] }

/** Whether a record tells how a call goes. */
export const isNews = ({ event_type }: JournalRecord): boolean =>
  event_type === 'tool_result_emitted' || event_type === 'tool_call_ended' || event_type === 'tool_call_failed'

/** How a call failed, in words for a model; undefined for what is no failure. */
export function failureIn({ event_type, data }: JournalRecord): Json | undefined {
  if (event_type === 'tool_call_failed') return { code: 'unknown', message: data.message ?? UNKNOWN }
  if (event_type !== 'tool_call_ended' || data.outcome === undefined || data.outcome.status === 'ok') return undefined
  const { outcome } = data
  if (outcome.content !== undefined) return outcome.content
  return outcome.status === 'error' ? outcome.error : { code: outcome.status, message: SENTENCES[outcome.status] }
}

export const UNKNOWN = 'Whether the tool did its work is not known; it may have been done.'
const SENTENCES = {
  timeout: 'The tool took too long and was stopped; its work may have been done.',
  cancelled: 'The tool was cancelled; its work may have been done.',
  unknown: UNKNOWN,
}
