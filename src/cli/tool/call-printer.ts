import type { Json } from '../../kernel/json.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import type { LocalAnswer } from '../../compose/local-brain.ts'
import type { LocalItem } from '../../compose/local-item.ts'
import { printable, printableLines } from '../printable.ts'
import type { Outputs } from './command-outputs.ts'

export type CallPrinter = {
  item(item: LocalItem): void
  answer(answer: LocalAnswer, elapsedMs: number): void
}

/** One JSON object a line: the records as event streams have them, live frames without a sequence, the outcome last. */
export const jsonPrinter = ({ out }: Outputs): CallPrinter => ({
  item: ({ frame }) => out(JSON.stringify(frame)),
  answer: ({ sequence, outcome, results, log }, elapsedMs) =>
    out(JSON.stringify({ type: 'outcome', sequence, outcome, results, log, elapsed_ms: Math.round(elapsedMs) })),
})

/** For people: what the tool says as it says it, then how it ended; its own output and log on standard error. */
export const textPrinter = ({ out, note }: Outputs): CallPrinter => ({
  item({ said }) {
    if (said === undefined) return
    const what = said.type === 'error_result' ? 'error result' : printable(said.kind)
    out(`${what} ${compact(said.data)}`)
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
    out(`${outcomeText(outcome)} (${Math.round(elapsedMs)} ms)`)
  },
})

function outcomeText(outcome: ToolOutput): string {
  switch (outcome.status) {
    case 'ok':
      // What a tool finishes with is a result, which was printed; the value of the whole call is then null.
      return outcome.value === null ? 'ok' : `ok ${compact(outcome.value)}`
    case 'error':
      return `error ${outcome.error.code}: ${printable(outcome.error.message)}`
    case 'unknown':
      return `unknown: ${printable(outcome.message)}`
    default:
      return outcome.status
  }
}

const compact = (value: Json): string => printable(JSON.stringify(value))
