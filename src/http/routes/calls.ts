import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { identifierSchema } from '../../contract/name-schemas.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'
import type { Json } from '../../kernel/json.ts'
import type { DirectCall } from '../../session/direct-calls.ts'
import type { ClaimInHand, Work, Worked } from '../../session/requests.ts'
import { jsonOf, parse, respondAsync, traceparentOf } from '../parse.ts'
import type { ServerParts } from '../server.ts'
import { once, whose } from './sessions.ts'

const callBody = z.strictObject({
  input: z.custom<Json>((value) => value !== undefined, 'is required'),
  environment: nullAsAbsent(identifierSchema),
  deadline_ms: nullAsAbsent(z.int().min(1).max(Number.MAX_SAFE_INTEGER)),
})
const callQuery = z.strictObject({ wait: z.literal('finished').optional() })

/** Direct calls and their logs (contract A11, A29). */
export function callRoutes(app: FastifyInstance, parts: ServerParts): void {
  app.post<{ Params: { id: string; name: string } }>(
    '/v1/sessions/:id/tools/:name/calls',
    { config: { takesQuery: true } },
    async (request, reply) => {
      const { tenant, id } = whose(parts, request)
      const { name } = request.params
      const { wait } = parse(callQuery, request.query, 'query')
      const mode = respondAsync(request) ? 'started' : (wait ?? 'released')
      const run = async (claim: ClaimInHand): Promise<Worked> => {
        const body = parse(callBody, jsonOf(request), 'body')
        const call: DirectCall = {
          tool: name,
          input: body.input,
          ...(body.environment === undefined ? {} : { environment: body.environment }),
          ...(body.deadline_ms === undefined ? {} : { deadlineMs: body.deadline_ms }),
          traceparent: traceparentOf(request),
          wait: mode,
        }
        return parts.calls.call(tenant, id, call, claim)
      }
      const rebuild: NonNullable<Work['rebuild']> = (answer) => parts.calls.rebuild(answer, mode)
      return once(parts, { request, reply }, { tenant, scope: `session:${id}:tool:${name}:call` }, { run, rebuild })
    },
  )

  app.get<{ Params: { id: string; sequence: string } }>('/v1/sessions/:id/calls/:sequence/log', async (request) => {
    const { tenant, id } = whose(parts, request)
    const sequence = Number(request.params.sequence)
    if (!Number.isSafeInteger(sequence) || sequence < 1)
      throw new BrainError('invalid_request', 'Cannot read the log: the sequence of a call is a positive integer')
    return parts.sessions.callLog(tenant, id, sequence)
  })
}
