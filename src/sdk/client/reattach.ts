import { isJsonObject, type Json } from '../../kernel/json.ts'
import { isPlacedTool, type PlacedTool } from '../declare/tool.ts'
import { canonicalText } from '../json-value.ts'
import type { SessionEvent } from './session-event.ts'
import type { HostTool } from './session-plan.ts'

const WHAT = 'Cannot take the session up again'

type SavedTool = {
  readonly name: string
  readonly input_schema: Json
  readonly output_schema?: Json
  readonly placements: Readonly<Record<string, unknown>>
}
type SavedEnvironment = {
  readonly name: string
  readonly driver: string
  readonly host_id?: string
  readonly configuration?: Json
}
type Saved = { readonly tools: readonly SavedTool[]; readonly environments: readonly SavedEnvironment[] }

/**
 * Puts the given functions where the journal says that the session has them.
 *
 * @throws TypeError when they are not exactly the tools that are placed in this host, with the very same schemas
 */
export async function reattachedTools(
  tools: readonly PlacedTool[],
  events: AsyncIterable<SessionEvent>,
  hostId: string,
): Promise<HostTool[]> {
  const saved = await savedConfiguration(events)
  const hosts = saved.environments.filter(({ driver, host_id }) => driver === 'host' && host_id === hostId)
  if (hosts.length === 0)
    throw new TypeError(
      `${WHAT}: it has no tools in this client: give the client the credentials of the one that made it`,
    )
  const wanted = new Map<string, SavedTool>()
  for (const tool of saved.tools)
    for (const { name } of hosts) if (Object.hasOwn(tool.placements, name)) wanted.set(`${name} ${tool.name}`, tool)
  const found = tools.map((tool) => hostToolOf(tool, hosts))
  for (const { tool, environment } of found) {
    const key = `${environment} ${tool.name}`
    const before = wanted.get(key)
    if (before === undefined)
      throw new TypeError(
        `${WHAT}: the tool "${tool.name}" is given twice, or is not one that it has in "${environment}"`,
      )
    wanted.delete(key)
    if (schemasOf(before) !== schemasOf(tool.definition as unknown as SavedTool))
      throw new TypeError(`${WHAT}: the tool "${tool.name}" has other schemas than the session was created with`)
  }
  const missing = [...wanted.values()].map(({ name }) => `"${name}"`)
  if (missing.length > 0) throw new TypeError(`${WHAT}: tools are missing: ${missing.join(', ')}`)
  return found
}

async function savedConfiguration(events: AsyncIterable<SessionEvent>): Promise<Saved> {
  for await (const { type, data } of events)
    if (type === 'session_creation_ended' && isJsonObject(data)) return data['configuration'] as unknown as Saved
  throw new TypeError(`${WHAT}: its creation has not ended well`)
}

function hostToolOf(tool: PlacedTool, hosts: readonly SavedEnvironment[]): HostTool {
  if (!isPlacedTool(tool)) throw new TypeError(`${WHAT}: tools must be placed: call the factory, as in lookup()`)
  const { executable, env } = tool
  if (executable.type !== 'function') throw new TypeError(`${WHAT}: the tool "${tool.name}" is no function`)
  return { tool, environment: env?.name ?? defaultHostIn(hosts), executable }
}

/** The environment of tools that name none has this mark, whatever it is called. */
function defaultHostIn(hosts: readonly SavedEnvironment[]): string {
  const host = hosts.find(
    ({ configuration }) =>
      isJsonObject(configuration ?? null) && (configuration as { sdk_default?: Json }).sdk_default === true,
  )
  if (host === undefined) throw new TypeError(`${WHAT}: it has no tools in this client's default host`)
  return host.name
}

const schemasOf = ({ input_schema, output_schema }: SavedTool): string =>
  canonicalText([input_schema, output_schema ?? null])
