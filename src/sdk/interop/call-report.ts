import type { Json } from '../../kernel/json.ts'
import { toToolResult, type ToolOutput, type ToolResult } from '../../contract/outcome.ts'
import { canonicalText } from '../json-value.ts'
import type { ToolCallAnswer } from '../client/tool-call-answer.ts'

/** What came of a call, as a model is told it. */
export type CallReport = {
  /** Of its `tool_call_started`; undefined for a call that was not made, such as one of a tool that is not there. */
  readonly sequence?: number
  /** Timeouts, cancellations and unknown outcomes too: what they did may have been done, and `text` says so. */
  readonly isError: boolean
  /** The result as text: what the tool gave as `content`, else its JSON. */
  readonly text: string
  /** The result; several in a list; null for none. A failure is `{code, message, …}`. */
  readonly value: Json
}

/** The report of a call that was made. */
export function reportOf({ sequence, finished, outcome, results }: ToolCallAnswer): CallReport {
  const all = withFailure(results, outcome)
  const isError = all.at(-1)?.is_error ?? false
  const [first, ...more] = all
  if (first === undefined) {
    const value = finished ? null : 'The tool goes on working; nothing has come of it yet.'
    return { sequence, isError, text: value ?? 'Done; the tool gave no result.', value }
  }
  const value = more.length === 0 ? first.output : all.map(({ output }) => output)
  return { sequence, isError, text: all.map(textOf).join('\n'), value }
}

/** The report of a call that was refused before anything was sent. */
export function refusal(code: string, message: string): CallReport {
  const value = { code, message, retryable: false }
  return { isError: true, text: JSON.stringify(value), value }
}

/** A call that failed tells so last: with its outcome, unless that has been published as its last result. */
function withFailure(results: readonly ToolResult[], outcome: ToolOutput | undefined): readonly ToolResult[] {
  if (outcome === undefined || outcome.status === 'ok') return results
  const failure = toToolResult(results[0]?.call_id ?? '', outcome)
  const last = results.at(-1)
  const isPublished = last?.is_error === true && canonicalText(last.output) === canonicalText(failure.output)
  return isPublished ? results : [...results, failure]
}

function textOf({ output, content, is_error }: ToolResult): string {
  if (content !== undefined) return content
  return typeof output === 'string' && !is_error ? output : JSON.stringify(output)
}
