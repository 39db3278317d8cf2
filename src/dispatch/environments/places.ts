import { BrainError } from '../../kernel/errors.ts'
import type { EnvironmentRef, EnvironmentState, EnvironmentView } from '../../contract/environment.ts'
import type {
  EnvironmentGrant,
  SessionConfiguration,
  SessionEnvironment,
  SessionTool,
} from '../../contract/session-request.ts'
import { TOOL_SERVICES } from '../../contract/tool-service.ts'
import type { EnvironmentEntry } from '../../journal/environment-state.ts'
import type { Place } from './environment-operation.ts'

/** A session's environments, declared and as they are now. */
export type Placing = {
  readonly configuration: SessionConfiguration
  readonly state: { readonly environments: ReadonlyMap<string, EnvironmentEntry> }
}

/** What the session declared under a name. */
export const declared = ({ configuration }: Placing, name: string): SessionEnvironment | undefined =>
  configuration.environments.find((candidate) => candidate.name === name)

/** Distributed tools are always there: what becomes of a call is the service's to say. */
export const SERVICES: EnvironmentEntry = {
  reference: { name: TOOL_SERVICES.name, sequence: 1 },
  template: TOOL_SERVICES.name,
  lifecycle: 'automatic',
  state: 'ready',
  configuration: null,
  mayHold: false,
}

/** Where tools of a session can be called, under its name. */
export const callable = ({ state }: Placing, name: string): EnvironmentEntry | undefined =>
  name === SERVICES.template ? SERVICES : state.environments.get(name)

/** An entry as a place where something can be done; undefined in a session that declared no such environment. */
export function placeOf(session: Placing, entry: EnvironmentEntry): Place | undefined {
  const base = entry === SERVICES ? TOOL_SERVICES : declared(session, entry.template)
  if (base === undefined) return undefined
  const { reference, template, configuration } = entry
  const environment = { ...base, name: reference.name, configuration } as SessionEnvironment
  return { environment, reference, template }
}

/** @throws BrainError `not_found` for one that is not there, is deleted, or has another sequence by now */
export function entryOf({ state }: Placing, { name, sequence }: EnvironmentRef): EnvironmentEntry {
  const entry = state.environments.get(name)
  if (entry === undefined || entry.state === 'deleted' || entry.reference.sequence !== sequence)
    throw new BrainError('not_found', `Cannot find environment "${name}" with sequence ${sequence}`)
  return entry
}

const toolsIn = ({ configuration }: Placing, template: string): readonly SessionTool[] =>
  configuration.tools.filter((tool) => Object.hasOwn(tool.placements, template))

export function viewOf(
  session: Placing,
  entry: EnvironmentEntry,
  state: EnvironmentState = entry.state,
): EnvironmentView {
  const { reference, template, lifecycle, configuration, pending, availability, observedAtMs, observation } = entry
  const base = declared(session, template)
  return {
    reference,
    template,
    lifecycle,
    state,
    configuration,
    methods: (base?.driver === 'http' ? base.methods : undefined) ?? {},
    tools: toolsIn(session, template).map(({ name, description, input_schema, output_schema }) => ({
      name,
      description,
      input_schema,
      ...(output_schema === undefined ? {} : { output_schema }),
    })),
    ...(pending === undefined ? {} : { pending_operation: pending.sequence }),
    ...(availability === undefined ? {} : { availability }),
    ...(observedAtMs === undefined ? {} : { observed_at_ms: observedAtMs }),
    ...(observation === undefined ? {} : { observation }),
  }
}

/**
 * Grants of a tool in its place. What a brain or host environment was granted is its tools': nobody else acts there. Of an
 * environment elsewhere it is its controller's.
 */
export function grantsOfTool(tool: SessionTool, { environment }: Place): readonly EnvironmentGrant[] {
  const ofPlace = environment.driver === 'http' ? [] : (environment.environments ?? [])
  return [...(tool.environments ?? []), ...ofPlace]
}

/** @throws BrainError `conflict` */
export function assertIs(
  { reference, state }: EnvironmentEntry,
  right: readonly EnvironmentState[],
  what: string,
): void {
  if (!right.includes(state))
    throw new BrainError('conflict', `Cannot ${what} environment "${reference.name}": it is ${state}`)
}

/** @throws BrainError `environment_not_ready` with the environment's state */
export function assertUsable(entry: EnvironmentEntry, what: string): void {
  const { reference, state, availability } = entry
  if (state === 'ready' && availability !== 'unavailable') return
  throw new BrainError('environment_not_ready', `Cannot ${what}: ${reasonOf(entry)}`, {
    details: { domain: 'environment', environment: reference.name, state },
  })
}

/** Why nothing can be done in an environment that is not usable. */
export const reasonOf = ({ reference, state, observation }: EnvironmentEntry): string =>
  state === 'ready'
    ? `environment "${reference.name}" is not available${observation?.scope === 'environment' ? `: ${observation.message}` : ''}`
    : `environment "${reference.name}" is ${state}`
