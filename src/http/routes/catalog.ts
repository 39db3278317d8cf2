import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ServerParts } from '../server.ts'

/** The distributed tools that a tenant may enable for its sessions (contract A4). */
export function catalogRoutes(app: FastifyInstance, { access, catalog }: ServerParts): void {
  const list = async (request: FastifyRequest): Promise<object> => ({ tools: catalog.list(access.tenantOf(request)) })
  app.get('/catalog', list)
  app.get('/v1/catalog', list)
}
