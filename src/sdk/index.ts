// The published entry `@aexhq/brain`: declarations of tools, the client, and what both sides say to each other, as types.
// It may use contract and kernel only, and whatever of them it carries at run time must work in a browser.
export { BrainError } from './brain-error.ts'
export { Brain, Brain as BrainClient } from './client/brain.ts'
export type { BrainOptions, ModelList, ModelProviderInfo, RequestArguments } from './client/brain.ts'
export type { CallOptions, KeyOptions, SendOptions, SessionHandle } from './client/session-handle.ts'
export type { Preparable } from './client/preparation.ts'
export type { ToolCallAnswer } from './client/tool-call-answer.ts'
export type {
  EventOrigin,
  LiveEvent,
  SessionEvent,
  SessionState,
  SessionTranscript,
  TurnOutcome,
} from './client/session-event.ts'
export type { Lifecycle, ModelOptions, SessionOptions } from './client/session-options.ts'
export type { CreateSessionRequest } from './client/session-plan.ts'
export type { Sessions } from './client/sessions.ts'
export type { Fetch } from './client/transport.ts'
export { agentloop } from './declare/agentloop.ts'
export type { AgentloopFactory, PlacedAgentloop } from './declare/agentloop.ts'
export { bindTool } from './declare/bind-tool.ts'
export type { LoadableTool, PackagedTool } from './declare/bind-tool.ts'
export { component } from './declare/component.ts'
export type { Component } from './declare/component.ts'
export { environment } from './declare/environment.ts'
export type { EnvironmentFactory, EnvironmentPlacement, TemplateDeclaration } from './declare/environment.ts'
export type { MethodDeclaration } from './declare/environment-methods.ts'
export { brainEnv, clientBrowser, hostEnv } from './declare/environments.ts'
export type {
  BrainEnv,
  BrainEnvOptions,
  Environment,
  HostEnv,
  HostEnvOptions,
  HttpEnv,
} from './declare/environments.ts'
export type { Executable, Implementation } from './declare/implementation.ts'
export { inspectAgentloop, inspectComponent, inspectEnvironment, inspectTool } from './declare/inspect.ts'
export type { ToolLoader } from './declare/lazy-executable.ts'
export type { OptionsOf, OptionsSchema, PlacementArguments, PlacementOf } from './declare/placement.ts'
export { tool } from './declare/tool.ts'
export type {
  FunctionDeclaration,
  HostExecutable,
  ImplementationDeclaration,
  PlacedTool,
  ToolFactory,
  ToolTypes,
  TypesOf,
} from './declare/tool.ts'
export { toolMetadata } from './declare/tool-metadata.ts'
export { environmentHandler } from './environment/environment-handler.ts'
export type {
  EnvironmentContract,
  EnvironmentHandler,
  ExecuteContext,
  ExecuteRequest,
  MethodHandlers,
  OperationContext,
  SetupAnswer,
} from './environment/environment-contract.ts'
export type { EventPage, ToolReturn } from './agentloop/agentloop-context.ts'
export type { WireEvent as JournalEvent } from './client/session-event.ts'
export type { ExecutionServices, KeyValues, ToolInvocation } from './environment/execution-services.ts'
export { environmentReporter } from './environment/observations.ts'
export type { Observer, Reporter } from './environment/observations.ts'
export type { EnvironmentServices } from './host/environment-services.ts'
export type { HostCredentials } from './host/host-connection.ts'
export type { AnyToolFunction, Presentation, ToolContext, ToolFunction, ToolValue } from './host/tool-context.ts'
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
export type {
  EnvironmentEvent,
  EnvironmentMethod,
  EnvironmentMethods,
  EnvironmentRef,
  EnvironmentTemplate,
  EnvironmentView,
  Observation,
} from '../contract/environment.ts'
export type {
  Callback,
  EnvironmentCommand,
  EnvironmentReceipt,
  EnvironmentRequest,
  EnvironmentResponse,
} from '../contract/environment-protocol.ts'
export type { HostActivity, HostCommand, HostFrame, HostRegistration, HostUpdate } from '../contract/host-protocol.ts'
export type { Outcome, ToolError, ToolOutput, ToolResult } from '../contract/outcome.ts'
export type {
  BrainEnvConfiguration,
  BrainEnvironment,
  BuiltinLoopImplementation,
  ComponentImplementation,
  ComponentLoopImplementation,
  EnvironmentGrant,
  HostEnvironment,
  HttpEnvironment,
  Placement,
  RemoteLoopImplementation,
  SessionAgentloop,
  SessionConfiguration,
  SessionEnvironment,
  SessionModel,
  SessionStatus,
  SessionSummary,
  SessionTool,
  ToolMetadata,
  ToolServiceEnvironment,
} from '../contract/session-request.ts'
