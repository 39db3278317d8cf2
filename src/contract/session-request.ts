import type { Json, JsonObject } from '../kernel/json.ts'
import type { EnvironmentMethods, EnvironmentTemplate } from './environment.ts'
import type { Message, ToolDefinition } from './message.ts'

/** What a binding may do with an environment (contract 2.1). */
export type EnvironmentGrant = {
  readonly environment: string
  readonly permissions: readonly ('read' | 'create' | 'setup' | 'update' | 'delete' | 'call')[]
  readonly methods?: readonly string[]
}

/** What runs a tool in one environment, in the words of that environment's driver. */
export type Placement = { readonly implementation: Json }

/** A tool of a session, with where it runs: placements by the names of environments. */
export type SessionTool = ToolDefinition & {
  readonly placements: Readonly<Record<string, Placement>>
  readonly environments?: readonly EnvironmentGrant[]
}

/** Access of a brainEnv binding; each entry must be within the operator's allow list (contract 6.1). */
export type BrainEnvConfiguration = {
  readonly secrets?: readonly string[]
  readonly network?: readonly string[]
  readonly filesystem?: { readonly workspace?: 'read' | 'write'; readonly scratch?: 'read' | 'write' }
}

type EnvironmentOf<Driver extends string, Configuration> = {
  readonly name: string
  readonly driver: Driver
  readonly configuration: Configuration
  readonly lifecycle: 'automatic' | 'manual'
  /** Of whatever acts there: of the tools of a brain or host environment, of the controller of one elsewhere. */
  readonly environments?: readonly EnvironmentGrant[]
}

/** The server itself runs what is placed here (contract 6). */
export type BrainEnvironment = EnvironmentOf<'brain', BrainEnvConfiguration>

/** A connected application runs what is placed here (contract 4). */
export type HostEnvironment = EnvironmentOf<'host', Json> & { readonly host_id: string }

/** Something elsewhere that speaks `environment/v1` runs what is placed here (contract 5). Its credential is kept apart. */
export type HttpEnvironment = EnvironmentOf<'http', Json> & {
  readonly url: string
  readonly methods?: EnvironmentMethods
  readonly template?: EnvironmentTemplate
}

/** Where distributed tools are: the operator's, and not a session's to declare (contract A4). */
export type ToolServiceEnvironment = EnvironmentOf<'tool_service', null>

/** One environment of a session. */
export type SessionEnvironment = BrainEnvironment | HostEnvironment | HttpEnvironment | ToolServiceEnvironment

/** The loop that is part of the server (contract A2). */
export type BuiltinLoopImplementation = { readonly type: 'builtin'; readonly name: 'default' }

/** A component that was admitted as an agentloop (contract 2.2). */
export type ComponentLoopImplementation = {
  readonly type: 'brain_component'
  readonly entrypoint: 'turn'
  readonly id: string
}

/** What an environment elsewhere understands as an agentloop; nobody else looks into it (contract 2.2). */
export type RemoteLoopImplementation = JsonObject

/** What conducts the turns of a session. */
export type SessionAgentloop = {
  readonly implementation: BuiltinLoopImplementation | ComponentLoopImplementation | RemoteLoopImplementation
  readonly configuration: Json
  /** Of all but the server's own: where it runs. */
  readonly environment?: string
  readonly environments?: readonly EnvironmentGrant[]
}

/** Which model a session uses; the key is kept sealed and apart (contract 2.1, design 3). */
export type SessionModel = {
  readonly provider: string
  readonly name: string
  /** What the provider `scripted` says (contract A23). */
  readonly script?: Json
}

/** A session's configuration as the journal keeps it: the create request without credentials, defaults filled in. */
export type SessionConfiguration = {
  readonly agentloop: SessionAgentloop
  readonly model: SessionModel
  readonly system: string
  readonly response_format?: JsonObject
  readonly tools: readonly SessionTool[]
  readonly environments: readonly SessionEnvironment[]
  /** Which distributed tools the session has (contract A4). */
  readonly config?: { readonly tools: readonly string[] }
  /** Those tools as they were when the session was made. */
  readonly catalog?: readonly ToolDefinition[]
  readonly transcript?: readonly Message[]
  readonly idle_ttl_ms?: number
  readonly labels?: Readonly<Record<string, string>>
}

/** In the order in which a session goes through them. */
export const SESSION_STATUSES = ['creating', 'idle', 'running', 'ending', 'ended', 'failed'] as const

/** Where a session is: `idle` takes work, `running` has a turn, `ended` and `failed` are for good. */
export type SessionStatus = (typeof SESSION_STATUSES)[number]

/** What every session route answers (contract 1.3). */
export type SessionSummary = {
  readonly session_id: string
  readonly status: SessionStatus
  readonly last_sequence: number
}

/** A Component tool in a brainEnv (contract 2.2). */
export type ComponentImplementation = {
  readonly type: 'brain_component'
  readonly entrypoint: 'run'
  readonly id: string
  readonly configuration: Json
}

/** What an author may put into a component's `brain:tool-metadata` section (contract A7). */
export type ToolMetadata = {
  readonly name: string
  readonly description: string
  readonly input_schema: JsonObject
  readonly output_schema?: JsonObject
  readonly options_schema?: JsonObject
}
