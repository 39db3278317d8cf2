// The published entry `@aexhq/brain/http/handler`: an application's side, wherever there are Request, Response and fetch.
export { createToolHandler } from './http/tool-handler.ts'
export type { ToolHandlerOptions } from './http/tool-handler.ts'
export type { HttpToolAnswer, HttpToolCall, HttpToolDefinition } from './http/tool-call.ts'
