import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { parseSessionId, type SessionId, type TenantId } from '../../kernel/ids.ts'
import type { FeedItem } from '../../session/event-feed.ts'
import { bearerOf } from '../access.ts'
import { sendEventStream, wantsEventStream, type StreamEvent } from '../event-stream.ts'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'

const sequence = z
  .string()
  .regex(/^\d{1,16}$/, 'must be a sequence: a whole number')
  .transform(Number)
  .refine(Number.isSafeInteger, 'must be a sequence: a whole number')
const eventsQuery = z.strictObject({ after: sequence.default(0) })

type WithId = { Params: { id: string } }
type Streamed = { readonly events: AsyncIterable<StreamEvent>; readonly lagged: AbortSignal }

/** What a session's journal tells, as pages and as streams (contract 3.5, A5). */
export function eventRoutes(app: FastifyInstance, parts: ServerParts): void {
  const { events, activity } = parts
  const inspectable = { config: { inspectable: true, takesQuery: true } }
  app.get<WithId>('/v1/sessions/:id/events', inspectable, async (request, reply) => {
    const at = whereOf(parts, request)
    if (!wantsEventStream(request)) return events.page(at.tenant, at.id, at.after)
    return stream(parts, { request, reply, at }, async (after, signal) => {
      const feed = await events.follow(at.tenant, at.id, after, signal)
      return { events: mapped(feed, toRecordEvent), lagged: feed.lagged }
    })
  })

  app.get<WithId>('/v1/sessions/:id/tool-events', inspectable, async (request, reply) => {
    const at = whereOf(parts, request)
    if (!wantsEventStream(request)) return activity.page(at.tenant, at.id, at.after)
    return stream(parts, { request, reply, at }, async (after, signal) => {
      const feed = await activity.follow(at.tenant, at.id, after, signal)
      const toEvent = ({ sequence: id, event_type: event, data }: ToolEvent): StreamEvent => ({
        ...(id === undefined ? {} : { id }),
        event,
        data,
      })
      return { events: mapped(feed.events, toEvent), lagged: feed.lagged }
    })
  })
}

type ToolEvent = { readonly sequence?: number; readonly event_type: string; readonly data: unknown }

function whereOf(
  parts: ServerParts,
  request: FastifyRequest<WithId>,
): Viewer & { readonly id: SessionId; readonly after: number } {
  const { after } = parse(eventsQuery, request.query, 'query')
  return { ...viewerOf(parts, request), id: parseSessionId(request.params.id), after }
}

/** Who reads the events of a session; `over` ends what a call of a distributed tool may read. */
export type Viewer = { readonly tenant: TenantId; readonly over?: AbortSignal; readonly mayGoOn: () => boolean }

/**
 * A tenant, or a call of a distributed tool that may inspect its session (contract A16).
 * @throws BrainError `unauthorized`
 */
export function viewerOf({ access, inspections }: ServerParts, request: FastifyRequest): Viewer {
  const token = bearerOf(request)
  // Tokens of tenants are the operator's to choose, so one may look like those of inspections.
  const owner = inspections.isInspection(token) ? access.ownerOf(token) : access.tenantOf(request)
  if (owner !== undefined) return { tenant: owner, mayGoOn: () => access.tenantWith(token) === owner }
  const viewer = inspections.find(parseSessionId((request as FastifyRequest<WithId>).params.id), token)
  if (viewer !== undefined) return { ...viewer, mayGoOn: () => true }
  throw new BrainError(
    'unauthorized',
    'Cannot authenticate: the call that was given this token is over, or another session’s',
  )
}

/** Follows for as long as client and server are there; of `after` and `Last-Event-ID` the larger counts (A6). */
async function stream(
  { streams }: ServerParts,
  { request, reply, at }: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly at: Viewer },
  follow: (after: number, signal: AbortSignal) => Promise<Streamed>,
): Promise<FastifyReply> {
  const { after } = parse(eventsQuery, request.query, 'query')
  const last = sequence.safeParse(request.headers['last-event-id'])
  const stop = new AbortController()
  request.raw.on('close', () => stop.abort())
  reply.raw.on('close', () => stop.abort())
  const { over, mayGoOn } = at
  const unregister = streams.add(stop, mayGoOn)
  const end = (): void => stop.abort()
  over?.addEventListener('abort', end, { once: true })
  if (over?.aborted === true) end()
  try {
    const { events, lagged } = await follow(Math.max(after, last.success ? last.data : 0), stop.signal)
    await sendEventStream(reply, events, lagged)
  } finally {
    unregister()
    over?.removeEventListener('abort', end)
  }
  return reply
}

const toRecordEvent = (item: FeedItem): StreamEvent =>
  item.type === 'live'
    ? { event: item.frame.type, data: item.frame.data }
    : { id: item.record.sequence, event: item.record.event_type, data: item.record }

async function* mapped<Item>(
  items: AsyncIterable<Item>,
  toEvent: (item: Item) => StreamEvent,
): AsyncGenerator<StreamEvent> {
  for await (const item of items) yield toEvent(item)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A call of a distributed tool may read it, with its inspection token. */
    readonly inspectable?: boolean
  }
}
