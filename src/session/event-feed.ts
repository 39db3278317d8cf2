import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Limits } from '../contract/limits.ts'
import type { JournalRecord } from '../journal/record.ts'
import type { LiveFrame } from '../journal/session-log.ts'
import { PAGE_BOUNDS } from '../journal/session-log.ts'
import type { EventPage } from '../turn/agentloop.ts'
import type { LiveSession } from './live-session.ts'
import type { Sessions } from './sessions.ts'

export type FeedItem =
  | { readonly type: 'record'; readonly record: JournalRecord }
  | { readonly type: 'live'; readonly frame: LiveFrame }

const LAST_KINDS = new Set(['session_ended', 'session_creation_failed'])

/** Reads a session's journal, as pages and as a stream (contract 3.5). */
export class EventFeed {
  readonly #sessions: Sessions
  readonly #limits: Limits

  constructor(sessions: Sessions, limits: Limits) {
    this.#sessions = sessions
    this.#limits = limits
  }

  async page(tenant: TenantId, id: SessionId, after: number): Promise<EventPage> {
    const { log } = await this.#sessions.open(tenant, id)
    const page = await log.page(after, PAGE_BOUNDS)
    return { events: page.records, next_cursor: page.nextCursor }
  }

  /**
   * History after a sequence, then what is committed from now on, without gap or duplicate. Ends after the session's
   * last record, when `signal` aborts, and when the reader falls behind by more than BRAIN_MAX_LIVE_BACKLOG.
   */
  async follow(tenant: TenantId, id: SessionId, after: number, signal: AbortSignal): Promise<AsyncIterable<FeedItem>> {
    return this.#stream(await this.#sessions.open(tenant, id), after, signal)
  }

  async *#stream(session: LiveSession, after: number, signal: AbortSignal): AsyncGenerator<FeedItem> {
    const backlog = new Backlog(this.#limits.liveBacklog)
    const unfollow = session.log.follow(backlog)
    signal.addEventListener('abort', () => backlog.close(), { once: true })
    if (signal.aborted) backlog.close()
    try {
      let cursor = after
      for (let page = await session.log.page(cursor, PAGE_BOUNDS); page.records.length > 0;) {
        for (const record of page.records) yield { type: 'record', record }
        if (page.records.some((record) => LAST_KINDS.has(record.event_type))) return
        cursor = page.nextCursor
        page = await session.log.page(cursor, PAGE_BOUNDS)
      }
      // What was committed while the last page was read is still to be told.
      if (session.state.status === 'ended' || session.state.status === 'failed') backlog.close()
      for await (const item of backlog) {
        if (item.type === 'record' && item.record.sequence <= cursor) continue
        yield item
        if (item.type === 'record' && LAST_KINDS.has(item.record.event_type)) return
      }
    } finally {
      unfollow()
    }
  }
}

/** What was committed since a reader began to follow, and was not read yet. */
class Backlog implements AsyncIterable<FeedItem> {
  readonly #most: number
  readonly #items: FeedItem[] = []
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(most: number) {
    this.#most = most
  }

  records(records: readonly JournalRecord[]): void {
    for (const record of records) this.#push({ type: 'record', record })
  }

  live(frame: LiveFrame): void {
    this.#push({ type: 'live', frame })
  }

  #push(item: FeedItem): void {
    if (this.#isClosed) return
    if (this.#items.length >= this.#most) this.close()
    else this.#items.push(item)
    this.#wake?.()
  }

  close(): void {
    this.#isClosed = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FeedItem> {
    for (;;) {
      const item = this.#items.shift()
      if (item !== undefined) yield item
      else if (this.#isClosed) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
