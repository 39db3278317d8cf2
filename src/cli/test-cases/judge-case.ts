import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../kernel/json.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../../journal/record.ts'
import type { ToolCase } from './case-schema.ts'

/** What came of a case. */
export type Observed = {
  readonly outcome: ToolOutput | undefined
  readonly events: readonly JournalRecord[]
  /** Texts of the files that the case asks about; undefined = there is none. */
  readonly files: Readonly<Record<string, string | undefined>>
}

/** What is not as the case expects it, a line each; none when all is. */
export function faultsOf({ expect }: ToolCase, observed: Observed): string[] {
  const told = observed.events.filter(({ event_type: kind }) => !isReservedKind(kind))
  const results = observed.events.flatMap((record) => dataOf(record, 'tool_result_emitted')?.result.output ?? [])
  return [
    ...outcomeFaults(expect.outcome, observed.outcome),
    ...(expect.events === undefined ? [] : eventFaults(expect.events, told)),
    ...(expect.results === undefined ? [] : difference('results', expect.results, results)),
    ...Object.entries(expect.files ?? {}).flatMap(([path, text]) =>
      difference(`file ${path}`, text, observed.files[path] ?? null),
    ),
  ]
}

function outcomeFaults(expected: ToolCase['expect']['outcome'], outcome: ToolOutput | undefined): string[] {
  const { status, value, error } = expected
  if (outcome?.status !== status) return difference('outcome', expected as Json, (outcome ?? null) as Json)
  if (outcome.status === 'ok') return value === undefined ? [] : difference('value', value, outcome.value)
  if (outcome.status !== 'error' || error === undefined) return []
  const { error: actual } = outcome
  return Object.entries(error).flatMap(([name, wanted]) =>
    difference(`error.${name}`, wanted ?? null, (actual as Readonly<Record<string, Json>>)[name] ?? null),
  )
}

function eventFaults(expected: NonNullable<ToolCase['expect']['events']>, told: readonly JournalRecord[]): string[] {
  const kinds = difference(
    'events',
    expected.map(({ kind }) => kind),
    told.map(({ event_type: kind }) => kind),
  )
  if (kinds.length > 0) return kinds
  return expected.flatMap(({ kind, payload }, index) =>
    payload === undefined ? [] : difference(`event ${kind}`, payload, (told[index]?.data ?? null) as Json),
  )
}

const difference = (what: string, expected: Json, actual: Json): string[] =>
  isDeepStrictEqual(expected, actual)
    ? []
    : [`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`]
