import type { SessionId } from '../kernel/ids.ts'
import { insist } from '../kernel/insist.ts'
import type { Append, Appended, Journal, Page } from './journal.ts'
import type { JournalRecord, NewRecord } from './record.ts'

/** A frame that followers see and no journal keeps (contract 3.5). */
export type LiveFrame = { readonly type: string; readonly data: unknown }

export interface Follower {
  /** Committed records, in order. */
  records(records: readonly JournalRecord[]): void
  live(frame: LiveFrame): void
}

/** One session's part of the journal, with everyone in this process who watches it. */
export class SessionLog {
  readonly session: SessionId
  readonly #journal: Journal
  readonly #followers = new Set<Follower>()
  #lastSequence: number
  #onTheWay = 0
  #quiet: PromiseWithResolvers<void> | undefined

  constructor(journal: Journal, session: SessionId, lastSequence: number) {
    this.#journal = journal
    this.session = session
    this.#lastSequence = lastSequence
  }

  /** Sequence of the newest record that is known to be durable. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  /** Appends, and shows followers what was committed before the caller goes on. */
  async append(append: Omit<Append, 'session'>): Promise<Appended> {
    this.#onTheWay++
    try {
      const appended = await this.#journal.append({ ...append, session: this.session })
      if (appended.committed) {
        this.#lastSequence = appended.records.at(-1)?.sequence ?? this.#lastSequence
        for (const follower of this.#followers) follower.records(appended.records)
      }
      return appended
    } finally {
      // Only now: whoever waits for quiet reads the newest sequence.
      this.#arrived()
    }
  }

  #arrived(): void {
    if (--this.#onTheWay > 0) return
    this.#quiet?.resolve()
    this.#quiet = undefined
  }

  /** Appends a record that holds its own sequence: it waits until nothing else of the session is on its way. */
  async commitOwn(make: (sequence: number) => NewRecord): Promise<readonly JournalRecord[]> {
    while (this.#onTheWay > 0) await (this.#quiet ??= Promise.withResolvers<void>()).promise
    return this.commit({ records: [make(this.#lastSequence + 1)] })
  }

  /** Like {@link append}, for appends that claim no key. */
  async commit(append: Omit<Append, 'session' | 'claim'>): Promise<readonly JournalRecord[]> {
    const appended = await this.append(append)
    return appended.committed ? appended.records : []
  }

  /**
   * Like {@link commit}, for an end that must be written: while the storage is unavailable it is tried again, since an
   * effect without an end would break the journal's promise (contract 3.1).
   */
  insist(append: Omit<Append, 'session' | 'claim'>): Promise<readonly JournalRecord[]> {
    return insist(() => this.commit(append))
  }

  /** As {@link Journal.page}. Nobody else appends, so beyond the newest record there is nothing to ask the storage for. */
  async page(after: number, bounds: { limit: number; maxBytes: number }): Promise<Page> {
    if (after >= this.#lastSequence) return { records: [], nextCursor: after }
    return this.#journal.page(this.session, after, bounds)
  }

  publish(frame: LiveFrame): void {
    for (const follower of this.#followers) follower.live(frame)
  }

  /** @returns a function that stops following. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  get followers(): number {
    return this.#followers.size
  }
}

/** Bounds of one page (contract 3.5). */
export const PAGE_BOUNDS = { limit: 1000, maxBytes: 8 * 1024 * 1024 } as const

/** Every record after a sequence, page by page. */
export async function* readAll(
  journal: Pick<Journal, 'page'>,
  session: SessionId,
  after = 0,
): AsyncGenerator<readonly JournalRecord[]> {
  for (let cursor = after; ;) {
    const page = await journal.page(session, cursor, PAGE_BOUNDS)
    if (page.records.length === 0) return
    yield page.records
    cursor = page.nextCursor
  }
}
