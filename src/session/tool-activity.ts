import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { isOutcomeUnknown, toToolResult, type ToolOutput, type ToolResult } from '../contract/outcome.ts'
import { activityIdOf, PROGRESS_FRAME } from '../dispatch/call-activity.ts'
import type { Journal } from '../journal/journal.ts'
import { dataOf, type JournalRecord } from '../journal/record.ts'
import { readAll } from '../journal/session-log.ts'
import type { EventFeed, Feed } from './event-feed.ts'

/** What tools do, in the three events of contract A5. Only `tool.progress` has no sequence: it is live only. */
export type Activity = { readonly sequence?: number; readonly event_type: string; readonly data: unknown }

/** The tools' part of a session's journal, for whoever watches them; nothing is stored for it. */
export class ToolActivity {
  readonly #feed: EventFeed
  readonly #journal: Pick<Journal, 'page'>

  constructor(feed: EventFeed, journal: Pick<Journal, 'page'>) {
    this.#feed = feed
    this.#journal = journal
  }

  /** Activity after a sequence; empty only when there is none up to the journal's end. */
  async page(
    tenant: TenantId,
    id: SessionId,
    after: number,
  ): Promise<{ readonly events: readonly Activity[]; readonly next_cursor: number }> {
    const projection = new Projection(this.#journal, id, after)
    for (let cursor = after; ;) {
      const page = await this.#feed.page(tenant, id, cursor)
      const events: Activity[] = []
      for (const record of page.events) events.push(...(await projection.of(record)))
      if (events.length > 0 || page.events.length === 0) return { events, next_cursor: page.next_cursor }
      cursor = page.next_cursor
    }
  }

  /** As {@link EventFeed.follow}, for the activity alone. */
  async follow(
    tenant: TenantId,
    id: SessionId,
    after: number,
    signal: AbortSignal,
  ): Promise<{ readonly events: AsyncIterable<Activity>; readonly lagged: AbortSignal }> {
    const feed = await this.#feed.follow(tenant, id, after, signal)
    return { events: this.#stream(feed, new Projection(this.#journal, id, after)), lagged: feed.lagged }
  }

  async *#stream(feed: Feed, projection: Projection): AsyncGenerator<Activity> {
    for await (const item of feed) {
      if (item.type === 'record') yield* await projection.of(item.record)
      else if (item.frame.type === PROGRESS_FRAME) yield { event_type: PROGRESS_FRAME, data: item.frame.data }
    }
  }
}

/** Turns records, told in order, into activity. */
class Projection {
  readonly #journal: Pick<Journal, 'page'>
  readonly #session: SessionId
  readonly #after: number
  /** The last result of each call that has not ended, as far as the records were told. */
  readonly #results = new Map<number, ToolResult>()

  constructor(journal: Pick<Journal, 'page'>, session: SessionId, after: number) {
    this.#journal = journal
    this.#session = session
    this.#after = after
  }

  async of(record: JournalRecord): Promise<readonly Activity[]> {
    const { sequence } = record
    const emitted = dataOf(record, 'tool_result_emitted')
    if (emitted !== undefined) this.#results.set(emitted.sequence, emitted.result)
    const started = dataOf(record, 'tool_call_started')
    if (started !== undefined) {
      const { tool: name, invocation } = started
      const call = activityIdOf(this.#session, sequence)
      return [
        { sequence, event_type: 'tool.call', data: { call_id: call, name, arguments: invocation.input, sequence } },
      ]
    }
    const end = endOf(record)
    if (end === undefined) return []
    const last = await this.#lastResult(end.call)
    this.#results.delete(end.call)
    const call = activityIdOf(this.#session, end.call)
    return [{ sequence, event_type: 'tool.result', data: { call_id: call, ...shown(end.outcome, last) } }]
  }

  /** A result that was committed before the first record that was told is read again. */
  async #lastResult(call: number): Promise<ToolResult | undefined> {
    const told = this.#results.get(call)
    if (told !== undefined || call > this.#after) return told
    let last: ToolResult | undefined
    for await (const records of readAll(this.#journal, this.#session, call))
      for (const record of records) {
        if (record.sequence > this.#after) return last
        const emitted = dataOf(record, 'tool_result_emitted')
        if (emitted?.sequence === call) last = emitted.result
      }
    return last
  }
}

function endOf(record: JournalRecord): { readonly call: number; readonly outcome: ToolOutput } | undefined {
  const ended = dataOf(record, 'tool_call_ended')
  if (ended !== undefined) return { call: ended.sequence, outcome: ended.outcome }
  const failed = dataOf(record, 'tool_call_failed')
  return failed && { call: failed.sequence, outcome: { status: 'unknown', message: failed.message } }
}

type Shown = {
  readonly content?: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structured_content: Json
  readonly is_error: boolean
  readonly unknown_outcome?: true
}

/** A call that ended well shows its last result; one that did not shows how it ended. */
function shown(outcome: ToolOutput, last: ToolResult | undefined): Shown {
  const isOk = outcome.status === 'ok'
  const result = isOk ? last : toToolResult('', outcome)
  const text = result?.content
  return {
    ...(text === undefined ? {} : { content: [{ type: 'text', text }] }),
    structured_content: result?.output ?? null,
    is_error: isOk ? (result?.is_error ?? false) : true,
    ...(isOutcomeUnknown(outcome) ? { unknown_outcome: true } : {}),
  }
}
