import type { PlacedTool } from '../declare/tool.ts'
import { membersOf } from '../strict-members.ts'
import { openAiTools, type OpenAiTool } from './openai-tool.ts'
import type { SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import { checkTools, ToolCaller, type CallTerms, type ToolSession } from './tool-caller.ts'

/** How OpenAI is told of tools. */
export type OpenAiOptions = CallTerms & {
  /**
   * Whether the model is held to the schemas: every tool whose schema can be said in OpenAI's subset is sent with
   * `strict: true`, the others without, with a remark. False when absent.
   */
  readonly strict?: boolean
}

/** What both of OpenAI's APIs are told, each in its own form. */
export type OpenAiOffer = {
  readonly offered: readonly OpenAiTool[]
  readonly remarks: readonly SchemaRemark[]
  readonly caller: ToolCaller
}

/** @throws TypeError for two tools of one name, more than 128 tools, or an option that is not known */
export function offerToOpenAi(session: ToolSession, tools: readonly PlacedTool[], options: OpenAiOptions): OpenAiOffer {
  membersOf(options, ['strict', 'deadlineMs', 'wait'], 'Cannot offer tools')
  checkTools(tools)
  const offered = openAiTools(tools, options.strict === true)
  const remarks = offered.flatMap((tool) => tool.remarks)
  return { offered, remarks, caller: new ToolCaller(session, offered, options) }
}
