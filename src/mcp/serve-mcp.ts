import { createMcpHandler } from '@modelcontextprotocol/server'
import { isJsonObject, type JsonObject } from '../kernel/json.ts'
import type { OfferedTools } from './offered-tools.ts'
import { openMcpServer, type McpServerOptions } from './open-mcp-server.ts'

export type McpExchange = {
  readonly request: Request
  readonly body: JsonObject | undefined
  readonly tools: OfferedTools
} & Omit<McpServerOptions, 'endsWithConnection' | 'sentArguments'>

/**
 * Answers one request, with nothing kept for the next: both generations of the protocol allow that. For the one since
 * 2026-07-28 a lost connection is how a client cancels; for those before it is not, and they send a message.
 */
export function serveMcp({ request, body, tools, ...options }: McpExchange): Promise<Response> {
  const handler = createMcpHandler(
    ({ era }) =>
      openMcpServer(tools, {
        ...options,
        sentArguments: () => argumentsIn(body),
        endsWithConnection: era === 'modern',
      }),
    // Nothing changes that one could subscribe to. A call may be silent for long: its stream is kept alive.
    { maxSubscriptions: 0, responseMode: body?.['method'] === 'tools/call' ? 'sse' : 'auto' },
  )
  return handler.fetch(request, body === undefined ? {} : { parsedBody: body })
}

function argumentsIn(body: JsonObject | undefined): JsonObject | undefined {
  const params = body?.['params']
  const given = isJsonObject(params) ? params['arguments'] : undefined
  return isJsonObject(given) ? given : undefined
}
