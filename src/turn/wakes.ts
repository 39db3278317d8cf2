import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'

/** How long the first noted record waits for company (seed tool-api, contract 3.4). */
export const WAKE_WINDOW_MS = 5

/**
 * When tools' later records start an activation (contract 3.4): a fold over the session's records and the passing of
 * its window. docs/journal.md has the table of its transitions.
 *
 * W1  Only results, ends and events of calls of the loop are noted, and what controllers of environments say; no record of
 *     a call that was interrupted or direct.
 * W2  The first noted record fixes the window; later ones do not extend it.
 * W3  An activation is due for as long as a noted record lies beyond the completion marker; one that succeeds and has
 *     not been given them all is followed by another.
 * W4  An interruption of the session and a failed turn forget what was noted.
 * W5  After an interruption of the session, and a turn that was stopped, controllers of environments wake nobody until
 *     somebody speaks to the session. Of one that is over, they never wake anybody again.
 */
export type Wakes = {
  /** `quiet`: nothing is noted. `gathering`: the window is open. `due`: it has passed. */
  readonly phase: 'quiet' | 'gathering' | 'due'
  /** The newest noted record of each call; all are beyond the marker. */
  readonly noted: ReadonlyMap<number, number>
  /** When the window of this phase passes or has passed, on the monotonic clock. */
  readonly at: number
  /** Calls that wake nobody until they have ended. */
  readonly silent: ReadonlySet<number>
  /** Everything up to here was delivered to a successful activation. */
  readonly marker: number
  /** Whether controllers of environments are not heard. */
  readonly isMuted: boolean
}

export const quietAt = (marker: number, isMuted = false): Wakes => ({
  phase: 'quiet',
  noted: new Map(),
  at: 0,
  silent: new Set(),
  marker,
  isMuted,
})

/** Somebody has stopped the session, or it is over. */
const STOPS = new Set(['session_interrupted', 'session_end_started', 'session_ended', 'session_creation_failed'])

/** A record was committed. */
export function advance(wakes: Wakes, record: JournalRecord, now: number): Wakes {
  if (STOPS.has(record.event_type)) return { ...forget(wakes), isMuted: true }
  switch (record.event_type) {
    case 'turn_failed':
      return { ...forget(wakes), isMuted: wakes.isMuted || isStopped(record) }
    case 'turn_started':
      return isSpoken(record) ? { ...wakes, isMuted: false } : wakes
    case 'turn_ended': {
      const marker = dataOf(record, 'turn_ended')?.events_through ?? wakes.marker
      return keep({ ...wakes, marker }, (sequence) => sequence > marker)
    }
    case 'tool_call_started':
      return record.origin?.kind === 'application' ? silence(wakes, record.sequence) : wakes
    case 'tool_cancel_started':
      return silence(wakes, dataOf(record, 'tool_cancel_started')?.target_sequence ?? 0)
    default:
      return said(wakes, record, now)
  }
}

/** A record of a tool or of the controller of an environment. */
function said(wakes: Wakes, record: JournalRecord, now: number): Wakes {
  if (record.origin?.kind === 'tool') return heard(wakes, record, now)
  const isHeard = record.origin?.kind === 'environment' && !wakes.isMuted
  return isHeard ? note(wakes, ENVIRONMENTS, record.sequence, now) : wakes
}

/** Stands where a call would: what controllers of environments say belongs to none. */
const ENVIRONMENTS = 0

/** Whether somebody speaks to the session with it. */
const isSpoken = (record: JournalRecord): boolean => 'input' in (dataOf(record, 'turn_started') ?? {})

/** Whether somebody stopped the turn, rather than that it failed. */
const isStopped = (record: JournalRecord): boolean =>
  ['cancelled', 'interrupted'].includes(dataOf(record, 'turn_failed')?.code ?? '')

/** Its time has come, perhaps: the window's timer fired. */
export const elapse = (wakes: Wakes, now: number): Wakes =>
  wakes.phase === 'gathering' && now >= wakes.at ? { ...wakes, phase: 'due' } : wakes

/** The session was stopped: what was noted starts nothing. */
export const forget = (wakes: Wakes): Wakes =>
  wakes.phase === 'quiet' ? wakes : { ...wakes, phase: 'quiet', noted: new Map() }

/** A call wakes nobody from now on: what was noted of it is taken back. */
export function silence(wakes: Wakes, call: number): Wakes {
  const silent = new Set(wakes.silent).add(call)
  return keep({ ...wakes, silent }, (_sequence, noted) => noted !== call)
}

function heard(wakes: Wakes, record: JournalRecord, now: number): Wakes {
  const { event_type: kind, sequence } = record
  const call = record.origin?.kind === 'tool' ? record.origin.sequence : 0
  const hasEnded = kind === 'tool_call_ended'
  if (wakes.silent.has(call)) return hasEnded ? hear(wakes, call) : wakes
  const isWaking = hasEnded || kind === 'tool_result_emitted' || !isReservedKind(kind)
  if (!isWaking) return wakes
  return note(wakes, call, sequence, now)
}

function note(wakes: Wakes, call: number, sequence: number, now: number): Wakes {
  const noted = new Map(wakes.noted).set(call, sequence)
  return wakes.phase === 'quiet'
    ? { ...wakes, phase: 'gathering', noted, at: now + WAKE_WINDOW_MS }
    : { ...wakes, noted }
}

function hear(wakes: Wakes, call: number): Wakes {
  const silent = new Set(wakes.silent)
  silent.delete(call)
  return { ...wakes, silent }
}

function keep(wakes: Wakes, isKept: (sequence: number, call: number) => boolean): Wakes {
  const noted = new Map([...wakes.noted].filter(([call, sequence]) => isKept(sequence, call)))
  return noted.size === 0 ? forget(wakes) : { ...wakes, noted }
}
