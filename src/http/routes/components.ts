import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BrainError } from '../../kernel/errors.ts'
import { parseComponentId } from '../../kernel/ids.ts'
import type { ComponentRegistry } from '../../session/component-registry.ts'
import { refuseAnnounced, StreamBody } from '../bodies.ts'
import { idempotencyKey } from '../parse.ts'
import type { ServerParts } from '../server.ts'

type WithId = { Params: { id: string } }
type Resource = 'tools' | 'agentloops'

/** `/v1/tools` and `/v1/agentloops`: components of the tenant (contract 1.2, A7, A30). */
export function componentRoutes(app: FastifyInstance, parts: ServerParts): void {
  const tools = handlersOf('tools', parts)
  app.post('/v1/tools', tools.admit)
  app.get('/v1/tools', tools.list)
  app.get<WithId>('/v1/tools/:id', tools.get)
  app.delete<WithId>('/v1/tools/:id', tools.remove)

  const agentloops = handlersOf('agentloops', parts)
  app.post('/v1/agentloops', agentloops.admit)
  app.get('/v1/agentloops', agentloops.list)
  app.get<WithId>('/v1/agentloops/:id', agentloops.get)
  app.delete<WithId>('/v1/agentloops/:id', agentloops.remove)

  for (const programs of ['/v1/programs', '/v1/programs/:id'])
    app.all(programs, () => {
      throw new BrainError(
        'unsupported',
        'Cannot use /v1/programs: programs are not part of this server; compile tools to components',
      )
    })
}

const handlersOf = (resource: Resource, parts: ServerParts) => {
  const { [resource]: components, access } = parts
  return {
    admit: async (request: FastifyRequest, reply: FastifyReply) => {
      const { status, body } = await admit(components, parts, request)
      return reply.code(status).type('application/json').send(body)
    },
    list: async (request: FastifyRequest) => ({
      [resource]: (await components.list(access.tenantOf(request))).map(toAdmission),
    }),
    get: async (request: FastifyRequest<WithId>) =>
      toAdmission(await components.get(access.tenantOf(request), parseComponentId(request.params.id))),
    remove: async (request: FastifyRequest<WithId>, reply: FastifyReply) => {
      await components.remove(access.tenantOf(request), parseComponentId(request.params.id))
      return reply.code(204).send()
    },
  }
}

async function admit(
  components: ComponentRegistry,
  { requests, limits, access, sessions, warning }: ServerParts,
  request: FastifyRequest,
): Promise<{ readonly status: number; readonly body: string }> {
  const tenant = access.tenantOf(request)
  const key = idempotencyKey(request)
  if (!(request.body instanceof StreamBody))
    throw new BrainError(
      'invalid_request',
      'Cannot admit a component: send its bytes with content-type application/wasm or application/octet-stream',
      { body: 'media_type' },
    )
  sessions.assertTakesWork()
  refuseAnnounced(request.raw, 'packageBytes', limits)
  const component = await components.admit(tenant, request.body)
  // The bytes say what the request asks for: only after they have come can the key be compared.
  const digest = createHash('sha256').update(component.id).digest('hex')
  const admission = { ...toAdmission(component), ...(warning === undefined ? {} : { warning }) }
  return requests.run(
    { scope: `${tenant}:admit_${components.role}`, key, digest },
    {
      run: async (claim) => {
        await requests.claim(claim)
        return { answer: { status: 200, body: JSON.stringify(admission) } }
      },
      failed: 'release',
    },
  )
}

type Admitted = Awaited<ReturnType<ComponentRegistry['get']>>

function toAdmission({ id, bytes, metadata, imports, admittedAtMs }: Admitted): object {
  return {
    id,
    status: 'admitted',
    bytes,
    imports,
    admitted_at_ms: admittedAtMs,
    ...(metadata === undefined ? {} : { metadata }),
  }
}
