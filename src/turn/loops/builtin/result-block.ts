import type { Json } from '../../../kernel/json.ts'
import type { ToolResultBlock } from '../../../contract/message.ts'
import { FIXED_SENTENCES, toToolResult, type ToolResult } from '../../../contract/outcome.ts'
import { dataOf, type JournalRecord } from '../../../journal/record.ts'

const shownOf = (result: ToolResult): Json => result.content ?? result.output

/** How a failed call reads as a result; undefined for records that are no failure. */
export function failureOf(callId: string, record: JournalRecord): ToolResult | undefined {
  const ended = dataOf(record, 'tool_call_ended')
  if (ended !== undefined) return ended.outcome.status === 'ok' ? undefined : toToolResult(callId, ended.outcome)
  const failed = dataOf(record, 'tool_call_failed')
  // A call that a crash cut off reads as `unknown` wherever outcomes are shown (contract 3.7).
  return failed === undefined ? undefined : toToolResult(callId, { status: 'unknown', message: failed.message })
}

/** What the model is shown for a call: its results so far, or why there are none. */
export function toResultBlock(callId: string, events: readonly JournalRecord[], finished: boolean): ToolResultBlock {
  const results = events.flatMap((record) => dataOf(record, 'tool_result_emitted')?.result ?? [])
  const failure =
    results.at(-1)?.is_error === true ? undefined : events.flatMap((record) => failureOf(callId, record) ?? [])[0]
  const all = failure === undefined ? results : [...results, failure]
  const isError = all.at(-1)?.is_error ?? false
  return { type: 'tool_result', tool_use_id: callId, content: contentOf(all, finished), is_error: isError }
}

function contentOf(results: readonly ToolResult[], finished: boolean): Json {
  const [first, ...more] = results
  if (first === undefined) return finished ? null : 'The tool goes on working; its results will follow.'
  return more.length === 0 ? shownOf(first) : results.map(shownOf)
}

/** For a use that no record tells of. */
export const unansweredBlock = (callId: string): ToolResultBlock => ({
  type: 'tool_result',
  tool_use_id: callId,
  content: { code: 'unknown', message: FIXED_SENTENCES.unknown },
  is_error: true,
})
