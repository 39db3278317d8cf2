import type { Json } from '../kernel/json.ts'

/** What `POST /v1/hosts` answers. The token is said once, and opens the routes of this host only. */
export type HostRegistration = { readonly host_id: string; readonly token: string }

/** What an application is sent to do (contract 4.1). Nothing is sent twice. */
export type HostCommand = {
  readonly session_id: string
  readonly environment: string
  /** The declared binding that an instance was made from. */
  readonly template?: string
  /** Of the `tool_call_started`, or of the `tool_cancel_started`. */
  readonly sequence: number
  /** Milliseconds since the epoch; absent = none. */
  readonly deadline_at_ms?: number
  readonly operation:
    | { readonly type: 'invoke_tool'; readonly name: string; readonly input: Json }
    | { readonly type: 'cancel_tool'; readonly target_sequence: number }
}

/** First frame of a stream, and whenever `idle` changes: whether nothing of this host's sessions goes on. */
export type HostActivity = { readonly connection: number; readonly idle: boolean }

/** One event of the stream of commands. */
export type HostFrame =
  | { readonly event: 'activity'; readonly data: HostActivity }
  | { readonly event: 'command'; readonly data: HostCommand }

/** What an application says of an open call; an `outcome` is the envelope of contract 3.3, `content` included. */
export type HostUpdate =
  | { readonly type: 'result'; readonly outcome: Json }
  | { readonly type: 'returned'; readonly outcome?: Json }
  | { readonly type: 'finish'; readonly outcome?: Json }
