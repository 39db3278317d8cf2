import type { z } from 'zod'
import type { Fetch } from '../client/transport.ts'
import { wireMethodsOf } from '../declare/environment-methods.ts'
import { checkOptionsSchema, type OptionsSchema } from '../declare/placement.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { membersOf } from '../strict-members.ts'
import { Controller, type AnyContract } from './controller.ts'
import type { EnvironmentContract, EnvironmentHandler } from './environment-contract.ts'

const WHAT = 'Cannot declare what an environment does'
const HANDLERS = ['setup', 'execute', 'cancel', 'detach', 'teardown'] as const

/**
 * Does the operations of `environment/v1` (contract 5) with functions: the side of an environment that Brain asks. Needs
 * nothing but `fetch`; the HTTP listener and the check of its credential are the application's.
 *
 * An operation is done once: a command that is delivered again gets the answer of the first, among the newest 16384
 * operations and 4 Mi characters of answers of this process; what was done and has no answer any more is `unknown`. At most
 * 1024 operations are done at once. What a handler throws is a failure with the code of the BrainError, `unknown` for `ambiguous`
 * and `unknown`, `environment_error` for anything else. Methods that are not declared, and missing `execute` and `cancel`,
 * are `unsupported`; services that were not granted reject with `not_granted`.
 *
 * @param options `fetch`: in place of the platform's
 * @throws TypeError for members and schemas that cannot be used
 */
export function environmentHandler<
  Options extends OptionsSchema | undefined = undefined,
  Inputs extends Readonly<Record<string, z.ZodType>> = Readonly<Record<never, never>>,
>(contract: EnvironmentContract<Options, Inputs>, options: { readonly fetch?: Fetch } = {}): EnvironmentHandler {
  membersOf(contract, ['options', 'methods', ...HANDLERS], WHAT)
  membersOf(options, ['fetch'], `${WHAT}: its options`)
  checkOptionsSchema(contract.options, WHAT, [])
  for (const name of HANDLERS)
    if (contract[name] !== undefined && typeof contract[name] !== 'function')
      throw new TypeError(`${WHAT}: ${name} must be a function`)
  const methods = deepFrozen(wireMethodsOf(contract.methods ?? {}, WHAT, ['run']))
  for (const [name, method] of Object.entries<{ run?: unknown }>(contract.methods ?? {}))
    if (typeof method.run !== 'function') throw new TypeError(`${WHAT}: method "${name}": run must be a function`)
  const controller = new Controller(contract as unknown as AnyContract, options.fetch)
  return Object.freeze<EnvironmentHandler>({ methods, run: (command, signal) => controller.run(command, signal) })
}
