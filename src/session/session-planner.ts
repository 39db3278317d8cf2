import { z } from 'zod'
import { BrainError } from '../kernel/errors.ts'
import { parseComponentId, type TenantId } from '../kernel/ids.ts'
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.ts'
import { brainEnvSchema } from '../contract/brain-env-schema.ts'
import type { Message } from '../contract/message.ts'
import { TOOL_SERVICES } from '../contract/tool-service.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import type {
  BrainEnvConfiguration,
  SessionAgentloop,
  SessionConfiguration,
  SessionEnvironment,
  SessionModel,
  SessionTool,
  ToolMetadata,
} from '../contract/session-request.ts'
import type { Catalog } from './catalog.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { ModelProvider } from '../model/model-provider.ts'
import type { Components } from '../sandbox/sandbox.ts'
import type { Agentloops } from '../turn/agentloop.ts'
import type { CreateRequest, RequestedEnvironment, RequestedTool } from './create-request.ts'

export type PlannerParts = {
  readonly dispatcher: Dispatcher
  readonly components: Pick<Components, 'get'>
  readonly loops: Agentloops
  readonly schemas: SchemaChecker
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly catalog: Catalog
}

const refuse = (message: string): never => {
  throw new BrainError('invalid_request', `Cannot create the session: ${message}`)
}

/**
 * Turns a create request into the configuration of a session, having checked everything that needs no effect
 * (contract 2.4, step 1).
 *
 * @throws BrainError `invalid_request`, `unsupported`, `sandbox_unavailable`; nothing was written then.
 */
export async function planSession(
  parts: PlannerParts,
  tenant: TenantId,
  request: CreateRequest,
): Promise<SessionConfiguration> {
  const environments = request.environments.map(toEnvironment)
  refuseRepeated('environment', environments)
  refuseRepeated('tool', request.tools)
  for (const environment of environments) parts.dispatcher.binding(environment).checkEnvironment(tenant, environment)
  for (const environment of environments) await checkDeclaration(parts, environment)
  checkGrants(request, environments)
  const tools = await Promise.all(request.tools.map((tool) => planTool(parts, tenant, tool, environments)))
  const catalog = planCatalog(parts, tenant, request)
  return {
    agentloop: await planLoop(parts, tenant, request, environments),
    model: planModel(parts, request),
    system: request.system,
    ...(request.response_format === undefined ? {} : { response_format: request.response_format }),
    tools,
    environments,
    ...catalog,
    ...(request.transcript === undefined ? {} : { transcript: checkTranscript(request.transcript as Message[]) }),
    ...(request.idle_ttl_ms === undefined ? {} : { idle_ttl_ms: request.idle_ttl_ms }),
    ...(request.labels === undefined ? {} : { labels: request.labels }),
  }
}

/** Distributed tools that the session enables (contract A4). */
function planCatalog(
  { catalog }: PlannerParts,
  tenant: TenantId,
  { config, tools }: CreateRequest,
): Pick<SessionConfiguration, 'config' | 'catalog'> {
  if (config === undefined) return {}
  const seen = new Set<string>()
  const definitions = config.tools.map((name) => {
    if (seen.has(name)) refuse(`config.tools names "${name}" twice`)
    seen.add(name)
    if (tools.some((tool) => tool.name === name)) refuse(`config.tools names "${name}", which is a declared tool too`)
    const found = catalog.find(tenant, name)
    return found ?? refuse(`config.tools names "${name}", which is not in the catalog; GET /catalog lists what is`)
  })
  return { config, ...(definitions.length === 0 ? {} : { catalog: definitions }) }
}

async function planLoop(
  { loops }: PlannerParts,
  tenant: TenantId,
  { agentloop }: CreateRequest,
  environments: readonly SessionEnvironment[],
): Promise<SessionAgentloop> {
  if (agentloop === undefined) return { implementation: { type: 'builtin', name: 'default' }, configuration: null }
  const { environment: name, configuration = null, environments: grants } = agentloop
  const environment = environments.find((candidate) => candidate.name === name)
  if (name !== undefined && environment === undefined)
    refuse(`agentloop.environment names "${name}", which is no environment of this session`)
  if (environment?.lifecycle === 'manual')
    refuse(`agentloop.environment names "${environment.name}", which is not set up with the session ("manual")`)
  const asked = { implementation: agentloop.implementation, ...(environment === undefined ? {} : { environment }) }
  const implementation = await loops.check(tenant, asked)
  return {
    implementation,
    configuration,
    ...(name === undefined ? {} : { environment: name }),
    ...(grants === undefined ? {} : { environments: grants }),
  }
}

