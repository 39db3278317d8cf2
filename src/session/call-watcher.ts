import { activityIdOf, PROGRESS_FRAME } from '../dispatch/call-activity.ts'
import type { SessionId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import type { Follower, LiveFrame } from '../journal/session-log.ts'

/** What a tool shows of a call that goes on: an event of its own kind, or `tool.progress`, which is not on record. */
export type Happening = { readonly event_type: string; readonly data: Json }

/** Picks what one call shows from everything that its session does. Must follow before the call is started. */
export class CallWatcher implements Follower {
  readonly #session: SessionId
  readonly #callId: string
  readonly #tell: (happening: Happening) => void
  #sequence: number | undefined

  constructor(session: SessionId, callId: string, tell: (happening: Happening) => void) {
    this.#session = session
    this.#callId = callId
    this.#tell = tell
  }

  records(records: readonly JournalRecord[]): void {
    for (const record of records) {
      const { sequence, event_type, data, origin } = record
      if (dataOf(record, 'tool_call_started')?.invocation.call_id === this.#callId) this.#sequence = sequence
      const isOfCall = origin?.kind === 'tool' && origin.sequence === this.#sequence
      if (isOfCall && !isReservedKind(event_type)) this.#tell({ event_type, data })
    }
  }

  live({ type, data }: LiveFrame): void {
    if (type !== PROGRESS_FRAME || this.#sequence === undefined) return
    const { call_id: call, data: shown } = data as { readonly call_id: string; readonly data: Json }
    if (call === activityIdOf(this.#session, this.#sequence)) this.#tell({ event_type: type, data: shown })
  }
}
