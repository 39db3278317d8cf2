import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../kernel/json.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import type { LocalAnswer } from '../../compose/local-brain.ts'
import type { ToolCase } from './case-schema.ts'

/** What came of a case. */
export type Observed = Pick<LocalAnswer, 'outcome' | 'events' | 'results'> & {
  /** Texts of the files that the case asks about; undefined = there is none. */
  readonly files: Readonly<Record<string, string | undefined>>
}

/** What is not as the case expects it, a line each; none when all is. */
export function faultsOf({ expect }: ToolCase, observed: Observed): string[] {
  const { results } = observed
  return [
    ...outcomeFaults(expect.outcome, observed.outcome, results.at(-1)),
    ...(expect.events === undefined ? [] : eventFaults(expect.events, observed.events)),
    ...(expect.results === undefined ? [] : difference('results', expect.results, results)),
    ...Object.entries(expect.files ?? {}).flatMap(([path, text]) =>
      difference(`file ${path}`, text, observed.files[path] ?? null),
    ),
  ]
}

function outcomeFaults(
  expected: ToolCase['expect']['outcome'],
  outcome: ToolOutput,
  lastResult: Json | undefined,
): string[] {
  const { status, value, error } = expected
  if (outcome.status !== status) return difference('outcome', expected as Json, outcome as Json)
  if (outcome.status === 'ok') return value === undefined ? [] : difference('value', value, lastResult ?? outcome.value)
  if (outcome.status !== 'error' || error === undefined) return []
  const { error: actual } = outcome
  return Object.entries(error).flatMap(([name, wanted]) =>
    difference(`error.${name}`, wanted ?? null, (actual as Readonly<Record<string, Json>>)[name] ?? null),
  )
}

function eventFaults(expected: NonNullable<ToolCase['expect']['events']>, told: LocalAnswer['events']): string[] {
  const kinds = difference(
    'events',
    expected.map(({ kind }) => kind),
    told.map(({ kind }) => kind),
  )
  if (kinds.length > 0) return kinds
  return expected.flatMap(({ kind, payload }, index) =>
    payload === undefined ? [] : difference(`event ${kind}`, payload, told[index]?.payload ?? null),
  )
}

const difference = (what: string, expected: Json, actual: Json): string[] =>
  isDeepStrictEqual(expected, actual)
    ? []
    : [`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`]
