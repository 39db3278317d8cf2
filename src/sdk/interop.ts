// The published entry `@aexhq/brain/interop`: tools of a session for clients of OpenAI, Anthropic and the AI SDK, of which it
// needs none.
export { aiSdkTools } from './interop/ai-sdk-tools.ts'
export type { AiSdkOutput, AiSdkTool } from './interop/ai-sdk-tools.ts'
export { anthropicTools } from './interop/anthropic-tools.ts'
export type { AnthropicTool, AnthropicToolResult, AnthropicTools, AnthropicToolUse } from './interop/anthropic-tools.ts'
export type { CallReport } from './interop/call-report.ts'
export { lintTools } from './interop/lint-tools.ts'
export type { LintedProvider, ToolRemark } from './interop/lint-tools.ts'
export { openaiChatTools } from './interop/openai-chat-tools.ts'
export type { OpenAiChatCall, OpenAiChatMessage, OpenAiChatTool, OpenAiChatTools } from './interop/openai-chat-tools.ts'
export type { OpenAiOptions } from './interop/openai-offer.ts'
export { openaiResponsesTools } from './interop/openai-responses-tools.ts'
export type {
  OpenAiResponsesCall,
  OpenAiResponsesOutput,
  OpenAiResponsesTool,
  OpenAiResponsesTools,
} from './interop/openai-responses-tools.ts'
export type { SchemaRemark } from '../contract/provider-schema/schema-remark.ts'
export type { CallTerms, RunOptions, ToolSession } from './interop/tool-caller.ts'
