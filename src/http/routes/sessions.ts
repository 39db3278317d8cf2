import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { isJsonObject } from '../../kernel/json.ts'
import { isIdentifier, parseSessionId, type SessionId, type TenantId } from '../../kernel/ids.ts'
import { listOf } from '../../contract/list-of.ts'
import { mediaSchema } from '../../contract/message-schema.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'
import { SESSION_STATUSES } from '../../contract/session-request.ts'
import type { UserInput } from '../../contract/message.ts'
import { parseCreateRequest } from '../../session/create-request.ts'
import type { ClaimInHand, Work, Worked } from '../../session/requests.ts'
import { claimOf, jsonOf, parse, respondAsync, traceparentOf } from '../parse.ts'
import type { ServerParts } from '../server.ts'

type WithId = { Params: { id: string } }

const messageBody = z.strictObject({
  input: z.strictObject({ message: z.string().min(1), media: nullAsAbsent(listOf(mediaSchema, 64)) }),
})

const listQuery = z.strictObject({
  label: z
    .string()
    .refine((text) => labelsIn(text).length > 0, 'must be key:value')
    .optional(),
  status: z.enum(SESSION_STATUSES).optional(),
  after: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(10_000).optional(),
})

/** `/v1/sessions` and one session's life (contract 1.3). */
export function sessionRoutes(app: FastifyInstance, parts: ServerParts): void {
  const { sessions, access } = parts
  app.post('/v1/sessions', async (request, reply) => {
    const tenant = access.tenantOf(request)
    return once(parts, { request, reply }, { tenant, scope: 'create_session' }, async (claim) => {
      const body = parseCreateRequest(jsonOf(request))
      return json(await sessions.create(tenant, body, claim))
    })
  })

  app.get('/v1/sessions', { config: { takesQuery: true } }, async (request) => {
    const tenant = access.tenantOf(request)
    const queries = toSessionQueries(parse(listQuery, request.query, 'query'))
    const lists = await Promise.all(queries.map((query) => sessions.list(tenant, query)))
    const found = new Map(lists.flat().map((summary) => [summary.session_id, summary]))
    const sorted = [...found.values()].toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1))
    return { sessions: sorted.slice(0, queries[0]?.limit) }
  })

  app.get<WithId>('/v1/sessions/:id', async (request) =>
    sessions.get(access.tenantOf(request), parseSessionId(request.params.id)),
  )

  app.get<WithId>('/v1/sessions/:id/transcript', async (request) =>
    sessions.transcript(access.tenantOf(request), parseSessionId(request.params.id)),
  )

  app.delete<WithId>('/v1/sessions/:id', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    return once(parts, { request, reply }, { tenant, scope: `session:${id}:delete` }, async (claim) => {
      const answer = { status: 204, body: '' }
      await sessions.remove(tenant, id, claim, answer)
      return { answer, settled: true }
    })
  })
  driveRoutes(app, parts)
}

function driveRoutes(app: FastifyInstance, parts: ServerParts): void {
  const { sessions } = parts
  app.post<WithId>('/v1/sessions/:id/messages', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    const isAsync = respondAsync(request)
    return once(
      parts,
      { request, reply },
      { tenant, scope: `session:${id}:${isAsync ? 'submit' : 'message'}` },
      (inHand) =>
        admitting(inHand, async (claim) => {
          const traceparent = traceparentOf(request)
          const said = parse(messageBody, jsonOf(request), 'body').input as UserInput
          const input = traceparent === undefined ? said : { ...said, traceparent }
          if (!isAsync) return json(await sessions.send(tenant, id, input, claim))
          const sequence = await sessions.submit(tenant, id, input, claim)
          return { answer: { status: 202, body: String(sequence) } }
        }),
    )
  })

  app.post<WithId>('/v1/sessions/:id/cancel', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    return once(parts, { request, reply }, { tenant, scope: `session:${id}:cancel` }, async (claim) => {
      await sessions.cancel(tenant, id, claim)
      return { answer: { status: 204, body: '' } }
    })
  })

  app.post<WithId>('/v1/sessions/:id/end', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    return once(parts, { request, reply }, { tenant, scope: `session:${id}:end` }, async (claim) =>
      json(await sessions.end(tenant, id, claim)),
    )
  })
}

/** A message that is refused before anything was done says so, whatever the reason (contract 0.4). */
async function admitting(inHand: ClaimInHand, work: (claim: ClaimInHand) => Promise<Worked>): Promise<Worked> {
  let isMade = false
  const made = (): void => {
    isMade = true
    inHand.made()
  }
  try {
    return await work({ claim: inHand.claim, made })
  } catch (error) {
    if (isMade || !(error instanceof BrainError)) throw error
    const { code, message, retryable, body } = error
    const details = { ...(isJsonObject(error.details) ? error.details : {}), admission: 'rejected' }
    throw new BrainError(code, message, { cause: error, retryable, details, ...(body === undefined ? {} : { body }) })
  }
}

const json = (value: unknown): Worked => ({ answer: { status: 200, body: JSON.stringify(value) } })

export function whose({ access }: ServerParts, request: FastifyRequest<WithId>): { tenant: TenantId; id: SessionId } {
  return { tenant: access.tenantOf(request), id: parseSessionId(request.params.id) }
}

/** Runs a mutating request once per Idempotency-Key and sends its answer. */
export async function once(
  { requests }: ServerParts,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  about: { tenant: TenantId; scope: string },
  work: ((claim: ClaimInHand) => Promise<Worked>) | Work,
): Promise<FastifyReply> {
  const whole = typeof work === 'function' ? { run: work } : work
  const { status, body } = await requests.run(claimOf(request, about.tenant, about.scope), whole)
  if (status === 202) reply.header('preference-applied', 'respond-async')
  return status === 204 ? reply.code(204).send() : reply.code(status).type('application/json').send(body)
}

/** One query, or one for each way to read `label`: keys may hold colons too. */
function toSessionQueries(query: z.output<typeof listQuery>): Parameters<ServerParts['sessions']['list']>[1][] {
  const { label, status, after, limit } = query
  const rest = {
    ...(status === undefined ? {} : { status: [status] }),
    ...(after === undefined ? {} : { after }),
    ...(limit === undefined ? {} : { limit }),
  }
  if (label === undefined) return [rest]
  return labelsIn(label).map((one) => ({ ...rest, label: one }))
}

function labelsIn(text: string): { readonly key: string; readonly value: string }[] {
  const cuts = [...text.matchAll(/:/g)].map(({ index }) => index)
  return cuts
    .map((cut) => ({ key: text.slice(0, cut), value: text.slice(cut + 1) }))
    .filter(({ key }) => isIdentifier(key))
}
