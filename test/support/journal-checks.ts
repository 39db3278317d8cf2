import { expect } from 'vitest'
import { RecordCheck } from '../../src/archive/record-check.ts'
import type { Json } from '../../src/kernel/json.ts'
import { eventTypeOf, isReservedKind, type JournalRecord } from '../../src/journal/record.ts'
import { recoveryOf, SessionState } from '../../src/journal/session-state.ts'

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

/** Beyond so many records every second crash point, and so on: the check is not to take longer than the test. */
const MOST_CRASH_POINTS = 60

/**
 * Sequences are dense from 1, times never go back, every start has one end, an import would take the records, and what a
 * crash after any of them leaves comes to the same after recovery.
 */
export function expectSoundJournal(records: readonly JournalRecord[]): void {
  expect(records.map((record) => record.sequence)).toEqual(records.map((_, index) => index + 1))
  for (const [index, record] of records.entries())
    expect(record.recorded_at_ms).toBeGreaterThanOrEqual(records[index - 1]?.recorded_at_ms ?? 0)
  expect(startsWithoutOneEnd(records)).toEqual([])
  const check = new RecordCheck()
  for (const record of records) check.add(record)
  const step = Math.ceil(records.length / MOST_CRASH_POINTS)
  for (let length = 1; length <= records.length; length += step) expectRecovery(records.slice(0, length))
}

/** Recovery gives every start its end, leaves nothing open, and finds nothing more to do the second time. */
function expectRecovery(left: readonly JournalRecord[]): void {
  const state = new SessionState()
  for (const record of left) state.apply(record)
  const added = recoveryOf(state).records.map((record, index): JournalRecord => {
    const made = { sequence: left.length + index + 1, recorded_at_ms: 0, event_type: eventTypeOf(record) }
    return { ...made, data: record.data as Json, ...(record.origin === undefined ? {} : { origin: record.origin }) }
  })
  for (const record of added) state.apply(record)
  expect(startsWithoutOneEnd([...left, ...added])).toEqual([])
  expect(state.isAtRest).toBe(true)
  expect(recoveryOf(state).records).toEqual([])
  expect([...state.environments.values()].filter(({ state: is }) => is === 'starting' || is === 'deleting')).toEqual([])
}
