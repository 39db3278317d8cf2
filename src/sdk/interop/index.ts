// The published entry `@aexhq/brain/interop`: tools of a session for clients of OpenAI, Anthropic and the AI SDK, of which it
// needs none.
export { aiSdkTools } from './ai-sdk-tools.ts'
export type { AiSdkOutput, AiSdkTool } from './ai-sdk-tools.ts'
export { anthropicTools } from './anthropic-tools.ts'
export type { AnthropicTool, AnthropicToolResult, AnthropicTools, AnthropicToolUse } from './anthropic-tools.ts'
export type { CallReport } from './call-report.ts'
export { lintTools } from './lint-tools.ts'
export type { LintedProvider, ToolRemark } from './lint-tools.ts'
export { openaiChatTools } from './openai-chat-tools.ts'
export type {
  OpenAiChatCall,
  OpenAiChatMessage,
  OpenAiChatTool,
  OpenAiChatTools,
  OpenAiOptions,
} from './openai-chat-tools.ts'
export { openaiResponsesTools } from './openai-responses-tools.ts'
export type {
  OpenAiResponsesCall,
  OpenAiResponsesOutput,
  OpenAiResponsesTool,
  OpenAiResponsesTools,
} from './openai-responses-tools.ts'
export type { SchemaRemark } from './schema/schema-remark.ts'
export type { CallTerms, RunOptions, ToolSession } from './tool-caller.ts'
