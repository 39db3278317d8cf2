import type { PlacedTool } from '../declare/tool.ts'
import { anthropicTool } from './anthropic-tools.ts'
import { openAiTools } from './openai-tool.ts'
import type { SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import { checkTools } from './tool-caller.ts'

/** Whose rules a remark is about. */
export type LintedProvider = 'openai' | 'openai_strict' | 'anthropic'

/** What a provider will not take, or not exactly. */
export type ToolRemark = SchemaRemark & { readonly provider: LintedProvider }

/**
 * What each provider makes of tools, before any of them is asked: for a test of the application.
 *
 * @returns nothing for tools that all of them take as they are
 * @throws TypeError for two tools of one name
 */
export function lintTools(tools: readonly PlacedTool[]): ToolRemark[] {
  checkTools(tools)
  const byProvider: readonly (readonly [LintedProvider, readonly SchemaRemark[]])[] = [
    ['openai', openAiTools(tools, false).flatMap(({ remarks }) => remarks)],
    ['openai_strict', openAiTools(tools, true).flatMap(({ remarks }) => remarks)],
    ['anthropic', tools.flatMap((tool) => anthropicTool(tool).remarks)],
  ]
  return byProvider.flatMap(([provider, remarks]) => remarks.map((remark) => ({ provider, ...remark })))
}
