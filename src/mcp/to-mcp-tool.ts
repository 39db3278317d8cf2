import type { Tool } from '@modelcontextprotocol/server'
import type { JsonObject } from '../kernel/json.ts'
import type { ActivationTool } from '../turn/agentloop.ts'

/** Where a tool can be called, in the `_meta` of its entry and of a call: one of them must be named where it has several. */
export const ENVIRONMENTS_META = 'brain/environments'
export const ENVIRONMENT_META = 'brain/environment'

/** In the `_meta` of a call: the trace that it belongs to, under the name that the protocol reserves (SEP-414). */
export const TRACE_META = 'traceparent'

/** A tool as `tools/list` shows it; undefined when its input cannot be an object, which all arguments of MCP are. */
export function toMcpTool(tool: ActivationTool): Tool | undefined {
  const inputSchema = objectSchema(tool.input_schema)
  if (inputSchema === undefined) return undefined
  const outputSchema = shownOutputSchema(tool)
  return {
    name: tool.name,
    description: tool.description,
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(tool.environments.length < 2 ? {} : { _meta: { [ENVIRONMENTS_META]: tool.environments } }),
  }
}

/** A schema that says nothing promises nothing, and is not shown. */
export const shownOutputSchema = ({ output_schema: schema }: ActivationTool): JsonObject | undefined =>
  schema === undefined || Object.keys(schema).length === 0 ? undefined : schema

/** Arguments are objects whatever a schema allows besides, so saying so narrows nothing. */
function objectSchema(schema: JsonObject): Tool['inputSchema'] | undefined {
  const { type } = schema
  const allowsObjects = type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'))
  return allowsObjects ? { ...schema, type: 'object' } : undefined
}
