import { deepFrozen } from '../deep-frozen.ts'
import { isPlacedAgentloop, placedAgentloop, type PlacedAgentloop } from '../declare/agentloop.ts'
import { isPlacedTool, placed as placedTool, type PlacedTool } from '../declare/tool.ts'
import type { Admissions } from './admissions.ts'
import { componentDescriptor } from './component-descriptor.ts'
import type { Transport } from './transport.ts'

/** What can be loaded before there is a session. */
export type Preparable = PlacedTool | PlacedAgentloop

/**
 * Has the server load the components of all (contract 1.2).
 *
 * @returns the same, with the ids of their components
 * @throws TypeError for what is not placed @throws BrainError
 */
export async function prepareAll(
  all: readonly Preparable[],
  transport: Transport,
  admissions: Admissions,
): Promise<readonly Preparable[]> {
  for (const placed of all)
    if (!isPlacedTool(placed) && !isPlacedAgentloop(placed))
      throw new TypeError('Cannot prepare: tools and agentloops must be placed: call their factory')
  const ids = { tool: new Set<string>(), agentloop: new Set<string>() }
  const prepared: Preparable[] = []
  for (const placed of all) {
    const { executable } = placed
    if (executable.type !== 'component') {
      prepared.push(placed)
      continue
    }
    const role = isPlacedTool(placed) ? 'tool' : 'agentloop'
    const id = await admissions.ensure(role, executable.component)
    ids[role].add(id)
    const { configuration } = executable
    const descriptor = componentDescriptor(role, id, configuration)
    const known = { executable: deepFrozen({ type: 'descriptor', descriptor, configuration } as const) }
    prepared.push(isPlacedTool(placed) ? placedTool({ ...placed, ...known }) : placedAgentloop({ ...placed, ...known }))
  }
  const body = {
    ...(ids.agentloop.size > 0 && { agentloops: [...ids.agentloop] }),
    ...(ids.tool.size > 0 && { tools: [...ids.tool] }),
  }
  if (Object.keys(body).length > 0) await transport.json('POST', '/v1/brain-env/prepare', { body })
  return prepared
}
