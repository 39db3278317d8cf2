import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Json, JsonObject } from '../kernel/json.ts'
import { FIXED_SENTENCES, isOutcomeUnknown, shownError, toToolResult, type ToolOutput } from '../contract/outcome.ts'
import type { CallAnswer } from '../session/direct-calls.ts'

/** The member of a result's `_meta` that tells programs what the text tells models: {@link CallMeta}. */
export const CALL_META = 'brain/call'

type CallMeta = {
  /** Of the call's `tool_call_started` in the session's journal. */
  readonly sequence: number
  /** Whether the call has ended; one that has not goes on, and the journal tells what comes of it. */
  readonly finished: boolean
  readonly error?: Json
  readonly unknown_outcome?: true
}

/**
 * What a client is told of a call. Every result is a text, the last one that is no error is `structuredContent` too; a
 * call that did not end well is an error whose text names code, reason, and that the work may have been done.
 *
 * @param promised the tool's output schema as the client knows it: an answer without a value would break it
 */
export function toCallToolResult(answer: CallAnswer, promised?: JsonObject): CallToolResult {
  const { sequence, finished, outcome, results } = answer
  const about: CallMeta = { sequence, finished }
  const texts = results.map(({ content, output }) => content ?? textOf(output))
  if (outcome !== undefined && outcome.status !== 'ok') return failed(outcome, about, texts)
  const last = results.at(-1)
  if (last?.is_error === true) return { ...told(texts), isError: true, ...meta({ ...about, error: last.output }) }
  if (last !== undefined) return { ...told(texts), structuredContent: last.output, ...meta(about) }
  if (promised === undefined) return { ...told(['The tool has finished and gave no result.']), ...meta(about) }
  const message = 'The tool has finished without a result, although its output schema promises one.'
  return { ...told([message]), isError: true, ...meta(about) }
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function failed(outcome: ToolOutput, about: CallMeta, texts: readonly string[]): CallToolResult {
  const { output, content } = toToolResult('', outcome)
  const isUnknown = isOutcomeUnknown(outcome)
  // Results that were published before the end stay readable; the reason comes last, where models look for it.
  const shown = content === undefined || texts.at(-1) === content ? texts : [...texts, content]
  const error = { ...about, error: output, ...(isUnknown ? { unknown_outcome: true as const } : {}) }
  return { ...told([...shown, reasonOf(outcome)]), isError: true, ...meta(error) }
}

function reasonOf(outcome: ToolOutput): string {
  switch (outcome.status) {
    case 'ok':
      return ''
    case 'error':
      return `${outcome.error.code}: ${shownError(outcome).message}`
    case 'unknown':
      return [`unknown: ${FIXED_SENTENCES.unknown}`, outcome.message].filter((part) => part !== '').join(' ')
    case 'timeout':
    case 'cancelled':
      return `${outcome.status}: ${FIXED_SENTENCES[outcome.status]}`
    default:
      return outcome satisfies never
  }
}

const told = (texts: readonly string[]): { content: { type: 'text'; text: string }[] } => ({
  content: texts.map((text) => ({ type: 'text', text })),
})

const meta = (about: CallMeta): { _meta: Record<string, unknown> } => ({ _meta: { [CALL_META]: about } })
