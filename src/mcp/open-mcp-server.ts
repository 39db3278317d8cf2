import { readFileSync } from 'node:fs'
import {
  ProtocolError,
  ProtocolErrorCode,
  type RequestId,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { BrainError, clip } from '../kernel/errors.ts'
import type { JsonObject } from '../kernel/json.ts'
import { parseTraceparent } from '../kernel/traceparent.ts'
import type { McpCall, OfferedTools } from './offered-tools.ts'
import { ENVIRONMENT_META, TRACE_META } from './to-mcp-tool.ts'

/** Counts a call while it is open, and gives it what else may end it than a lost connection. */
export type During = <Result>(
  context: ServerContext,
  work: (cancelled: AbortSignal) => Promise<Result>,
) => Promise<Result>

export type McpServerOptions = {
  readonly during: During
  /** Whether a client that is gone has cancelled what it was waiting for. */
  readonly endsWithConnection: boolean
  /** Whether the client takes what it is sent; progress that it does not is dropped. */
  readonly takesProgress?: () => boolean
  /** The arguments of a call as they were sent: the SDK drops a member called `__proto__`. */
  readonly sentArguments: (id: RequestId) => JsonObject | undefined
  /** Told of defects, whose text no client sees. */
  readonly onDefect: (error: unknown) => void
}

/** An MCP server of tools alone, for one request or one connection. */
export function openMcpServer(offered: OfferedTools, options: McpServerOptions): Server {
  const server = new Server({ name: 'brain', version: ownVersion() }, { capabilities: { tools: {} } })
  const telling = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      throw toProtocolError(error, options.onDefect)
    })
  server.setRequestHandler('tools/list', async () => ({ tools: [...(await telling(offered.list()))] }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const environment = params._meta?.[ENVIRONMENT_META]
    const trace = parseTraceparent(params._meta?.[TRACE_META])
    const onProgress = progressOf(context, options)
    const call: Omit<McpCall, 'signal'> = {
      name: params.name,
      arguments: options.sentArguments(context.mcpReq.id) ?? {},
      ...(trace === undefined ? {} : { traceparent: trace.text }),
      ...(typeof environment === 'string' ? { environment } : {}),
      ...(onProgress === undefined ? {} : { onProgress }),
    }
    const work = options.during(context, (cancelled) => {
      const signal = options.endsWithConnection ? AbortSignal.any([cancelled, context.mcpReq.signal]) : cancelled
      return offered.call({ ...call, signal })
    })
    const { result, outputSchema } = await telling(work)
    return server.projectCallToolResult(result, outputSchema)
  })
  return server
}

/** Each line is one step, since nobody knows how many there will be. */
function progressOf(
  { mcpReq }: ServerContext,
  { takesProgress = () => true }: McpServerOptions,
): ((message: string) => void) | undefined {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  let progress = 0
  return (message) => {
    progress++
    if (mcpReq.signal.aborted || !takesProgress()) return
    // A client that is gone is told nothing; whether its call goes on is not decided here.
    void mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => undefined)
  }
}

/** What a client did wrong are wrong parameters; the code of Brain is in `data`, with whether it is worth trying again. */
function toProtocolError(error: unknown, onDefect: (error: unknown) => void): ProtocolError {
  if (error instanceof ProtocolError) return error
  if (!(error instanceof BrainError)) {
    onDefect(error)
    return new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error', { code: 'internal', retryable: false })
  }
  const { code, retryable, details } = error
  const isOfClient = code === 'invalid_request' || code === 'not_found' || code === 'unsupported'
  return new ProtocolError(
    isOfClient ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError,
    clip(error.message),
    { code, retryable, ...(details === undefined ? {} : { details }) },
  )
}

let version: string | undefined

/** As far above this file in a checkout as in the published package. */
function ownVersion(): string {
  const read = (): { readonly version: string } =>
    JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }
  version ??= read().version
  return version
}
