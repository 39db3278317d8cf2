import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { BrainError } from '../kernel/errors.ts'
import type { Limits } from '../contract/limits.ts'
import type { ModelCatalogue } from '../contract/model-catalogue.ts'
import type { ApplicationHosts } from '../session/application-hosts.ts'
import type { Catalog } from '../session/catalog.ts'
import type { ComponentRegistry } from '../session/component-registry.ts'
import type { DirectCalls } from '../session/direct-calls.ts'
import type { EnvironmentService } from '../session/environment-service.ts'
import type { EventFeed } from '../session/event-feed.ts'
import type { Inspections } from '../session/inspections.ts'
import type { Requests } from '../session/requests.ts'
import type { SessionService } from '../session/session-service.ts'
import type { ToolActivity } from '../session/tool-activity.ts'
import type { WorkspaceService } from '../session/workspace-service.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Access } from './access.ts'
import { discardRest, registerBodies } from './bodies.ts'
import type { OpenStreams } from './open-streams.ts'
import { refuseQuery } from './parse.ts'
import { toProblem, type Problem } from './problem.ts'
import { callRoutes } from './routes/calls.ts'
import { componentRoutes } from './routes/components.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { checkOwnToken, environmentRoutes } from './routes/environments.ts'
import { eventRoutes, viewerOf } from './routes/events.ts'
import { fileRoutes } from './routes/files.ts'
import { hostRoutes, openHost } from './routes/hosts.ts'
import { healthRoutes } from './routes/health.ts'
import { limitRoutes } from './routes/limits.ts'
import { mcpRoutes } from './routes/mcp.ts'
import { modelRoutes } from './routes/models.ts'
import { preparationRoutes } from './routes/preparation.ts'
import { sessionRoutes } from './routes/sessions.ts'

/** How the server is, for those who watch it. */
export interface Health {
  isReady(): boolean
  /** Level, journal, supervisor and boxes; for `/health/ready?verbose`. */
  describe(): Promise<object>
}

export type ServerParts = {
  readonly access: Access
  readonly limits: Limits
  readonly health: Health
  readonly requests: Requests
  readonly sessions: SessionService
  readonly calls: DirectCalls
  readonly environments: EnvironmentService
  readonly events: EventFeed
  readonly activity: ToolActivity
  readonly tools: ComponentRegistry
  readonly agentloops: ComponentRegistry
  readonly files: WorkspaceService
  readonly hosts: ApplicationHosts
  readonly models: ModelCatalogue
  readonly catalog: Catalog
  readonly inspections: Inspections
  readonly streams: OpenStreams
  /** Said in every admission answer while components run without a sandbox level (design 5). */
  readonly warning: string | undefined
  readonly logger: Logger
}

const MAX_URL_PART = 8192
/** How long a request may take to arrive: a workspace file of 1 GiB at 10 Mbit/s. */
const REQUEST_MS = 900_000

/** How long answers that are being sent may take when the server stops. */
const LAST_ANSWERS_MS = 2000

/** Stops listening, lets answers that are being sent arrive, and then closes what is left. */
export async function closeServer(app: FastifyInstance): Promise<void> {
  const late = setTimeout(() => app.server.closeAllConnections(), LAST_ANSWERS_MS)
  await app.close().finally(() => clearTimeout(late))
}

/** The HTTP API (contract 1). Listening is the caller's. */
export function buildServer(parts: ServerParts): FastifyInstance {
  const app = Fastify({
    bodyLimit: Number.MAX_SAFE_INTEGER, // our own parsers count, with limits per route
    forceCloseConnections: 'idle',
    return503OnClosing: false, // what still comes is refused in our own form
    requestTimeout: REQUEST_MS,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_URL_PART, querystringParser: parseQuery },
    frameworkErrors: refuseUnreadable,
    clientErrorHandler: answerBadHttp,
  })
  registerBodies(app, parts.limits)
  app.addHook('onRequest', async (request, reply) => {
    parts.access.checkSource(request, reply)
    if (request.method === 'OPTIONS') return reply.code(204).send()
    // Before a byte of the body is read: strangers must not make the server hold it.
    if (request.routeOptions.config.hostToken === true) openHost(parts, request)
    else if (request.routeOptions.config.ownToken === true) checkOwnToken(parts, request)
    else if (request.routeOptions.config.inspectable === true) viewerOf(parts, request)
    else if (!request.url.startsWith('/health/')) parts.access.tenantOf(request)
    if (!request.is404 && request.routeOptions.config.takesQuery !== true) refuseQuery(request)
    return undefined
  })
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error)
    if (problem.status >= 500 && !(error instanceof BrainError))
      parts.logger.error(
        { method: request.method, url: request.url, error: error instanceof Error ? error.stack : error },
        'a request failed',
      )
    reply.code(problem.status)
    return request.raw.complete ? reply.send(problem.body) : answerEarly(request, reply, problem.body)
  })
  app.setNotFoundHandler((request, reply) => {
    const problem = toProblem(
      new BrainError('not_found', `Cannot find route ${request.method} ${request.url.split('?')[0]?.slice(0, 200)}`),
    )
    return reply.code(problem.status).send(problem.body)
  })
  for (const routes of [
    healthRoutes,
    limitRoutes,
    modelRoutes,
    catalogRoutes,
    componentRoutes,
    preparationRoutes,
    sessionRoutes,
    callRoutes,
    eventRoutes,
    fileRoutes,
    hostRoutes,
    environmentRoutes,
    mcpRoutes,
  ])
    routes(app, parts)
  return app
}

/** The answer is sent at once and whole; the connection, which cannot be used again, ends when the client has stopped sending. */
function answerEarly(request: FastifyRequest, reply: FastifyReply, body: Problem['body']): FastifyReply {
  const text = JSON.stringify(body)
  async function* answer(): AsyncGenerator<string> {
    yield text
    await discardRest(request.raw)
  }
  return reply
    .headers({
      connection: 'close',
      'content-length': Buffer.byteLength(text),
      'content-type': 'application/json; charset=utf-8',
    })
    .send(Readable.from(answer(), { objectMode: false }))
}

/** Bytes that are no HTTP get an answer of the ordinary form, where there is still somebody to read it. */
function answerBadHttp(error: Error & { readonly code?: string }, socket: Socket): void {
  if (socket.destroyed || !socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const reason = isTooLarge ? 'its headers take more than 16 KiB' : `it is not HTTP/1.1: ${error.message}`
  const { body } = toProblem(new BrainError('invalid_request', `Cannot read the request: ${reason}`))
  const text = JSON.stringify(body)
  const status = isTooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}`
  socket.end(`${head}\r\n\r\n${text}`)
}

/** What the framework itself cannot read, such as a path that is not percent-encoded UTF-8. */
function refuseUnreadable(error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  const problem = toProblem(new BrainError('invalid_request', `Cannot read the request: ${error.message}`))
  void reply.code(problem.status).send(problem.body)
}

/** Every value of a repeated field is kept, so that schemas can refuse it. */
function parseQuery(text: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>
  const parameters = new URLSearchParams(text)
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name)
    query[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return { ...query }
}
