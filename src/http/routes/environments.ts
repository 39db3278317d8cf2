import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { isIdentifier, parseSessionId } from '../../kernel/ids.ts'
import { controlRequestSchema, environmentEventSchema } from '../../contract/environment-schema.ts'
import { jsonSchema } from '../../contract/message-schema.ts'
import { ToolFailure } from '../../contract/tool-failure.ts'
import { bearerOf } from '../access.ts'
import { jsonOf, parse } from '../parse.ts'
import { toProblem } from '../problem.ts'
import type { ServerParts } from '../server.ts'
import { once, whose } from './sessions.ts'

type OfSession = { Params: { id: string } }
type OfMethod = { Params: { id: string; name: string; method: string } }
type OfEnvironment = { Params: { id: string; name: string; sequence: string } }
type OfExecution = { Params: { id: string; sequence: string } }

const methodBody = z.strictObject({ input: jsonSchema })
const executionBody = z.strictObject({ method: z.string(), input: jsonSchema })

/** Environments: their control by the application, and what they say themselves (contract 1.3, 5.2-5.4). */
export function environmentRoutes(app: FastifyInstance, parts: ServerParts): void {
  const { environments } = parts
  app.post<OfSession>('/v1/sessions/:id/environments', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    return once(parts, { request, reply }, { tenant, scope: `environment_control:${id}` }, async (claim) => {
      const body = parse(controlRequestSchema, jsonOf(request), 'body')
      return answered(await environments.control(tenant, id, body, claim))
    })
  })

  app.post<OfMethod>('/v1/sessions/:id/environments/:name/calls/:method', async (request, reply) => {
    const { tenant, id } = whose(parts, request)
    const { name, method } = request.params
    assertIdentifier(name)
    assertIdentifier(method)
    const scope = `session:${id}:environment:${name}:call:${method}`
    return once(parts, { request, reply }, { tenant, scope }, async (claim) => {
      const { input } = parse(methodBody, jsonOf(request), 'body')
      return answered({ output: await environments.call(tenant, id, { environment: name, method, input }, claim) })
    })
  })

  const byOwnToken = { config: { ownToken: true } }
  app.post<OfEnvironment>(
    '/v1/sessions/:id/environments/:name/:sequence/events',
    byOwnToken,
    async (request, reply) => {
      const { id, name, sequence } = request.params
      const token = ownToken(request)
      return serve(reply, async () => {
        const event = parse(environmentEventSchema, jsonOf(request), 'body')
        const environment = { session: parseSessionId(id), name, sequence: sequenceOf(sequence) }
        return JSON.stringify({ sequence: await environments.report(environment, token, event) })
      })
    },
  )

  app.post<OfExecution>('/v1/sessions/:id/executions/:sequence/call', byOwnToken, async (request, reply) => {
    const { id, sequence } = request.params
    const token = ownToken(request)
    return serve(reply, async () => {
      const { method, input } = parse(executionBody, jsonOf(request), 'body')
      return environments.execute(parseSessionId(id), sequenceOf(sequence), { token, method, input })
    })
  })
}

const answered = (value: unknown): { answer: { status: number; body: string } } => ({
  answer: { status: 200, body: JSON.stringify(value) },
})

function assertIdentifier(text: string): void {
  if (!isIdentifier(text))
    throw new BrainError('invalid_request', `Cannot read ${JSON.stringify(text.slice(0, 80))}: it is no identifier`)
}

function sequenceOf(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new BrainError('invalid_request', `Cannot read sequence ${JSON.stringify(text.slice(0, 80))}`)
  return Number(text)
}

/**
 * What a token of an execution or of a reporter opens is one session's: it is compared where that is known.
 * @throws BrainError `unauthorized` when there is none
 */
export function ownToken(request: FastifyRequest): string {
  const token = bearerOf(request)
  if (token !== '') return token
  throw new BrainError(
    'unauthorized',
    'Cannot authenticate: send "Authorization: Bearer" with the token that came with this url',
  )
}

/**
 * Lets in who holds the token of an open execution, or of the reporter of an environment.
 * @throws BrainError `unauthorized`, `not_found`
 */
export function checkOwnToken({ environments }: ServerParts, request: FastifyRequest): void {
  const { id, name, sequence } = request.params as { id: string; name?: string; sequence: string }
  environments.assertToken({ session: parseSessionId(id), name, sequence: sequenceOf(sequence) }, ownToken(request))
}

/** These keep their own status; what else a service refuses is the fault of whoever asked (contract 5.3). */
const OWN_STATUS = new Set(['not_found', 'cancelled', 'overloaded', 'storage_unavailable', 'internal', 'ambiguous'])

async function serve(reply: FastifyReply, work: () => Promise<string>): Promise<FastifyReply> {
  try {
    return await reply.type('application/json').send(await work())
  } catch (error) {
    const isRefused = error instanceof ToolFailure || (error instanceof BrainError && !OWN_STATUS.has(error.code))
    if (!isRefused || (error instanceof BrainError && error.body !== undefined)) throw error
    const { body } = toProblem(error)
    // A call that is over is no conflict of whoever made it.
    return reply.code(400).send(body.code === 'conflict' ? { ...body, code: 'invalid_request' } : body)
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is opened by a token of its own, and by no other. */
    readonly ownToken?: boolean
  }
}
