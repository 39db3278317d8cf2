// What of the journal this loop reads; docs/journal.md has all of it.
import type { JournalEvent, Json, ToolOutput, ToolResult } from '@aexhq/brain/agentloop'

/**
 * A record, of which `data` is of the kind `event_type`. Tools emit kinds of their own with any data, `null` or what looks
 * like another's result: look at the kind first.
 */
export type JournalRecord = Omit<JournalEvent, 'data'> & {
  readonly data: {
    readonly sequence?: number
    readonly result?: ToolResult
    readonly outcome?: ToolOutput
    readonly message?: string
    readonly invocation?: { readonly call_id: string }
  }
}

export const recordsIn = (events: readonly JournalEvent[]): readonly JournalRecord[] =>
  events as unknown as readonly JournalRecord[]

/** Whether a record tells how a call goes. */
export const isNews = ({ event_type }: JournalRecord): boolean =>
  event_type === 'tool_result_emitted' || event_type === 'tool_call_ended' || event_type === 'tool_call_failed'

/** How a call failed, in words for a model; undefined for what is no failure. */
export function failureIn({ event_type, data }: JournalRecord): Json | undefined {
  if (event_type === 'tool_call_failed') return { code: 'unknown', message: data.message ?? UNKNOWN }
  if (event_type !== 'tool_call_ended' || data.outcome === undefined || data.outcome.status === 'ok') return undefined
  const { outcome } = data
  if (outcome.content !== undefined) return outcome.content
  return outcome.status === 'error'
    ? { ...outcome.error }
    : { code: outcome.status, message: SENTENCES[outcome.status] }
}

export const UNKNOWN = 'Whether the tool did its work is not known; it may have been done.'
const SENTENCES = {
  timeout: 'The tool took too long and was stopped; its work may have been done.',
  cancelled: 'The tool was cancelled; its work may have been done.',
  unknown: UNKNOWN,
}
