import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Limits } from '../contract/limits.ts'
import type { JournalRecord } from '../journal/record.ts'
import type { Follower, LiveFrame } from '../journal/session-log.ts'
import { PAGE_BOUNDS } from '../journal/session-log.ts'
import type { EventPage } from '../turn/agentloop.ts'
import type { LiveSession } from './live-session.ts'
import type { Sessions } from './sessions.ts'

export type FeedItem =
  | { readonly type: 'record'; readonly record: JournalRecord }
  | { readonly type: 'live'; readonly frame: LiveFrame }

/** What a reader of a stream is given; must be iterated, since it follows the session from the start. */
export type Feed = AsyncIterable<FeedItem> & {
  /** Aborts when the reader lags too far behind: what it was not given yet is the last that this feed has. */
  readonly lagged: AbortSignal
}

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
    const page = await this.#sessions.use(tenant, id, ({ log }) => log.page(after, PAGE_BOUNDS))
    return { events: page.records, next_cursor: page.nextCursor }
  }

  /**
   * History after a sequence, then what is committed from now on, without gap or duplicate. Ends after the session's
   * last record, when `signal` aborts, and when the reader falls behind by more than BRAIN_MAX_LIVE_BACKLOG while it is
   * live; in its history it may be as slow as it likes.
   */
  follow(tenant: TenantId, id: SessionId, after: number, signal: AbortSignal): Promise<Feed> {
    return this.#sessions.use(tenant, id, async (session) => {
      const backlog = new Backlog(this.#limits.liveBacklog)
      const unfollow = session.log.follow(backlog)
      const stop = (): void => {
        unfollow()
        backlog.close()
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
      const items = stream(session, after, backlog)
      return {
        lagged: backlog.lagged,
        async *[Symbol.asyncIterator]() {
          try {
            yield* items
          } finally {
            signal.removeEventListener('abort', stop)
            unfollow()
          }
        },
      }
    })
  }
}

async function* stream(session: LiveSession, after: number, backlog: Backlog): AsyncGenerator<FeedItem> {
  let cursor = after
  do {
    backlog.begin()
    for (;;) {
      const page = await session.log.page(cursor, PAGE_BOUNDS)
      if (page.records.length === 0) break
      for (const record of page.records) yield { type: 'record', record }
      if (page.records.some((record) => LAST_KINDS.has(record.event_type))) return
      cursor = page.nextCursor
    }
    // What was committed while the last page was read is in the backlog, unless there was too much of it.
  } while (!backlog.goLive())
  if (session.state.status === 'ended' || session.state.status === 'failed') backlog.close()
  for await (const item of backlog) {
    if (item.type === 'record' && item.record.sequence <= cursor) continue
    yield item
    if (item.type === 'record' && LAST_KINDS.has(item.record.event_type)) return
  }
}

/**
 * What was committed since a reader began to follow, and was not read yet. While the reader is in its history too much
 * of it is no harm: it is in the journal and is read there.
 */
class Backlog implements Follower, AsyncIterable<FeedItem> {
  readonly #most: number
  readonly #lagged = new AbortController()
  #items: FeedItem[] = []
  #phase: 'history' | 'overflown' | 'live' | 'closed' = 'history'
  #wake: (() => void) | undefined

  constructor(most: number) {
    this.#most = most
  }

  get lagged(): AbortSignal {
    return this.#lagged.signal
  }

  /** What comes from now on is in the backlog, or in the pages that are read from now on. */
  begin(): void {
    if (this.#phase !== 'closed') this.#phase = 'history'
  }

  /** @returns whether everything is here that was committed since the history's last page was asked for. */
  goLive(): boolean {
    if (this.#phase === 'overflown') return false
    if (this.#phase === 'history') this.#phase = 'live'
    return true
  }

  records(records: readonly JournalRecord[]): void {
    for (const record of records) this.#push({ type: 'record', record })
  }

  live(frame: LiveFrame): void {
    this.#push({ type: 'live', frame })
  }

  #push(item: FeedItem): void {
    if (this.#phase === 'closed' || this.#phase === 'overflown') return
    if (this.#items.length < this.#most) this.#items.push(item)
    else if (this.#phase === 'live') this.#lag()
    else {
      this.#phase = 'overflown'
      this.#items = []
    }
    this.#wake?.()
  }

  #lag(): void {
    this.close()
    this.#lagged.abort()
  }

  close(): void {
    this.#phase = 'closed'
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FeedItem> {
    for (;;) {
      const item = this.#items.shift()
      if (item !== undefined) yield item
      else if (this.#phase === 'closed') return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
