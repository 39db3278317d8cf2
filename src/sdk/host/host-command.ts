import type { Json } from '../../kernel/json.ts'

/** What the server asks a host to do (contract 4.1). */
export type HostCommand = {
  readonly session_id: string
  readonly environment: string
  /** The declared environment that `environment` was made from. */
  readonly template?: string
  readonly sequence: number
  readonly deadline_at_ms?: number
  readonly operation:
    | { readonly type: 'invoke_tool'; readonly name: string; readonly input: Json }
    | { readonly type: 'cancel_tool'; readonly target_sequence: number }
}

/** Sends one request of an execution to the server. */
export type PostToHost = (
  route: 'results' | 'events' | 'model' | 'call',
  body: object,
  signal?: AbortSignal,
) => Promise<Json | undefined>
