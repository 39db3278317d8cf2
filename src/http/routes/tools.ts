import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { BrainError } from '../../kernel/errors.ts'
import { parseComponentId } from '../../kernel/ids.ts'
import type { ToolRegistry } from '../../session/tool-registry.ts'
import { refuseAnnounced, StreamBody } from '../bodies.ts'
import { idempotencyKey } from '../parse.ts'
import type { ServerParts } from '../server.ts'

type WithId = { Params: { id: string } }

/** `/v1/tools`: components of the tenant (contract 1.2, A7, A30). */
export function toolRoutes(app: FastifyInstance, { tools, requests, limits, access, warning }: ServerParts): void {
  app.post('/v1/tools', async (request, reply) => {
    const tenant = access.tenantOf(request)
    const key = idempotencyKey(request)
    if (!(request.body instanceof StreamBody))
      throw new BrainError(
        'invalid_request',
        'Cannot admit a component: send its bytes with content-type application/wasm or application/octet-stream',
        { body: 'media_type' },
      )
    refuseAnnounced(request.raw, 'packageBytes', limits)
    const component = await tools.admit(tenant, request.body)
    // The bytes say what the request asks for: only after they have come can the key be compared.
    const digest = createHash('sha256').update(component.id).digest('hex')
    const answer = await requests.run(
      { scope: `${tenant}:admit_tool`, key, digest },
      {
        run: async (claim) => {
          await requests.claim(claim)
          return {
            answer: {
              status: 200,
              body: JSON.stringify({ ...toAdmission(component), ...(warning === undefined ? {} : { warning }) }),
            },
          }
        },
        failed: 'release',
      },
    )
    return reply.code(answer.status).type('application/json').send(answer.body)
  })

  app.get('/v1/tools', async (request) => ({ tools: (await tools.list(access.tenantOf(request))).map(toAdmission) }))

  app.get<WithId>('/v1/tools/:id', async (request) => {
    const tenant = access.tenantOf(request)
    return toAdmission(await tools.get(tenant, parseComponentId(request.params.id)))
  })

  app.delete<WithId>('/v1/tools/:id', async (request, reply) => {
    const tenant = access.tenantOf(request)
    await tools.remove(tenant, parseComponentId(request.params.id))
    return reply.code(204).send()
  })
}

type Admitted = Awaited<ReturnType<ToolRegistry['get']>>

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
