import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import type { JsonObject } from '../kernel/json.ts'

/** What a client asks of a tool, and how it stays in touch with the call. */
export type McpCall = {
  readonly name: string
  readonly arguments: JsonObject
  /** Where a tool runs that is placed in several environments. */
  readonly environment?: string
  /** The W3C trace that the client says the call belongs to. */
  readonly traceparent?: string
  /** Ends the call, as cancelled. */
  readonly signal: AbortSignal
  /** Told what the tool shows while it works, one line of text each; absent when the client did not ask for it. */
  readonly onProgress?: (message: string) => void
}

/** The tools that one MCP server offers, wherever they are. What they throw is a `BrainError` or a defect. */
export interface OfferedTools {
  list(): Promise<readonly Tool[]>
  /** @returns what came of it, and the output schema that the list shows of the tool, if any */
  call(call: McpCall): Promise<{ readonly result: CallToolResult; readonly outputSchema?: JsonObject }>
}
