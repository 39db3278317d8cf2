import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { StreamBody } from '../bodies.ts'
import { parse } from '../parse.ts'
import type { ServerParts } from '../server.ts'
import { whose } from './sessions.ts'

type InEnvironment = { Params: { id: string; env: string } }
type AtPath = { Params: { id: string; env: string; '*': string } }

const listQuery = z.strictObject({
  prefix: z.string().default(''),
  after: z.string().default(''),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
})

/** Workspace files as raw bytes (contract A12). PUT and DELETE are idempotent of themselves and need no key. */
export function fileRoutes(app: FastifyInstance, parts: ServerParts): void {
  const base = '/v1/sessions/:id/environments/:env/files'
  app.get<InEnvironment>(base, { config: { takesQuery: true } }, async (request) => {
    const { tenant, id } = whose(parts, request)
    const query = parse(listQuery, request.query, 'query')
    const files = await parts.files.list(tenant, id, request.params.env, {
      prefix: query.prefix,
      after: query.after,
      ...(query.limit === undefined ? {} : { limit: query.limit }),
    })
    return { files: files.map(({ path, size, mtimeMs }) => ({ path, size, mtime_ms: mtimeMs })) }
  })

  app.get<AtPath>(`${base}/*`, async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    const file = await parts.files.read(tenant, id, request.params.env, pathOf(request))
    reply.header('content-disposition', 'attachment').header('x-content-type-options', 'nosniff')
    reply.header('content-security-policy', 'sandbox').header('content-length', file.size)
    const body = Readable.from(file.body, { objectMode: false })
    // Nobody is left who would read it to its end.
    reply.raw.once('close', () => body.destroy())
    if (reply.raw.destroyed) body.destroy()
    return reply.type('application/octet-stream').send(body)
  })

  app.put<AtPath>(`${base}/*`, { config: { anyBody: true } }, async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    const path = pathOf(request)
    const body = request.body instanceof StreamBody ? request.body : new StreamBody(request.raw)
    const { size } = await parts.files.write(tenant, id, request.params.env, { path, body })
    return reply.send({ path, size })
  })

  app.delete<AtPath>(`${base}/*`, async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    await parts.files.remove(tenant, id, request.params.env, pathOf(request))
    return reply.code(204).send()
  })
}

/** The path as it stands in the URL, percent-decoded once; what the router made of it is not used (contract A12). */
function pathOf(request: FastifyRequest<AtPath>): string {
  const raw = request.raw.url?.split('?')[0] ?? ''
  const encoded = raw.split('/files/').slice(1).join('/files/')
  let path: string
  try {
    path = decodeURIComponent(encoded)
  } catch (cause) {
    throw new BrainError('invalid_request', 'Cannot use this path: it is not percent-encoded UTF-8', { cause })
  }
  const bad = path
    .split('/')
    .find((part) => part === '' || part === '.' || part === '..' || part.includes('\\') || part.includes('\0'))
  if (bad !== undefined)
    throw new BrainError(
      'invalid_request',
      `Cannot use path ${JSON.stringify(path.slice(0, 200))}: parts that are empty, "." or "..", and parts with NUL or backslash, are refused`,
    )
  return path
}
