import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'

const readyQuery = z.strictObject({ verbose: z.string().optional() })

/** `/health/live`, `/health/ready` (contract 1.1); `?verbose` says what the server stands on and needs the token. */
export function healthRoutes(app: FastifyInstance, { health, access }: ServerParts): void {
  const probed = { exposeHeadRoute: true }
  app.get('/health/live', probed, async (_request, reply) => reply.code(204).send())
  app.get('/health/ready', { ...probed, config: { takesQuery: true } }, async (request, reply) => {
    const { verbose } = parse(readyQuery, request.query, 'query')
    const ready = health.isReady()
    if (verbose === undefined) return reply.code(ready ? 204 : 503).send()
    access.tenantOf(request)
    return reply.code(ready ? 200 : 503).send(await health.describe())
  })
}
