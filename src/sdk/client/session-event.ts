import type { Json } from '../../kernel/json.ts'
import type { Message } from '../../contract/message.ts'
import type { SessionStatus, SessionSummary } from '../../contract/session-request.ts'

/** Who wrote a record, when it was not the server itself. */
export type EventOrigin = { readonly kind: string; readonly [member: string]: Json }

/** One record of a session's journal. */
export type SessionEvent = {
  readonly sequence: number
  readonly recordedAt: Date
  readonly type: string
  readonly data: Json
  readonly origin?: EventOrigin
}

/** One event of a live stream. Those without a sequence, such as the model's text as it comes, are in no journal. */
export type LiveEvent = {
  readonly sequence?: number
  readonly type: string
  readonly data: Json
  readonly origin?: EventOrigin
}

/** A session at the moment of an answer. */
export type SessionState = { readonly id: string; readonly status: SessionStatus; readonly lastSequence: number }

/** The conversation as the model sees it; `through_sequence` is the journal's last record that it covers. */
export type SessionTranscript = { readonly messages: readonly Message[]; readonly through_sequence: number }

/** How far a turn has come. */
export type TurnOutcome = {
  /** Of its `turn_started`. */
  readonly sequence: number
  readonly status: 'pending' | 'ended' | 'failed'
  /** Its `turn_ended` or `turn_failed`. */
  readonly terminal?: SessionEvent
  /** What the loop said last in it. */
  readonly answer?: Message
}

/** A record as it is on the wire (contract 3.1). */
export type WireEvent = {
  readonly sequence: number
  readonly recorded_at_ms: number
  readonly event_type: string
  readonly data: Json
  readonly origin?: EventOrigin
}

export const sessionEvent = ({ sequence, recorded_at_ms, event_type, data, origin }: WireEvent): SessionEvent => ({
  sequence,
  recordedAt: new Date(recorded_at_ms),
  type: event_type,
  data,
  ...(origin && { origin }),
})

export const sessionState = (answer: unknown): SessionState => {
  const { session_id: id, status, last_sequence: lastSequence } = answer as SessionSummary
  return Object.freeze({ id, status, lastSequence })
}
