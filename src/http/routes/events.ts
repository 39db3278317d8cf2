import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { SessionId, TenantId } from '../../kernel/ids.ts'
import type { FeedItem } from '../../session/event-feed.ts'
import { sendEventStream, wantsEventStream, type StreamEvent } from '../event-stream.ts'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'
import { whose } from './sessions.ts'

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
  app.get<WithId>('/v1/sessions/:id/events', async (request, reply) => {
    const at = whereOf(parts, request)
    if (!wantsEventStream(request)) return events.page(at.tenant, at.id, at.after)
    return stream(parts, { request, reply }, async (after, signal) => {
      const feed = await events.follow(at.tenant, at.id, after, signal)
      return { events: mapped(feed, toRecordEvent), lagged: feed.lagged }
    })
  })

  app.get<WithId>('/v1/sessions/:id/tool-events', async (request, reply) => {
    const at = whereOf(parts, request)
    if (!wantsEventStream(request)) return activity.page(at.tenant, at.id, at.after)
    return stream(parts, { request, reply }, async (after, signal) => {
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
): { readonly tenant: TenantId; readonly id: SessionId; readonly after: number } {
  const { after } = parse(eventsQuery, request.query, 'query')
  return { ...whose(parts, request), after }
}

/** Follows for as long as client and server are there; of `after` and `Last-Event-ID` the larger counts (A6). */
async function stream(
  { streams }: ServerParts,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  follow: (after: number, signal: AbortSignal) => Promise<Streamed>,
): Promise<FastifyReply> {
  const { after } = parse(eventsQuery, request.query, 'query')
  const last = sequence.safeParse(request.headers['last-event-id'])
  const stop = new AbortController()
  request.raw.on('close', () => stop.abort())
  reply.raw.on('close', () => stop.abort())
  const unregister = streams.add(stop)
  try {
    const { events, lagged } = await follow(Math.max(after, last.success ? last.data : 0), stop.signal)
    await sendEventStream(reply, events, lagged)
  } finally {
    unregister()
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
