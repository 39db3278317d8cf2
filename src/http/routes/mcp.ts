import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { OpenCalls } from '../../mcp/open-calls.ts'
import { SessionTools } from '../../mcp/session-tools.ts'
import { jsonOf, traceparentOf } from '../parse.ts'
import type { ServerParts } from '../server.ts'
import { whose } from './sessions.ts'

type WithId = { Params: { id: string } }

/** The header in which clients of revisions before 2026-07-28 name themselves, with the name that `initialize` gave them. */
const CLIENT_HEADER = 'mcp-session-id'
const CLIENT_NAME = /^[\x21-\x7e]{1,128}$/

/** `/mcp/{session}`: the tools of a session for any client of the Model Context Protocol (docs/mcp.md). */
export function mcpRoutes(app: FastifyInstance, parts: ServerParts): void {
  const open = new OpenCalls()
  const serve = async (request: FastifyRequest<WithId>, reply: FastifyReply): Promise<FastifyReply> => {
    const { tenant, id } = whose(parts, request)
    await parts.sessions.get(tenant, id) // a session that is not there has no server
    const body = request.method === 'POST' ? messageIn(request) : undefined
    const client = clientOf(request)
    if (body?.['method'] === 'notifications/cancelled') cancel(open, id, client, body)
    // The SDK takes a sixth of a second to load, and most servers never need it.
    const { serveMcp } = await import('../../mcp/serve-mcp.ts')
    const response = await serveMcp({
      request: toWebRequest(request, reply),
      body,
      tools: new SessionTools(parts.calls, tenant, id, traceparentOf(request)),
      during: (context, work) => open.during({ session: id, client, request: context.mcpReq.id }, work),
      takesProgress: () => !reply.raw.writableNeedDrain,
      onDefect: (error) => {
        const text = error instanceof Error ? error.stack : messageOf(error)
        parts.logger.error({ session: id, error: text }, 'a request of an MCP client failed')
      },
    })
    if (body?.['method'] === 'initialize' && response.ok)
      reply
        .header(CLIENT_HEADER, randomBytes(16).toString('hex'))
        .header('access-control-expose-headers', CLIENT_HEADER)
    return reply.send(response)
  }
  app.post<WithId>('/mcp/:id', serve)
  // Both belong to a session that the server keeps, which this one does not: 405.
  app.get<WithId>('/mcp/:id', serve)
  app.delete<WithId>('/mcp/:id', serve)
}

/** @throws BrainError `invalid_request` when it is not one message: revisions since 2025-06-18 know no batches */
function messageIn(request: FastifyRequest): JsonObject {
  const body: Json = jsonOf(request)
  if (isJsonObject(body)) return body
  throw new BrainError('invalid_request', 'Cannot read the request body: send one JSON-RPC message, which is an object')
}

function clientOf(request: FastifyRequest): string | undefined {
  const name = request.headers[CLIENT_HEADER]
  if (name === undefined) return undefined
  if (typeof name === 'string' && CLIENT_NAME.test(name)) return name
  throw new BrainError(
    'invalid_request',
    `Cannot take the header ${CLIENT_HEADER}: send the one that initialize was answered with`,
  )
}

function cancel(open: OpenCalls, session: string, client: string | undefined, body: JsonObject): void {
  const { params } = body
  const request = isJsonObject(params) ? params['requestId'] : undefined
  if (typeof request === 'string' || typeof request === 'number') open.cancel({ session, client, request })
}

/** Without its body, which is read already; aborts when the connection is lost before the answer is sent. */
function toWebRequest(request: FastifyRequest, reply: FastifyReply): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    for (const one of [value ?? []].flat()) if (!name.startsWith(':')) headers.append(name, one)
  const lost = new AbortController()
  reply.raw.on('close', () => {
    if (!reply.raw.writableFinished) lost.abort()
  })
  return new Request(new URL(request.url, 'http://localhost'), {
    method: request.method,
    headers,
    signal: lost.signal,
  })
}
