import type { Unit } from './figure.ts'

/** A value that a figure must keep; `above-floor` is p50 less the p50 of the floor, in the figure's unit. */
export type Requirement = {
  readonly what: 'p50' | 'p99' | 'ratio' | 'above-floor'
  readonly least?: number
  readonly most?: number
}

export type FigureFacts = {
  readonly unit: Unit
  /** The group that measures it; a group is run when one of its figures is asked for. */
  readonly group: GroupName
  /** What it cannot be faster than, measured in the same run. */
  readonly floor?: string
  readonly required?: readonly Requirement[]
}

export type GroupName =
  | 'floors'
  | 'admission'
  | 'boxes'
  | 'calls'
  | 'application'
  | 'services'
  | 'guest'
  | 'files'
  | 'turns'
  | 'records'
  | 'streams'
  | 'history'
  | 'throughput'
  | 'deadlines'
  | 'memory'
  | 'commands'

const DURABLE = 'durable-write-floor'
const INSTANTIATE = 'core-instantiate-floor'
const TOGETHER = 'durable-records-floor'

/** Every figure, in the order in which they are printed. docs/bench.md says what each one is. */
export const FIGURES: Readonly<Record<string, FigureFacts>> = {
  [DURABLE]: { unit: 'ms', group: 'floors' },
  'spaced-write-floor': { unit: 'ms', group: 'floors' },
  [INSTANTIATE]: { unit: 'ms', group: 'floors' },
  [TOGETHER]: { unit: 'records/s', group: 'floors' },
  'admission-rust': { unit: 'ms', group: 'admission' },
  'admission-python': { unit: 'ms', group: 'admission' },
  'admission-cached': { unit: 'ms', group: 'admission' },
  'box-spawn': { unit: 'ms', group: 'boxes' },
  'box-load': { unit: 'ms', group: 'boxes' },
  'next-instance': { unit: 'ms', group: 'boxes', floor: INSTANTIATE },
  'first-call-rust': { unit: 'ms', group: 'calls', required: [{ what: 'p50', most: 30 }] },
  'first-call-python': { unit: 'ms', group: 'calls', required: [{ what: 'p50', most: 200 }] },
  'warm-call-rust': {
    unit: 'ms',
    group: 'calls',
    floor: DURABLE,
    required: [
      { what: 'p50', most: 2.5 },
      { what: 'ratio', most: 8 },
    ],
  },
  'warm-call-rust-idle': { unit: 'ms', group: 'calls', floor: DURABLE },
  'warm-call-python': { unit: 'ms', group: 'calls', floor: DURABLE, required: [{ what: 'p50', most: 8 }] },
  'application-tool-call': {
    unit: 'ms',
    group: 'application',
    floor: DURABLE,
    required: [{ what: 'p50', most: 3 }],
  },
  'tool-service-call': {
    unit: 'ms',
    group: 'services',
    floor: DURABLE,
    required: [{ what: 'above-floor', most: 1.5 }],
  },
  'emit-round-trip': {
    unit: 'ms',
    group: 'guest',
    floor: DURABLE,
    required: [{ what: 'above-floor', most: 0.6 }],
  },
  'file-op': { unit: 'us', group: 'guest' },
  'file-read-rate': { unit: 'MiB/s', group: 'files', required: [{ what: 'p50', least: 300 }] },
  'file-write-rate': { unit: 'MiB/s', group: 'files', required: [{ what: 'p50', least: 150 }] },
  'inspect-1000': { unit: 'ms', group: 'files', required: [{ what: 'p50', most: 150 }] },
  'turn-one-model-one-tool': {
    unit: 'ms',
    group: 'turns',
    floor: DURABLE,
    required: [{ what: 'p50', most: 8 }],
  },
  'journal-records-per-second': {
    unit: 'records/s',
    group: 'records',
    floor: TOGETHER,
    required: [{ what: 'p50', least: 2500 }],
  },
  'commit-to-sse': { unit: 'ms', group: 'streams', floor: DURABLE, required: [{ what: 'p50', most: 2 }] },
  'turn-short-history': { unit: 'ms', group: 'history' },
  'turn-long-history': {
    unit: 'ms',
    group: 'history',
    floor: 'turn-short-history',
    required: [{ what: 'ratio', most: 1.3 }],
  },
  'calls-per-second': { unit: 'calls/s', group: 'throughput', required: [{ what: 'p50', least: 800 }] },
  'deadline-overshoot': { unit: 'ms', group: 'deadlines', required: [{ what: 'p99', most: 50 }] },
  'health-during-deadlines': { unit: 'ms', group: 'deadlines', required: [{ what: 'p99', most: 20 }] },
  'node-start-floor': { unit: 'ms', group: 'commands' },
  'run-command-rust': {
    unit: 'ms',
    group: 'commands',
    floor: 'node-start-floor',
    required: [{ what: 'p50', most: 400 }],
  },
  'run-command-python': {
    unit: 'ms',
    group: 'commands',
    floor: 'node-start-floor',
    required: [{ what: 'p50', most: 1500 }],
  },
  'server-rss': { unit: 'MiB', group: 'memory' },
  'supervisor-rss': { unit: 'MiB', group: 'memory' },
  'box-private': { unit: 'MiB', group: 'memory' },
}

/** The asked figures, all when none is, and the floors that they are compared with. @throws Error for a name that is none */
export function chosenFigures(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !Object.hasOwn(FIGURES, name))
  if (unknown !== undefined)
    throw new Error(`Cannot measure "${unknown}": the figures are ${Object.keys(FIGURES).join(', ')}`)
  if (names.length === 0) return Object.keys(FIGURES)
  const chosen = new Set(names.flatMap((name) => [name, FIGURES[name]?.floor ?? name]))
  return Object.keys(FIGURES).filter((name) => chosen.has(name))
}
