import type { z } from 'zod'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { isPlainObject } from '../strict-members.ts'
import { isEnvironment, type Environment } from './environments.ts'
import { grantsOf } from './names.ts'
import { parseOptions } from './parse-options.ts'

/** A Zod schema whose accepted side is an object: its members are given beside `env`. */
export type OptionsSchema = z.ZodType<unknown, object>

/** What `run` and `implementation` get as options: what the schema makes of what was given; nothing without a schema. */
export type OptionsOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : Readonly<Record<never, never>>

type GivenOptions<Schema> = Schema extends z.ZodType ? z.input<Schema> : unknown
type Member<Env, Needed> = Needed extends true ? { readonly env: Env } : { readonly env?: Env }

/** What a factory is called with: where the tool runs, what it may do with environments, and its options. */
export type PlacementOf<Schema, Env, Needed> = Member<Env, Needed> & {
  readonly environments?: readonly EnvironmentGrant[]
} & GivenOptions<Schema>

/** The arguments of a factory; the one may be left out where nothing in it is needed. */
export type PlacementArguments<Given> = object extends Given ? [placement?: Given] : [placement: Given]

export type ParsedPlacement = {
  readonly env: Environment | undefined
  readonly environments?: readonly EnvironmentGrant[]
  readonly options: unknown
}

const RESERVED = ['env', 'environments']

/**
 * @param reserved members that a placement has itself
 * @throws TypeError for a schema that is no object, and for one with a member that placements have themselves
 */
export function checkOptionsSchema(schema: unknown, what: string, reserved: readonly string[] = RESERVED): void {
  if (schema === undefined) return
  if (typeof schema !== 'object' || schema === null || !('_zod' in schema))
    throw new TypeError(`${what}: options must be a schema of Zod 4`)
  const members = membersOfSchema(schema as unknown as z.core.$ZodTypes, what)
  const taken = members.find((member) => reserved.includes(member))
  if (taken !== undefined)
    throw new TypeError(`${what}: options must not have the member "${taken}", which a placement has itself`)
}

/** What the accepted side of an object schema may be given. */
function membersOfSchema(schema: z.core.$ZodTypes, what: string): string[] {
  const { def } = schema._zod
  const inside = (inner: z.core.$ZodType): string[] => membersOfSchema(inner as z.core.$ZodTypes, what)
  switch (def.type) {
    case 'object':
      return Object.keys(def.shape)
    case 'union':
      return def.options.flatMap(inside)
    case 'intersection':
      return [...inside(def.left), ...inside(def.right)]
    case 'pipe':
      return inside(def.in._zod.def.type === 'transform' ? def.out : def.in)
    case 'lazy':
      return inside(def.getter())
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return inside(def.innerType)
    default:
      throw new TypeError(`${what}: options must be an object schema such as z.object({ … })`)
  }
}

/**
 * Parses what a factory was called with, once; what comes of it is frozen all the way down.
 *
 * @throws TypeError for a wrong environment or grant, for options that the schema refuses or that there is no schema for
 */
export function parsePlacement(placement: unknown, schema: OptionsSchema | undefined, what: string): ParsedPlacement {
  if (placement !== undefined && !isPlainObject(placement))
    throw new TypeError(`${what}: a placement is an object: { env, …options }`)
  const { env, environments, ...given } = placement ?? {}
  if (env !== undefined && !isEnvironment(env))
    throw new TypeError(`${what}: env must be made by brainEnv(), hostEnv() or what environment() gives`)
  const grants = grantsOf(environments as readonly EnvironmentGrant[] | undefined, what)
  return Object.freeze({ env, ...deepFrozen(grants), options: parseOptions(given, schema, what) })
}
