import { extname } from 'node:path'
import type { Limits } from '../../contract/limits.ts'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { SessionId } from '../../kernel/ids.ts'
import type {
  Append,
  Appended,
  Claim,
  Claimed,
  ClaimKey,
  Journal,
  JournalHealth,
  Page,
  SessionQuery,
  SessionRow,
  StoredAnswer,
} from '../journal.ts'
import type { JournalRecord } from '../record.ts'
import { QueueBounds } from '../queue-bounds.ts'
import { bytesOf, toJournalRecord, toRecordText } from '../record-text.ts'
import { type DataDirectory, openDataDirectory } from './data-directory.ts'
import { FailedReads } from './failed-reads.ts'
import type { ReaderCalls, Slice, StoreSettings, WriterCalls } from './protocol.ts'
import { StoreClient } from './store-client.ts'
import { DamageError } from './store-fault.ts'
import { StoreHealth } from './store-health.ts'

export type SqliteJournalOptions = {
  /** The server's data directory; it is locked for as long as the journal is open. */
  readonly directory: string
  readonly limits: Limits
  readonly clock?: Clock
  /** How long a write waits for a foreign process that writes to the database. Readers never make it wait. */
  readonly busyTimeoutMs?: number
}

const BUSY_TIMEOUT_MS = 5000
/** Rows that one message from the reader thread carries. */
const SLICE_ROWS = 500
const CLAIM_BYTES = 256

// The compiler rewrites import specifiers but not URLs: the threads take the extension of this file.
const threadEntry = (name: 'writer-thread' | 'reader-thread'): URL =>
  new URL(`./${name}${extname(import.meta.filename)}`, import.meta.url)

/**
 * Opens the journal of a data directory, making or migrating it as needed.
 *
 * @throws BrainError `storage_unavailable` when the directory is in use or its journal is not ours to read.
 */
export async function openSqliteJournal(options: SqliteJournalOptions): Promise<Journal> {
  const directory = openDataDirectory(options.directory)
  const settings: StoreSettings = {
    path: directory.journal,
    busyTimeoutMs: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS,
  }
  const writer = new StoreClient<WriterCalls>(threadEntry('writer-thread'), settings)
  const reader = new StoreClient<ReaderCalls>(threadEntry('reader-thread'), settings)
  try {
    // In this order: the reader finds the schema that the writer made.
    await writer.start()
    await reader.start()
  } catch (error) {
    await reader.close()
    await writer.close()
    directory[Symbol.dispose]()
    const where = `Cannot open the data directory ${JSON.stringify(options.directory)}`
    throw new BrainError('storage_unavailable', `${where}: ${messageOf(error)}`, { cause: error, retryable: false })
  }
  return new SqliteJournal({ directory, writer, reader, limits: options.limits, clock: options.clock ?? systemClock })
}

type Parts = {
  readonly directory: DataDirectory
  readonly writer: StoreClient<WriterCalls>
  readonly reader: StoreClient<ReaderCalls>
  readonly limits: Limits
  readonly clock: Clock
}

class SqliteJournal implements Journal {
  readonly #directory: DataDirectory
  readonly #writer: StoreClient<WriterCalls>
  readonly #reader: StoreClient<ReaderCalls>
  readonly #clock: Clock
  readonly #queue: QueueBounds
  readonly #writes = new StoreHealth(() => this.#probe())
  readonly #reads = new FailedReads()
  readonly #openedAt: number
  #closing: Promise<void> | undefined

  constructor({ directory, writer, reader, limits, clock }: Parts) {
    this.#directory = directory
    this.#writer = writer
    this.#reader = reader
    this.#clock = clock
    this.#queue = new QueueBounds(limits)
    this.#openedAt = clock.now()
  }

