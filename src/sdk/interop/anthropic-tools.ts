import type { Json } from '../../kernel/json.ts'
import type { PlacedTool } from '../declare/tool.ts'
import { membersOf } from '../strict-members.ts'
import { membersRefusedByAnthropic } from '../../contract/provider-schema/anthropic-members.ts'
import { portableSchema } from '../../contract/provider-schema/portable-schema.ts'
import { remarkText, type SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import { checkTools, ToolCaller, type CallTerms, type RunOptions, type ToolSession } from './tool-caller.ts'

/** A member of `tools` of `POST /messages`. */
export type AnthropicTool = {
  name: string
  description: string
  input_schema: { type: 'object'; [keyword: string]: unknown }
}

/** What is read of a block of type `tool_use`. */
export type AnthropicToolUse = { readonly id: string; readonly name: string; readonly input: unknown }

/** The block that answers one use; those of one answer belong into one message of the user, before any text. */
export type AnthropicToolResult = {
  type: 'tool_result'
  tool_use_id: string
  content: string
  is_error: boolean
}

/** Tools of a session in the form of Anthropic's Messages. */
export type AnthropicTools = {
  /** For `tools` of the request. */
  readonly tools: AnthropicTool[]
  /** What was changed for the provider; empty when the schemas say all that Brain holds inputs to. */
  readonly remarks: readonly SchemaRemark[]
  /**
   * Makes one call of the model. What the model did wrong, and how the tool failed, is in the block, with `is_error`.
   *
   * @throws BrainError when the server does not take the call, and the reason of the signal
   */
  readonly run: (use: AnthropicToolUse, options?: RunOptions) => Promise<AnthropicToolResult>
}

/**
 * Offers tools of a session to a model of Anthropic's Messages.
 *
 * @param tools placed tools that the session has
 * @throws TypeError for two tools of one name, for an option that is not known, and for members whose names Anthropic
 * refuses: 1 to 64 of the characters A-Z a-z 0-9 _ . -
 */
export function anthropicTools(
  session: ToolSession,
  tools: readonly PlacedTool[],
  options: CallTerms = {},
): AnthropicTools {
  membersOf(options, ['deadlineMs', 'wait'], 'Cannot offer tools')
  checkTools(tools)
  const offered = tools.map(anthropicTool)
  const remarks = offered.flatMap((one) => one.remarks)
  const refused = remarks.find(({ effect }) => effect === 'refused')
  if (refused !== undefined) throw new TypeError(`Cannot offer tools to Anthropic: ${remarkText(refused)}`)
  const own = tools.map((placed) => ({ placed, toOwnInput: (input: Json) => input }))
  const caller = new ToolCaller(session, own, options)
  return {
    tools: offered.map(({ tool }) => tool),
    remarks,
    run: async ({ id, name, input }, run) => {
      // Their own client has parsed it; text is an input that no tool accepts, and not the JSON of one.
      const given = typeof input === 'string' ? [input] : (input as Json)
      const { text, isError } = await caller.run(name, given, run)
      return { type: 'tool_result', tool_use_id: id, content: text, is_error: isError }
    },
  }
}

/** One tool, and what is to be said about it. */
export function anthropicTool({ name, definition }: PlacedTool): { tool: AnthropicTool; remarks: SchemaRemark[] } {
  const { schema, remarks } = portableSchema(definition.input_schema)
  const all = [...remarks, ...membersRefusedByAnthropic(schema)].map((remark) => ({ tool: name, ...remark }))
  return {
    tool: { name, description: definition.description, input_schema: { ...schema, type: 'object' } },
    remarks: all,
  }
}
