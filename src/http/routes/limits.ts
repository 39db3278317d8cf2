import type { FastifyInstance } from 'fastify'
import { LIMITS, type LimitName } from '../../contract/limits.ts'
import type { ServerParts } from '../server.ts'

/** `GET /v1/limits`: every limit in force, by its variable (contract A13). */
export function limitRoutes(app: FastifyInstance, { limits, access }: ServerParts): void {
  app.get('/v1/limits', async (request) => {
    access.tenantOf(request)
    const entries = (Object.keys(LIMITS) as LimitName[]).map((name) => {
      const { variable, unit } = LIMITS[name]
      return [variable, { value: limits[name], unit }]
    })
    return { limits: Object.fromEntries(entries) as Record<string, { value: number; unit: string }> }
  })
}
