import type { Json } from '../../kernel/json.ts'

/** Sends one request of an execution to the server. */
export type PostToHost = (
  route: 'results' | 'events' | 'model' | 'call',
  body: object,
  signal?: AbortSignal,
) => Promise<Json | undefined>
