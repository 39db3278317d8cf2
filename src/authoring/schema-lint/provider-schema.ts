import type { JsonObject } from '../../kernel/json.ts'
import { portableSchema } from '../../contract/provider-schema/portable-schema.ts'
import type { ToolMetadata } from '../../contract/session-request.ts'

export const PROVIDERS = ['openai', 'anthropic', 'mcp'] as const
export type Provider = (typeof PROVIDERS)[number]

/**
 * A tool as a provider's request has it, in words that the provider takes: a member of `tools` of OpenAI's Chat Completions
 * or of Anthropic's Messages, or an entry of MCP's `tools/list`. It accepts every input that the tool accepts; where it
 * accepts more, `lint` says so.
 */
export function providerSchema(tool: ToolMetadata, provider: Provider): JsonObject {
  const { name, description, input_schema: input, output_schema: output } = tool
  switch (provider) {
    case 'openai': {
      const { schema: parameters } = portableSchema(input)
      return { type: 'function', function: { name, description, parameters, strict: false } }
    }
    case 'anthropic':
      return { name, description, input_schema: portableSchema(input).schema }
    case 'mcp':
      return {
        name,
        description,
        inputSchema: { ...input, type: 'object' },
        // A schema that says nothing promises nothing.
        ...(output === undefined || Object.keys(output).length === 0 ? {} : { outputSchema: output }),
      }
    default:
      return provider satisfies never
  }
}
