import type { Json } from '../../kernel/json.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import type { LocalAnswer } from '../../compose/local-brain.ts'
import { dataOf } from '../../journal/record.ts'
import type { FeedItem } from '../../session/event-feed.ts'
import { printable, printableLines } from '../printable.ts'
import type { Outputs } from './command-outputs.ts'

export type CallPrinter = {
  item(item: FeedItem): void
  answer(answer: LocalAnswer, elapsedMs: number): void
}

/** One JSON object a line: the records as event streams have them, live frames without a sequence, the outcome last. */
export const jsonPrinter = ({ out }: Outputs): CallPrinter => ({
  item: (item) => out(JSON.stringify(item.type === 'record' ? item.record : { ...item.frame, live: true })),
  answer: ({ sequence, outcome, log }, elapsedMs) =>
    out(JSON.stringify({ type: 'outcome', sequence, outcome, log, elapsed_ms: Math.round(elapsedMs) })),
})

/** The beginning and the end of a call are its outcome, which comes after everything else. */
const BETWEEN = new Set(['tool_call_started', 'tool_call_returned', 'tool_call_ended', 'tool_call_failed'])

/** For people: what the tool says as it says it, then how it ended; its own output and log on standard error. */
export const textPrinter = ({ out, note }: Outputs): CallPrinter => ({
  item(item) {
    const { event_type: type, data } =
      item.type === 'record' ? item.record : { event_type: item.frame.type, data: item.frame.data }
    if (BETWEEN.has(type)) return
    const result = item.type === 'record' ? dataOf(item.record, 'tool_result_emitted')?.result : undefined
    if (result === undefined) out(`${printable(type)} ${compact(data as Json)}`)
    else out(`${result.is_error ? 'error result' : 'result'} ${compact(result.output)}`)
  },
  answer({ outcome, log }, elapsedMs) {
    for (const [name, text] of [
      ['stdout', log.stdout],
      ['stderr', log.stderr],
    ] as const)
      for (const line of printableLines(text.replace(/\n$/, ''))) if (text !== '') note(`${name} | ${line}`)
    for (const record of log.telemetry) note(`telemetry | ${printable(record)}`)
    for (const warning of log.warnings) note(`warning | ${printable(warning)}`)
    if (log.trap !== undefined) note(`trap | ${printable(log.trap)}`)
    out(`${outcome === undefined ? 'unknown' : outcomeText(outcome)} (${Math.round(elapsedMs)} ms)`)
  },
})

function outcomeText(outcome: ToolOutput): string {
  switch (outcome.status) {
    case 'ok':
      return `ok ${compact(outcome.value)}`
    case 'error':
      return `error ${outcome.error.code}: ${printable(outcome.error.message)}`
    case 'unknown':
      return `unknown: ${printable(outcome.message)}`
    default:
      return outcome.status
  }
}

const compact = (value: Json): string => printable(JSON.stringify(value))
