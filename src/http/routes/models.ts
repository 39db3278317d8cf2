import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import type { ModelCatalogue } from '../../contract/model-catalogue.ts'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'

const modelsQuery = z.strictObject({ provider: z.string().optional() })

/** `GET /v1/models`: the providers that sessions may name, with what is known of their models (contract 1.1). */
export function modelRoutes(app: FastifyInstance, { models, access }: ServerParts): void {
  app.get('/v1/models', { config: { takesQuery: true } }, async (request): Promise<ModelCatalogue> => {
    access.tenantOf(request)
    const { provider } = parse(modelsQuery, request.query, 'query')
    if (provider === undefined) return models
    const providers = models.providers.filter(({ id }) => id === provider)
    if (providers.length > 0) return { ...models, providers }
    const known = models.providers.map(({ id }) => id).join(', ')
    throw new BrainError(
      'invalid_request',
      `Cannot list models of provider ${JSON.stringify(provider.slice(0, 128))}: it must be one of ${known}`,
    )
  })
}
