import { createMcpHandler } from '@modelcontextprotocol/server'
import type { JsonObject } from '../kernel/json.ts'
import type { OfferedTools } from './offered-tools.ts'
import { openMcpServer, type McpServerOptions } from './open-mcp-server.ts'

export type McpExchange = {
  readonly request: Request
  readonly body: JsonObject | undefined
  readonly tools: OfferedTools
} & Omit<McpServerOptions, 'endsWithConnection'>

/**
 * Answers one request, with nothing kept for the next: both generations of the protocol allow that. For the one since
 * 2026-07-28 a lost connection is how a client cancels; for those before it is not, and they send a message.
 */
export function serveMcp({ request, body, tools, ...options }: McpExchange): Promise<Response> {
  const handler = createMcpHandler(
    ({ era }) => openMcpServer(tools, { ...options, endsWithConnection: era === 'modern' }),
    // Nothing changes that one could subscribe to. A call may be silent for long: its stream is kept alive.
    { maxSubscriptions: 0, responseMode: body?.['method'] === 'tools/call' ? 'sse' : 'auto' },
  )
  return handler.fetch(request, body === undefined ? {} : { parsedBody: body })
}
