import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { membersOf } from '../strict-members.ts'
import type { BrainEnv, HttpEnv } from './environments.ts'
import {
  checkImplementation,
  checkPlace,
  executableOf,
  type Executable,
  type Implementation,
} from './implementation.ts'
import {
  checkOptionsSchema,
  parsePlacement,
  type OptionsOf,
  type OptionsSchema,
  type PlacementArguments,
  type PlacementOf,
} from './placement.ts'

/** An agentloop with its place and options, as `sessions.create` takes it; frozen. */
export type PlacedAgentloop = {
  readonly env: BrainEnv | HttpEnv
  readonly environments?: readonly EnvironmentGrant[]
  readonly executable: Executable
}

/** Places an agentloop: call it with `env` and options. */
export type AgentloopFactory<Given> = (...placement: PlacementArguments<Given>) => PlacedAgentloop

const BRAND = Symbol.for('@aexhq/brain/placed-agentloop')

/**
 * Declares what conducts the turns of a session: a component of the world `brain:agentloop`, or a descriptor that an
 * environment over HTTP understands. Sessions without one have the loop that is part of the server.
 *
 * @param declaration `implementation`, and `options`: an object schema of what the factory takes beside `env`
 * @throws TypeError for members that cannot be used. The factory throws TypeError for wrong options and for an
 * environment that cannot run it: loops do not run in a hostEnv.
 */
export function agentloop<Options extends OptionsSchema | undefined = undefined>(declaration: {
  readonly implementation: Implementation<OptionsOf<Options>>
  readonly options?: Options
}): AgentloopFactory<PlacementOf<Options, BrainEnv | HttpEnv, true>> {
  const what = 'Cannot declare an agentloop'
  membersOf(declaration, ['options', 'implementation'], what)
  const { implementation, options: schema } = declaration
  checkImplementation(implementation, what)
  checkOptionsSchema(schema, what)
  const factory = (placement?: unknown): PlacedAgentloop => {
    const wrong = 'Cannot place an agentloop'
    const { options, env, ...grants } = parsePlacement(placement, schema, wrong)
    if (env === undefined || env.driver === 'host')
      throw new TypeError(`${wrong}: it needs an env made by brainEnv() or by what environment() gives`)
    const executable = executableOf(implementation as never, options, wrong)
    checkPlace(executable, env, wrong)
    return placedAgentloop({ env, ...grants, executable })
  }
  return Object.freeze(factory)
}

/** Brands and freezes a placed agentloop. */
export const placedAgentloop = (loop: PlacedAgentloop): PlacedAgentloop =>
  Object.freeze(Object.defineProperty(loop, BRAND, { value: true }))

export const isPlacedAgentloop = (value: unknown): value is PlacedAgentloop =>
  typeof value === 'object' && value !== null && BRAND in value
