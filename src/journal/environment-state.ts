import type { Json } from '../kernel/json.ts'
import type { Availability, EnvironmentRef, EnvironmentState, Observation } from '../contract/environment.ts'
import type { SessionEnvironment } from '../contract/session-request.ts'
import type { EnvironmentOperation, KernelData } from './record.ts'

/** An environment as its records tell it. */
export type EnvironmentEntry = {
  readonly reference: EnvironmentRef
  /** The declared environment that this one was made from, or is. */
  readonly template: string
  readonly lifecycle: 'automatic' | 'manual'
  readonly state: EnvironmentState
  readonly configuration: Json
  /** Whether there may be something to tear down. */
  readonly mayHold: boolean
  /** What changes it and has no certain end yet. */
  readonly pending?: { readonly sequence: number; readonly operation: EnvironmentOperation }
  /** The method to call after each turn (contract 5.4). */
  readonly onTurnEnd?: string
  readonly availability?: Availability
  readonly observedAtMs?: number
  readonly observation?: Observation
}

export type Environments = Map<string, EnvironmentEntry>

const WHILE: Readonly<Record<EnvironmentOperation, EnvironmentState | undefined>> = {
  setup: 'starting',
  replace: 'starting',
  teardown: 'deleting',
  detach: undefined,
  call: undefined,
}

const AFTER: Readonly<Record<EnvironmentOperation, EnvironmentState | undefined>> = {
  setup: 'ready',
  replace: 'ready',
  teardown: 'deleted',
  detach: 'detached',
  call: undefined,
}

const isDeclared = ({ reference, template }: EnvironmentEntry): boolean => reference.name === template

/** What the records of environments do to them. Records of environments that are gone change nothing. */
export const environmentFold = {
  declare(all: Environments, { name, lifecycle, configuration }: SessionEnvironment): void {
    const reference = { name, sequence: 1 }
    all.set(name, { reference, template: name, lifecycle, state: 'declared', configuration, mayHold: false })
  },

  made(all: Environments, view: KernelData['environment_declared'], sequence: number): void {
    const { template, lifecycle, configuration } = view
    const reference = { name: view.reference.name, sequence }
    all.set(reference.name, { reference, template, lifecycle, state: 'declared', configuration, mayHold: false })
  },

  update(all: Environments, { environment, configuration }: KernelData['environment_updated']): void {
    change(all, environment.name, () => ({ configuration }))
  },

  started(all: Environments, name: string, operation: EnvironmentOperation, sequence: number): void {
    if (operation === 'call') return
    change(all, name, ({ state }) => ({
      state: WHILE[operation] ?? state,
      pending: { sequence, operation },
      mayHold: true,
    }))
  },

  ended(
    all: Environments,
    name: string,
    sequence: number,
    result: KernelData['environment_setup_ended']['result'],
  ): void {
    const operation = pendingOf(all, name, sequence)
    if (operation === undefined) return
    const { on_turn_end: method } = result
    if (typeof method === 'string') change(all, name, () => ({ onTurnEnd: method }))
    settle(all, name, AFTER[operation])
  },

  failed(all: Environments, name: string, sequence: number, isAmbiguous: boolean): void {
    const operation = pendingOf(all, name, sequence)
    if (operation === undefined) return
    // What is in doubt stays pending: an observation may tell what has become of it.
    if (isAmbiguous) change(all, name, () => ({ state: 'unknown' }))
    else settle(all, name, operation === 'replace' ? 'ready' : 'failed', { isReplaced: false })
    if (operation === 'setup' && !isAmbiguous) change(all, name, () => ({ mayHold: false }))
  },

  close(all: Environments, name: string): void {
    remove(all, name)
  },

  observe(all: Environments, { name }: EnvironmentRef, observation: Observation, atMs: number): void {
    const seen = { observation, observedAtMs: atMs }
    if (observation.scope === 'environment')
      change(all, name, () => ({ ...seen, availability: observation.availability }))
    else change(all, name, () => seen)
    if (observation.scope !== 'operation' || pendingOf(all, name, observation.sequence) === undefined) return
    settle(all, name, observation.resolution.status)
  },
}

function change(
  all: Environments,
  name: string,
  differs: (entry: EnvironmentEntry) => Partial<EnvironmentEntry>,
): void {
  const entry = all.get(name)
  if (entry !== undefined) all.set(name, { ...entry, ...differs(entry) })
}

function remove(all: Environments, name: string): void {
  const entry = all.get(name)
  if (entry === undefined) return
  // Instances make room for others; what the session declared is on its list for good.
  if (isDeclared(entry)) all.set(name, { ...entry, state: 'deleted', mayHold: false })
  else all.delete(name)
}

const pendingOf = (all: Environments, name: string, sequence: number): EnvironmentOperation | undefined => {
  const pending = all.get(name)?.pending
  return pending?.sequence === sequence ? pending.operation : undefined
}

/** The pending operation has come to its end. A replacement makes another environment of it, named by that operation. */
function settle(
  all: Environments,
  name: string,
  state: EnvironmentState | undefined,
  { isReplaced } = { isReplaced: state === 'ready' },
): void {
  const entry = all.get(name)
  if (entry === undefined) return
  const { pending, ...rest } = entry
  const isAnother = pending?.operation === 'replace' && isReplaced
  const reference = isAnother ? { name, sequence: pending.sequence } : rest.reference
  all.set(name, { ...rest, reference, state: state ?? rest.state })
  if (state === 'deleted') remove(all, name)
}
