import type { Json } from '../../kernel/json.ts'
import type { Message } from '../../contract/message.ts'
import { BrainError } from '../brain-error.ts'
import { eventFrames } from './event-frames.ts'
import { sessionEvent, type LiveEvent, type SessionEvent, type TurnOutcome, type WireEvent } from './session-event.ts'
import type { Transport } from './transport.ts'

/** Pages of a journal, until nothing newer is there. */
export async function* pagedEvents(
  transport: Transport,
  path: string,
  after: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<SessionEvent, void, undefined> {
  let cursor = after
  for (;;) {
    const page = await transport.json('GET', `${path}/events?after=${cursor}`, { signal })
    const { events, next_cursor } = page as unknown as { events: readonly WireEvent[]; next_cursor: number }
    for (const event of events) yield sessionEvent(event)
    if (events.length === 0 || next_cursor === cursor) return
    cursor = next_cursor
  }
}

/** A stream of a session: whole records out of the frames that have an id, the data of the others as it is. */
export async function* liveEvents(
  transport: Transport,
  path: string,
  signal: AbortSignal | undefined,
  onOpen?: () => void,
): AsyncGenerator<LiveEvent, void, undefined> {
  const body = await transport.open(path, { signal })
  onOpen?.()
  for await (const { id, event, data } of eventFrames(body)) {
    const value = JSON.parse(data) as Json
    if (id === undefined) yield { type: event, data: value }
    else yield liveRecord(value, Number(id), event)
  }
}

/** Streams of other resources have ids too, without whole records in them. */
function liveRecord(value: Json, sequence: number, type: string): LiveEvent {
  const record = value as Partial<WireEvent> | null
  if (typeof record !== 'object' || record?.event_type === undefined) return { sequence, type, data: value }
  return { sequence, type, data: record.data ?? null, ...(record.origin && { origin: record.origin }) }
}

/** @throws BrainError `invalid_request` when no turn started at `sequence` */
export async function turnOutcome(events: AsyncIterable<SessionEvent>, sequence: number): Promise<TurnOutcome> {
  let answer: Message | undefined
  let isFirst = true
  for await (const event of events) {
    if (isFirst && (event.sequence !== sequence || event.type !== 'turn_started')) break
    isFirst = false
    answer = answerIn(event) ?? answer
    if (event.type !== 'turn_ended' && event.type !== 'turn_failed') continue
    const status = event.type === 'turn_ended' ? 'ended' : 'failed'
    return { sequence, status, terminal: event, ...(answer && { answer }) }
  }
  if (isFirst)
    throw new BrainError(0, 'invalid_request', `Cannot read the outcome of ${sequence}: no turn started there`)
  return { sequence, status: 'pending', ...(answer && { answer }) }
}

function answerIn({ type, origin, data }: SessionEvent): Message | undefined {
  if (type !== 'output_emitted' || origin?.kind !== 'agentloop') return undefined
  const output = data as { type?: string; message?: Message } | null
  return output?.type === 'assistant_message' ? output.message : undefined
}
