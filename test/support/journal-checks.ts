import { expect } from 'vitest'
import { RecordCheck } from '../../src/archive/record-check.ts'
import { isReservedKind, type JournalRecord } from '../../src/journal/record.ts'

type Started = { readonly kind: string; readonly sequence: number }

const nounOf = (kind: string): string => kind.replace(/_started$/, '')
/** Phases that are ended by their kind; every other start is named by its sequence in its end (contract 3.2). */
const PHASES = new Set(['turn', 'activation', 'session_creation', 'session_end'])

/** Every start that has not exactly one end (contract 3.1). */
export function startsWithoutOneEnd(records: readonly JournalRecord[]): Started[] {
  const starts = records.filter(({ event_type: kind }) => kind.endsWith('_started') && isReservedKind(kind))
  return starts
    .filter((start) => endsOf(start, records) !== 1)
    .map(({ event_type: kind, sequence }) => ({ kind, sequence }))
}

function endsOf(start: JournalRecord, records: readonly JournalRecord[]): number {
  const noun = nounOf(start.event_type)
  const later = records.filter((record) => record.sequence > start.sequence)
  if (noun === 'session_end') return later.filter((record) => record.event_type === 'session_ended').length
  const ends = [`${noun}_ended`, `${noun}_failed`]
  if (PHASES.has(noun)) {
    const next = later.find((record) => ends.includes(record.event_type) || record.event_type === start.event_type)
    return next !== undefined && ends.includes(next.event_type) ? 1 : 0
  }
  return later.filter((record) => ends.includes(record.event_type) && targetOf(record) === start.sequence).length
}

const targetOf = (record: JournalRecord): number | undefined => (record.data as { sequence?: number }).sequence

/** Sequences are dense from 1, times never go back, every start has one end, and an import would take the records. */
export function expectSoundJournal(records: readonly JournalRecord[]): void {
  expect(records.map((record) => record.sequence)).toEqual(records.map((_, index) => index + 1))
  for (const [index, record] of records.entries())
    expect(record.recorded_at_ms).toBeGreaterThanOrEqual(records[index - 1]?.recorded_at_ms ?? 0)
  expect(startsWithoutOneEnd(records)).toEqual([])
  const check = new RecordCheck()
  for (const record of records) check.add(record)
}
