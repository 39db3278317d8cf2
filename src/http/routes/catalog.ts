import type { FastifyInstance } from 'fastify'
import type { ServerParts } from '../server.ts'

/** `GET /catalog`: the distributed tools that a tenant may enable for its sessions (contract A4). */
export function catalogRoutes(app: FastifyInstance, { access, catalog }: ServerParts): void {
  for (const path of ['/catalog', '/v1/catalog'])
    app.get(path, async (request) => ({ tools: catalog.list(access.tenantOf(request)) }))
}