  async append({ records, ...append }: Append): Promise<Appended> {
    const texts = records.map(toRecordText)
    const bytes = texts.reduce((sum, text) => sum + bytesOf(text), CLAIM_BYTES + weightOf(append.settle?.answer))
    const request = { ...append, records: texts, at: this.#clock.now() }
    const reply = await this.#queued('append', request, { bytes, session: append.session })
    if (!reply.committed) return reply
    // Other calls may have found nothing to write, which proves nothing about the disk.
    this.#writes.succeeded()
    return {
      committed: true,
      records: records.map((record, index) => toJournalRecord(record, reply.first + index, reply.at)),
    }
  }

  async page(session: SessionId, after: number, bounds: { limit: number; maxBytes: number }): Promise<Page> {
    const records: JournalRecord[] = []
    let cursor = after
    let { limit, maxBytes } = bounds
    // Slice by slice: neither the reader thread nor the parsing here keeps others waiting for a whole large page.
    for (let more = true; more && limit > 0;) {
      const asked = { session, after: cursor, limit: Math.min(limit, SLICE_ROWS), maxBytes, first: cursor === after }
      const slice = await this.#read('slice', asked, parseSlice)
      for (const record of slice.records) records.push(record)
      cursor = slice.through
      limit -= slice.count
      maxBytes -= slice.bytes
      more = slice.more
    }
    return { records, nextCursor: cursor }
  }

  session(id: SessionId): Promise<SessionRow | undefined> {
    return this.#read('session', { id })
  }

  async sessions({
    limit = Number.MAX_SAFE_INTEGER,
    after = '',
    ...query
  }: SessionQuery): Promise<readonly SessionRow[]> {
    const found: SessionRow[] = []
    for (;;) {
      const asked = { ...query, after: found.at(-1)?.id ?? after, limit: Math.min(limit - found.length, SLICE_ROWS) }
      const rows = await this.#read('sessions', asked)
      found.push(...rows)
      if (rows.length < SLICE_ROWS || found.length >= limit) return found
    }
  }

  async remove(session: SessionId, settle?: ClaimKey & { readonly answer: StoredAnswer }): Promise<void> {
    const request = { session, at: this.#clock.now(), ...(settle && { settle }) }
    await this.#queued('remove', request, { bytes: CLAIM_BYTES + weightOf(settle?.answer) })
  }

  claim(claim: Claim): Promise<Claimed | undefined> {
    return this.#queued('claim', { ...claim, at: this.#clock.now() }, { bytes: CLAIM_BYTES })
  }

  claimed(key: ClaimKey): Promise<Claimed | undefined> {
    return this.#read('claimed', key)
  }

  async settle(key: ClaimKey, answer: StoredAnswer): Promise<void> {
    const request = { ...key, answer, at: this.#clock.now() }
    await this.#queued('settle', request, { bytes: CLAIM_BYTES + weightOf(answer) })
  }

  async release(key: ClaimKey): Promise<void> {
    await this.#queued('release', key, { bytes: CLAIM_BYTES })
  }

  async expireClaims(olderThanMs: number): Promise<void> {
    const before = this.#clock.now() - olderThanMs
    for (let done = false; !done;) done = (await this.#write('expire', { before, openBefore: this.#openedAt })).done
  }

  health(): JournalHealth {
    return this.#writes.state.state === 'ok' ? this.#reads.state : this.#writes.state
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#writes[Symbol.dispose]()
    this.#reads[Symbol.dispose]()
    // The writer last: closing the last connection folds the log into the database, which a reader may not.
    await this.#reader.close()
    await this.#writer.close()
    this.#directory[Symbol.dispose]()
  }

  async #probe(): Promise<void> {
    await this.#write('probe', { at: this.#clock.now() })
    this.#writes.succeeded()
  }

  #read<Op extends keyof ReaderCalls, T = ReaderCalls[Op]['reply']>(
    op: Op,
    request: ReaderCalls[Op]['request'],
    parse?: (reply: ReaderCalls[Op]['reply']) => T,
  ): Promise<T> {
    return this.#reads.watch(
      () => `${op} ${JSON.stringify(request)}`,
      async () => {
        const reply = await this.#reader.call(op, request)
        return parse === undefined ? (reply as T) : parse(reply)
      },
    )
  }

  async #queued<Op extends keyof WriterCalls>(
    op: Op,
    request: WriterCalls[Op]['request'],
    { bytes, session }: { readonly bytes: number; readonly session?: string },
  ): Promise<WriterCalls[Op]['reply']> {
    this.#queue.enter(bytes, session)
    try {
      return await this.#write(op, request)
    } finally {
      this.#queue.leave(bytes, session)
    }
  }

  async #write<Op extends keyof WriterCalls>(
    op: Op,
    request: WriterCalls[Op]['request'],
  ): Promise<WriterCalls[Op]['reply']> {
    try {
      return await this.#writer.call(op, request)
    } catch (error) {
      if (error instanceof BrainError && error.code === 'storage_unavailable') this.#writes.failed(error.message)
      throw error
    }
  }
}

/** @throws BrainError `storage_unavailable` when the text is not the JSON that was written. */
function parseSlice({ text, ...slice }: Slice): Omit<Slice, 'text'> & { readonly records: readonly JournalRecord[] } {
  try {
    return { ...slice, records: JSON.parse(text) as JournalRecord[] }
  } catch (cause) {
    const { message } = new DamageError(`a record up to ${slice.through} is not the JSON that was written`)
    throw new BrainError('storage_unavailable', `Cannot read the journal: ${message}`, { cause })
  }
}

const weightOf = (answer: StoredAnswer | undefined): number =>
  answer?.type === 'body' ? Buffer.byteLength(answer.body) : 0
