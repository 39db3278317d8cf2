import type { JsonObject } from '../kernel/json.ts'
import type { SessionConfiguration, SessionTool, ToolServiceEnvironment } from './session-request.ts'
import type { ToolDefinition } from './message.ts'

/** A distributed tool: a service of the operator's that is called over HTTP (seed distributed-tools, contract A16). */
export type ToolService = ToolDefinition & {
  readonly input_schema: JsonObject
  readonly url: string
  /** The variable with the service's bearer token. */
  readonly token_env?: string
  /** Whose it is; absent = every tenant's. */
  readonly tenants?: readonly string[]
  /** For a whole call, 1 to 86,400. */
  readonly timeout_seconds: number
  /** Of a result: the JSON body, or the data of the `result` event. */
  readonly max_output_bytes: number
  /** Whether a call may read the events of its session while it lasts. */
  readonly inspect_session: boolean
}

/** Where distributed tools are, for whoever calls them; no session declares or lists it (contract A4). */
export const TOOL_SERVICES: ToolServiceEnvironment = {
  name: 'brain-http',
  driver: 'tool_service',
  lifecycle: 'automatic',
  configuration: null,
}

/** Every tool of a session: those that it declared, and the distributed ones that it enabled (contract A4). */
export const toolsOf = ({ tools, catalog = [] }: SessionConfiguration): readonly SessionTool[] =>
  catalog.length === 0 ? tools : [...tools, ...catalog.map(serviceTool)]

const serviceTool = (definition: ToolDefinition): SessionTool => ({
  ...definition,
  placements: { [TOOL_SERVICES.name]: { implementation: null } },
})
