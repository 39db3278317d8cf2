// The published entry `@aexhq/brain`: what a client and a server say to each other, as types. It may use contract and
// kernel only, and whatever of them it carries at run time must work in a browser.
export type { Json, JsonObject } from '../kernel/json.ts'
export type {
  Block,
  Media,
  Message,
  ModelRequest,
  ModelResult,
  NativeBlock,
  StopReason,
  TextBlock,
  ToolDefinition,
  ToolResultBlock,
  ToolUseBlock,
  Usage,
  UserInput,
} from '../contract/message.ts'
export type { HostActivity, HostCommand, HostFrame, HostRegistration, HostUpdate } from '../contract/host-protocol.ts'
export type { Outcome, ToolError, ToolOutput, ToolResult } from '../contract/outcome.ts'
export type {
  BrainEnvConfiguration,
  BrainEnvironment,
  ComponentImplementation,
  EnvironmentGrant,
  HostEnvironment,
  Placement,
  SessionAgentloop,
  SessionConfiguration,
  SessionEnvironment,
  SessionModel,
  SessionStatus,
  SessionSummary,
  SessionTool,
  ToolMetadata,
} from '../contract/session-request.ts'
