import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { sendEventStream, wantsEventStream } from '../event-stream.ts'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'
import { whose } from './sessions.ts'

const sequence = z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)
const eventsQuery = z.strictObject({ after: sequence.default(0) })

/** `/v1/sessions/{id}/events`, a page or a stream (contract 3.5). */
export function eventRoutes(app: FastifyInstance, parts: ServerParts): void {
  app.get<{ Params: { id: string } }>('/v1/sessions/:id/events', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    const { after } = parse(eventsQuery, request.query, 'query')
    if (!wantsEventStream(request)) return parts.events.page(tenant, id, after)
    const last = sequence.safeParse(request.headers['last-event-id'] ?? 0)
    const stop = new AbortController()
    request.raw.on('close', () => stop.abort())
    reply.raw.on('close', () => stop.abort())
    const unregister = parts.streams.add(stop)
    try {
      const feed = await parts.events.follow(tenant, id, Math.max(after, last.success ? last.data : 0), stop.signal)
      await sendEventStream(reply, feed)
    } finally {
      unregister()
    }
    return reply
  })
}
