import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { faultOfEnvelope } from '../../contract/outcome.ts'
import { jsonSchema } from '../../contract/message-schema.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'
import { ToolFailure } from '../../contract/tool-failure.ts'
import type { HostUpdate } from '../../contract/host-protocol.ts'
import type { ApplicationHost, HostCallName } from '../../session/application-hosts.ts'
import { bearerOf } from '../access.ts'
import { sendEventStream } from '../event-stream.ts'
import { jsonOf, parse } from '../parse.ts'
import { toProblem } from '../problem.ts'
import type { ServerParts } from '../server.ts'

type WithId = { Params: { id: string } }

const suspendBody = z.strictObject({ connection: z.int() })

const outcome = z.custom<Json>().superRefine((value, context) => {
  const fault = value === undefined ? 'it is missing' : faultOfEnvelope(value)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: `is no outcome: ${fault}` })
})
/** Of a call: its session and its sequence. What is not one of this host is no longer pending, whatever it is. */
const call = { session_id: z.string(), sequence: z.int() }
const lastOutcome = nullAsAbsent(outcome)
const resultsBody = z.strictObject({
  ...call,
  update: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('result'), outcome }),
    z.strictObject({ type: z.literal('returned'), outcome: lastOutcome }),
    z.strictObject({ type: z.literal('finish'), outcome: lastOutcome }),
  ]),
})
const eventsBody = z.strictObject({ ...call, event_type: z.string(), data: jsonSchema })
const modelBody = z.strictObject({ ...call, request: jsonSchema })
const callBody = z.strictObject({ ...call, call: z.strictObject({ method: z.string(), input: jsonSchema }) })

/** The host that a request is for, which has its own token (contract 0.3). */
export function openHost({ hosts, access }: ServerParts, request: FastifyRequest): ApplicationHost {
  const host = hosts.open((request as FastifyRequest<WithId>).params.id, bearerOf(request))
  if (access.knows(host.tenant)) return host
  throw new BrainError('unauthorized', 'Cannot authenticate: this server has the tenant of this host no more')
}

/** Applications that run tools of their own (contract 4). */
export function hostRoutes(app: FastifyInstance, parts: ServerParts): void {
  const ofHost = { config: { hostToken: true } }
  app.post('/v1/hosts', async (request) => {
    const tenant = parts.access.tenantOf(request)
    parts.sessions.assertTakesWork()
    return parts.hosts.register(tenant)
  })

  app.get<WithId>('/v1/hosts/:id/commands', ofHost, async (request, reply) => {
    const host = openHost(parts, request)
    const stop = new AbortController()
    reply.raw.once('close', () => stop.abort())
    const unregister = parts.streams.add(stop, () => parts.access.knows(host.tenant))
    try {
      await sendEventStream(reply, host.connect(stop.signal), new AbortController().signal)
    } finally {
      stop.abort()
      unregister()
    }
    return reply
  })

  app.post<WithId>('/v1/hosts/:id/suspend', ofHost, async (request) => {
    const { connection } = parse(suspendBody, jsonOf(request), 'body')
    if (connection < 1) throw new BrainError('invalid_request', 'Cannot suspend: connections are counted from 1')
    return { suspended: openHost(parts, request).suspend(connection) }
  })

  app.post<WithId>('/v1/hosts/:id/results', ofHost, async (request, reply) => {
    const body = parse(resultsBody, jsonOf(request), 'body')
    return serve(reply, async () => ({
      sequence: await openHost(parts, request).update(nameOf(body), body.update as HostUpdate),
    }))
  })

  app.post<WithId>('/v1/hosts/:id/events', ofHost, async (request, reply) => {
    const body = parse(eventsBody, jsonOf(request), 'body')
    const text = JSON.stringify(body.data)
    return serve(reply, async () => ({
      sequence: await openHost(parts, request).emit(nameOf(body), body.event_type, text),
    }))
  })

  app.post<WithId>('/v1/hosts/:id/model', ofHost, async (request, reply) => {
    const body = parse(modelBody, jsonOf(request), 'body')
    const text = JSON.stringify(body.request)
    return sendText(reply, () => openHost(parts, request).model(nameOf(body), text))
  })

  app.post<WithId>('/v1/hosts/:id/call', ofHost, async (request, reply) => {
    const body = parse(callBody, jsonOf(request), 'body')
    const { method, input } = body.call
    return sendText(reply, async () => {
      if (method === 'environments') return openHost(parts, request).environments(nameOf(body), JSON.stringify(input))
      throw new BrainError(
        'unsupported',
        `Cannot call ${JSON.stringify(method.slice(0, 80))}: only "environments" is served here`,
      )
    })
  })
}

const nameOf = ({ session_id: session, sequence }: { session_id: string; sequence: number }): HostCallName => ({
  session,
  sequence,
})

/** The service was not refused: it failed, or there was no such call. */
const NOT_REFUSED = new Set(['conflict', 'overloaded', 'storage_unavailable', 'internal'])

/** What a service refuses is the fault of whoever asked, and says why (contract 4.2). */
async function serve<Answer>(reply: FastifyReply, work: () => Promise<Answer>): Promise<Answer | FastifyReply> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ToolFailure) {
      const { code, message, retryable } = error
      return reply.code(400).send({ code, message, retryable })
    }
    if (!(error instanceof BrainError) || NOT_REFUSED.has(error.code)) throw error
    return reply.code(400).send(toProblem(error).body)
  }
}

/** Answers with text that is JSON already. */
const sendText = (reply: FastifyReply, work: () => Promise<string>): Promise<unknown> =>
  serve(reply, async () => reply.type('application/json').send(await work()))

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is opened by the token of its host, and by no other. */
    readonly hostToken?: boolean
  }
}
