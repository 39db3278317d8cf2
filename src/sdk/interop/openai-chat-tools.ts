import type { PlacedTool } from '../declare/tool.ts'
import { offerToOpenAi, type OpenAiOptions } from './openai-offer.ts'
import type { SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import type { RunOptions, ToolSession } from './tool-caller.ts'

/** A member of `tools` of `POST /chat/completions`. */
export type OpenAiChatTool = {
  type: 'function'
  function: { name: string; description: string; parameters: Record<string, unknown>; strict: boolean }
}

/** What is read of a member of `tool_calls`. */
export type OpenAiChatCall = {
  readonly id: string
  readonly type: string
  readonly function?: { readonly name: string; readonly arguments: string }
}

/** The message that answers one call. */
export type OpenAiChatMessage = { role: 'tool'; tool_call_id: string; content: string }

/** Tools of a session in the form of OpenAI's Chat Completions. */
export type OpenAiChatTools = {
  /** For `tools` of the request. */
  readonly tools: OpenAiChatTool[]
  /** What was changed for the provider; empty when the schemas say all that Brain holds inputs to. */
  readonly remarks: readonly SchemaRemark[]
  /**
   * Makes one call of the model. What the model did wrong, and how the tool failed, is in the message.
   *
   * @throws BrainError when the server does not take the call, and the reason of the signal
   */
  readonly run: (call: OpenAiChatCall, options?: RunOptions) => Promise<OpenAiChatMessage>
}

/**
 * Offers tools of a session to a model of OpenAI's Chat Completions, and of the many servers that speak like it.
 *
 * @param tools placed tools that the session has
 * @throws TypeError for two tools of one name, more than 128 tools, or an option that is not known
 */
export function openaiChatTools(
  session: ToolSession,
  tools: readonly PlacedTool[],
  options: OpenAiOptions = {},
): OpenAiChatTools {
  const { offered, remarks, caller } = offerToOpenAi(session, tools, options)
  return {
    tools: offered.map(({ placed: { name, definition }, parameters, strict }) => ({
      type: 'function',
      function: { name, description: definition.description, parameters, strict },
    })),
    remarks,
    run: async ({ id, function: asked }, run) => {
      const { text } = await caller.run(asked?.name ?? '', asked?.arguments ?? '', run)
      return { role: 'tool', tool_call_id: id, content: text }
    },
  }
}
