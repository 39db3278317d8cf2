import type { SessionStatus } from '../../contract/session-request.ts'
import type { ErrorCode } from '../../kernel/errors.ts'
import type { Claim, Claimed, ClaimKey, SessionRow, StoredAnswer } from '../journal.ts'
import type { RecordText } from '../record-text.ts'

/** What a store thread is started with. */
export type StoreSettings = {
  readonly path: string
  /** How long a foreign lock on the database is waited for. */
  readonly busyTimeoutMs: number
}

type Settle = ClaimKey & { readonly answer: StoredAnswer }

/** `at` is the caller's clock when the call was made; the store only makes sure that it never goes back (J5). */
export type AppendRequest = {
  readonly session: string
  readonly at: number
  readonly records: readonly RecordText[]
  readonly create?: { readonly tenant: string; readonly labels: Readonly<Record<string, string>> }
  readonly status?: SessionStatus
  readonly claim?: Claim
  readonly settle?: Settle
}

/** Every record of an append has the same time; sequences count up from `first`. */
export type AppendReply =
  | { readonly committed: true; readonly first: number; readonly at: number }
  | { readonly committed: false; readonly claimed: Claimed }

export type WriterCalls = {
  append: { request: AppendRequest; reply: AppendReply }
  remove: { request: { readonly session: string; readonly at: number; readonly settle?: Settle }; reply: undefined }
  claim: { request: Claim & { readonly at: number }; reply: Claimed | undefined }
  settle: { request: Settle & { readonly at: number }; reply: undefined }
  release: { request: ClaimKey; reply: undefined }
  /**
   * Forgets answers given before `before`, and open claims older than that which were made before `openBefore`, in one
   * bounded step; `done` says whether it was the last.
   */
  expire: { request: { readonly before: number; readonly openBefore: number }; reply: { readonly done: boolean } }
  /** Writes something, to see whether it can be. */
  probe: { request: { readonly at: number }; reply: undefined }
}

export type SliceRequest = {
  readonly session: string
  readonly after: number
  readonly limit: number
  readonly maxBytes: number
  /** Whether this slice begins a page: its first record comes whatever its size. */
  readonly first: boolean
}
export type Slice = {
  /** A JSON array of records in their wire form: one text crosses threads, and is parsed, far faster than many rows. */
  readonly text: string
  readonly count: number
  /** The last sequence of the slice; the given `after` when it is empty. */
  readonly through: number
  /** What the records weigh against `maxBytes`. */
  readonly bytes: number
  /** Whether the page may go on: there are more records, and they fit. */
  readonly more: boolean
}

export type SessionsRequest = {
  readonly tenant?: string
  readonly status?: readonly SessionStatus[]
  readonly label?: { readonly key: string; readonly value: string }
  readonly hasOpenCalls?: true
  readonly after: string
  readonly limit: number
}

export type ReaderCalls = {
  slice: { request: SliceRequest; reply: Slice }
  session: { request: { readonly id: string }; reply: SessionRow | undefined }
  sessions: { request: SessionsRequest; reply: readonly SessionRow[] }
  claimed: { request: ClaimKey; reply: Claimed | undefined }
}

/** The operations that one store thread answers. */
export type CallTable = Record<string, { request: unknown; reply: unknown }>

/** One call on its way to a store thread; a message holds every call of one tick. */
export type Call<Calls extends CallTable> = {
  [Op in keyof Calls]: { readonly id: number; readonly op: Op; readonly request: Calls[Op]['request'] }
}[keyof Calls]

export type Reply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly code: ErrorCode; readonly message: string }

export type ToThread<Calls extends CallTable> = readonly Call<Calls>[] | 'close'

export type FromThread =
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'replies'; readonly replies: readonly Reply[] }
