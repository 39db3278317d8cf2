import type { PlacedTool } from '../declare/tool.ts'
import { offerToOpenAi, type OpenAiOptions } from './openai-offer.ts'
import type { SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import type { RunOptions, ToolSession } from './tool-caller.ts'

/** A member of `tools` of `POST /responses`. */
export type OpenAiResponsesTool = {
  type: 'function'
  name: string
  description: string
  parameters: Record<string, unknown>
  strict: boolean
}

/** What is read of an item of type `function_call`. */
export type OpenAiResponsesCall = { readonly call_id: string; readonly name: string; readonly arguments: string }

/** The item that answers one call. */
export type OpenAiResponsesOutput = { type: 'function_call_output'; call_id: string; output: string }

/** Tools of a session in the form of OpenAI's Responses. */
export type OpenAiResponsesTools = {
  /** For `tools` of the request. */
  readonly tools: OpenAiResponsesTool[]
  /** What was changed for the provider; empty when the schemas say all that Brain holds inputs to. */
  readonly remarks: readonly SchemaRemark[]
  /**
   * Makes one call of the model. What the model did wrong, and how the tool failed, is in the output.
   *
   * @throws BrainError when the server does not take the call, and the reason of the signal
   */
  readonly run: (call: OpenAiResponsesCall, options?: RunOptions) => Promise<OpenAiResponsesOutput>
}

/**
 * Offers tools of a session to a model of OpenAI's Responses.
 *
 * @param tools placed tools that the session has
 * @throws TypeError for two tools of one name, more than 128 tools, or an option that is not known
 */
export function openaiResponsesTools(
  session: ToolSession,
  tools: readonly PlacedTool[],
  options: OpenAiOptions = {},
): OpenAiResponsesTools {
  const { offered, remarks, caller } = offerToOpenAi(session, tools, options)
  return {
    tools: offered.map(({ placed: { name, definition }, parameters, strict }) => ({
      type: 'function',
      name,
      description: definition.description,
      parameters,
      strict,
    })),
    remarks,
    run: async ({ call_id, name, arguments: given }, run) => {
      const { text } = await caller.run(name, given, run)
      return { type: 'function_call_output', call_id, output: text }
    },
  }
}
