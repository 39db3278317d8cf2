import type { Json } from '../kernel/json.ts'
import { dataOf, isReservedKind } from '../journal/record.ts'
import type { FeedItem } from '../session/event-feed.ts'

/** One frame of the session's event stream. */
export type LocalItem = {
  /** What of it the tool says itself: an event of its own kind, a result, or progress that is shown live only. */
  readonly said?: {
    readonly type: 'event' | 'result' | 'error_result' | 'live'
    readonly kind: string
    readonly data: Json
  }
  /** The frame as a client of a server gets it. */
  readonly frame: Json
}

export function toLocalItem(item: FeedItem): LocalItem {
  if (item.type === 'live') {
    const { type: kind, data } = item.frame
    return { said: { type: 'live', kind, data: data as Json }, frame: { type: kind, data: data as Json, live: true } }
  }
  const { record } = item
  const frame = record as unknown as Json
  const result = dataOf(record, 'tool_result_emitted')?.result
  if (result !== undefined)
    return { said: { type: result.is_error ? 'error_result' : 'result', kind: 'result', data: result.output }, frame }
  const { event_type: kind, data } = record
  return isReservedKind(kind) ? { frame } : { said: { type: 'event', kind, data: data as Json }, frame }
}
