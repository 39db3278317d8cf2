import type { Json } from '../kernel/json.ts'
import { eventTypeOf, type JournalRecord, type NewRecord } from './record.ts'

/**
 * A record as adapters keep it: printed once, by the caller of `append`. Printing escapes lone surrogates and NUL, so
 * the text is well-formed Unicode that every store takes (J11).
 */
export type RecordText = { readonly type: string; readonly data: string; readonly origin: string | null }

/** What a record weighs in a page beside its own text: the envelope of contract 3.1. */
export const ENVELOPE_BYTES = 80

export function toRecordText(record: NewRecord): RecordText {
  return {
    type: eventTypeOf(record),
    data: JSON.stringify(record.data),
    origin: record.origin === undefined ? null : JSON.stringify(record.origin),
  }
}

/** UTF-8 bytes of a record on the wire, closely enough for bounds. */
export const bytesOf = (text: RecordText): number =>
  ENVELOPE_BYTES + text.type.length + Buffer.byteLength(text.data) + (text.origin?.length ?? 0)

/** The committed form as JSON text, exactly as clients see it (contract 3.1). */
export const printRecord = ({ type, data, origin }: RecordText, sequence: number, recordedAtMs: number): string =>
  `{"sequence":${sequence},"recorded_at_ms":${recordedAtMs},"event_type":${JSON.stringify(type)},"data":${data}${origin === null ? '' : `,"origin":${origin}`}}`

/** The committed form of a record whose `data` is at hand: no text is parsed again. */
export function toJournalRecord(record: NewRecord, sequence: number, recordedAtMs: number): JournalRecord {
  const committed = {
    sequence,
    recorded_at_ms: recordedAtMs,
    event_type: eventTypeOf(record),
    data: record.data as Json,
  }
  return record.origin === undefined ? committed : { ...committed, origin: record.origin }
}