function planModel({ providers }: PlannerParts, request: CreateRequest): SessionModel {
  const { model, response_format: responseFormat, transcript } = request
  const provider = providers.get(model.provider)
  if (provider === undefined) {
    const known = [...providers.keys()].join(', ')
    const remedy =
      model.provider === 'scripted'
        ? 'it is for demos and tests, and this server was not started with BRAIN_SCRIPTED_MODEL=1'
        : `it must be one of ${known}, or stand in the file of BRAIN_PROVIDERS_FILE`
    return refuse(`model provider "${model.provider}" is not known: ${remedy}`)
  }
  if (model.script !== undefined && model.provider !== 'scripted')
    refuse('model.script is for the provider "scripted" only')
  const kept = {
    provider: model.provider,
    name: model.name,
    ...(model.script === undefined ? {} : { script: model.script }),
  }
  provider.checkModel(kept, { responseFormat, transcript: (transcript ?? []) as readonly Message[] })
  return kept
}

/** Members that only some drivers have; each must be there or not. */
const MEMBERS: Readonly<Record<RequestedEnvironment['driver'], readonly (keyof RequestedEnvironment)[]>> = {
  brain: [],
  host: ['host_id'],
  http: ['url', 'credential', 'methods', 'template'],
}
const OF_DRIVERS = [...new Set(Object.values(MEMBERS).flat())]

function toEnvironment(environment: RequestedEnvironment): SessionEnvironment {
  const { name, driver, lifecycle, configuration = null, environments, methods, template } = environment
  if (name === TOOL_SERVICES.name) refuse(`environment "${name}" has a name that stands for distributed tools`)
  const stranger = OF_DRIVERS.find((one) => environment[one] !== undefined && !MEMBERS[driver].includes(one))
  if (stranger !== undefined)
    refuse(`environment "${name}" has a member that driver "${driver}" does not take: ${stranger}`)
  const common = { name, lifecycle, ...(environments === undefined ? {} : { environments }) }
  switch (driver) {
    case 'brain': {
      const parsed = brainEnvSchema.safeParse(configuration ?? {})
      if (!parsed.success) return refuse(`environment "${name}": ${z.prettifyError(parsed.error)}`)
      return { ...common, driver, configuration: parsed.data as BrainEnvConfiguration }
    }
    case 'host': {
      const { host_id: host } = environment
      if (host === undefined) return refuse(`environment "${name}" has driver "host" and needs host_id`)
      return { ...common, driver, host_id: host, configuration }
    }
    case 'http': {
      const { url } = environment
      if (url === undefined) return refuse(`environment "${name}" has driver "http" and needs url`)
      const more = { ...(methods === undefined ? {} : { methods }), ...(template === undefined ? {} : { template }) }
      return { ...common, driver, url, configuration, ...more } as SessionEnvironment
    }
    default:
      return driver satisfies never
  }
}

/** Schemas of what an environment offers are a stranger's, as those of tools are. */
async function checkDeclaration(parts: PlannerParts, environment: SessionEnvironment): Promise<void> {
  if (environment.driver !== 'http') return
  const { name, methods = {}, template } = environment
  for (const [method, { input_schema: input, output_schema: output }] of Object.entries(methods)) {
    await checkSchema(parts, `input_schema of method "${method}" of environment "${name}"`, input)
    if (output !== undefined)
      await checkSchema(parts, `output_schema of method "${method}" of environment "${name}"`, output)
  }
  if (template !== undefined)
    await checkSchema(parts, `template.configuration_schema of environment "${name}"`, template.configuration_schema)
}

/** Grants must name what the session declares, and methods that are there (contract 2.1). */
function checkGrants(request: CreateRequest, environments: readonly SessionEnvironment[]): void {
  const { agentloop, tools } = request
  const holders = [
    ...(agentloop === undefined ? [] : [{ name: 'agentloop', environments: agentloop.environments }]),
    ...tools,
    ...request.environments,
  ]
  for (const { name, environments: grants = [] } of holders) {
    for (const grant of grants) {
      const whose = `a grant of "${name}" names "${grant.environment}"`
      const declared = environments.find((candidate) => candidate.name === grant.environment)
      if (declared === undefined) return refuse(`${whose}, which is no environment of this session`)
      const { methods = {}, template } = declared.driver === 'http' ? declared : {}
      const unknown = grant.methods?.find((method) => !Object.hasOwn(methods, method))
      if (unknown !== undefined) refuse(`${whose}, which has no method "${unknown}"`)
      if (grant.permissions.includes('create') && template === undefined)
        refuse(`${whose} with "create", and that is no template`)
    }
  }
}

