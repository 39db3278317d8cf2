import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { parseComponentId } from '../../kernel/ids.ts'
import { listOf } from '../../contract/list-of.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'
import { jsonOf, parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'

/** Of one request: as many as a session has tools. */
const MOST_IDS = 1024

const ids = nullAsAbsent(listOf(z.string(), MOST_IDS))
const prepareBody = z.strictObject({ agentloops: ids, tools: ids, programs: ids })

/** `POST /v1/brain-env/prepare`: loads components ahead of the sessions that name them (contract 1.2). */
export function preparationRoutes(app: FastifyInstance, { access, sessions, tools, agentloops }: ServerParts): void {
  app.post('/v1/brain-env/prepare', async (request, reply) => {
    const tenant = access.tenantOf(request)
    const body = parse(prepareBody, jsonOf(request), 'body')
    sessions.assertTakesWork()
    if ((body.programs ?? []).length > 0)
      throw new BrainError('unsupported', 'Cannot prepare programs: they are not part of this server')
    const named = [
      ...(body.agentloops ?? []).map((id) => ({ components: agentloops, id: parseComponentId(id) })),
      ...(body.tools ?? []).map((id) => ({ components: tools, id: parseComponentId(id) })),
    ]
    // All are known before the first is loaded.
    for (const { components, id } of named) await components.get(tenant, id)
    for (const { components, id } of named) await components.prepare(tenant, id)
    return reply.code(204).send()
  })
}