function refuseRepeated(what: string, all: readonly { readonly name: string }[]): void {
  const seen = new Set<string>()
  for (const { name } of all) {
    if (seen.has(name)) refuse(`two ${what}s are called "${name}"`)
    seen.add(name)
  }
}

async function planTool(
  parts: PlannerParts,
  tenant: TenantId,
  tool: RequestedTool,
  environments: readonly SessionEnvironment[],
): Promise<SessionTool> {
  const metadata = await checkPlacements(parts, tenant, tool, environments)
  const description = tool.description ?? metadata?.description
  const inputSchema = tool.input_schema ?? metadata?.input_schema
  const outputSchema = tool.output_schema ?? metadata?.output_schema
  const needed = `give it, or build a component with a brain:tool-metadata section`
  if (description === undefined || description === '')
    return refuse(`tool "${tool.name}" has no description: ${needed}`)
  if (inputSchema === undefined) return refuse(`tool "${tool.name}" has no input_schema: ${needed}`)
  await checkSchema(parts, `input_schema of tool "${tool.name}"`, inputSchema)
  if (outputSchema !== undefined) await checkSchema(parts, `output_schema of tool "${tool.name}"`, outputSchema)
  return {
    name: tool.name,
    description,
    input_schema: inputSchema,
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    placements: tool.placements,
    ...(tool.environments === undefined ? {} : { environments: tool.environments }),
  }
}

async function checkSchema({ schemas }: PlannerParts, what: string, schema: JsonObject): Promise<void> {
  const verdict = await schemas.checkSchema(schema)
  if (!verdict.valid) refuse(`${what} is not usable: ${verdict.message}`)
}

/** @returns what the components themselves say about the tool. */
async function checkPlacements(
  parts: PlannerParts,
  tenant: TenantId,
  tool: RequestedTool,
  environments: readonly SessionEnvironment[],
): Promise<ToolMetadata | undefined> {
  let metadata: ToolMetadata | undefined
  for (const [name, { implementation }] of Object.entries(tool.placements)) {
    const environment = environments.find((candidate) => candidate.name === name)
    if (environment === undefined)
      return refuse(`tool "${tool.name}" is placed in "${name}", which is no environment of this session`)
    await parts.dispatcher.binding(environment).checkPlacement(tenant, implementation, environment)
    if (environment.driver !== 'brain') continue
    const told = await metadataOf(parts, tenant, implementation)
    if (told?.options_schema !== undefined) await checkOptions(parts, tool.name, told.options_schema, implementation)
    metadata ??= told
  }
  return metadata
}

async function metadataOf(
  { components }: PlannerParts,
  tenant: TenantId,
  implementation: Json,
): Promise<ToolMetadata | undefined> {
  if (!isJsonObject(implementation) || typeof implementation['id'] !== 'string') return undefined
  return (await components.get(tenant, parseComponentId(implementation['id'])))?.metadata
}

async function checkOptions(
  { schemas }: PlannerParts,
  tool: string,
  schema: JsonObject,
  implementation: Json,
): Promise<void> {
  const configuration = isJsonObject(implementation) ? implementation['configuration'] : undefined
  const verdict = await schemas.checkValue(schema, JSON.stringify(configuration === undefined ? {} : configuration))
  if (!verdict.valid)
    refuse(`the configuration of tool "${tool}" does not satisfy the component's options_schema: ${verdict.message}`)
}

/** A conversation answers each tool_use in the message after it (contract 2.1, `invalid_transcript`). */
function checkTranscript(messages: readonly Message[]): readonly Message[] {
  const fault = (index: number, text: string): never => {
    throw new BrainError('invalid_transcript', `Cannot use the transcript: message ${index} ${text}`)
  }
  let open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const results = message.content.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : []))
    const missing = [...open].find((id) => !results.includes(id))
    if (missing !== undefined) fault(index, `does not answer tool_use "${missing}"`)
    const foreign = results.find((id) => !open.has(id))
    if (foreign !== undefined) fault(index, `answers tool_use "${foreign}", which the message before does not hold`)
    open = new Set(message.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
    if (open.size > 0 && message.role !== 'assistant') fault(index, "holds a tool_use but is not the assistant's")
  }
  if (open.size > 0) fault(messages.length, 'is missing: the last tool_use has no result')
  return messages
}
