import { z } from 'zod'
import { isJsonObject, type JsonObject } from '../../kernel/json.ts'
import type { ToolDefinition } from '../../contract/message.ts'
import type { EnvironmentGrant, ToolMetadata } from '../../contract/session-request.ts'
import { membersOf } from '../strict-members.ts'
import { isComponent, type Component } from './component.ts'
import { withDeclaration } from './declared-tool.ts'
import type { Environment } from './environments.ts'
import { checkImplementation, executableOf, frozenJson } from './implementation.ts'
import { lazyExecutable, type ToolLoader } from './lazy-executable.ts'
import { checkDescription, checkToolName } from './names.ts'
import { parsePlacement, type OptionsSchema } from './placement.ts'
import { placed, type PlacedTool, type ToolFactory, type ToolTypes } from './tool.ts'

type OptionsGiven<Types> = Types extends { readonly options: infer Options } ? Options : unknown

/**
 * The factory of a tool whose code is elsewhere. It is called with `env`, the environment that runs it, and options.
 *
 * @typeParam Types what its input, output and options are
 */
export type PackagedTool<Types extends ToolTypes = ToolTypes> = ToolFactory<
  { readonly env: Environment; readonly environments?: readonly EnvironmentGrant[] } & OptionsGiven<Types>,
  Types
>

/** A factory as {@link PackagedTool}, of a tool that the application itself can run too: it may be called without `env`. */
export type LoadableTool<Types extends ToolTypes = ToolTypes> = ToolFactory<
  { readonly env?: Environment; readonly environments?: readonly EnvironmentGrant[] } & OptionsGiven<Types>,
  Types
>

/**
 * Makes the factory of a tool from what {@link toolMetadata} said of it, without its code. Options are checked against
 * their JSON Schema when the factory is called, copied and frozen, and whoever runs the tool parses them.
 *
 * @param metadata JSON, as `toolMetadata` or the section `brain:tool-metadata` of a component has it
 * @param implementation what runs it: a component, or a descriptor for an environment, which is sent with the options as
 * its member `configuration`
 * @throws TypeError for metadata or an implementation that cannot be used. The factory throws TypeError for wrong options
 * and for an environment that cannot run it.
 */
export function bindTool<Types extends ToolTypes = ToolTypes>(
  metadata: ToolMetadata,
  implementation: Component | Readonly<Record<string, unknown>>,
): PackagedTool<Types>
/**
 * As above, of a tool that the application can run itself.
 *
 * @param metadata JSON, as `toolMetadata` or the section `brain:tool-metadata` of a component has it
 * @param implementation what runs it elsewhere
 * @param runtime imports the tool's own factory, when the first call comes, where the tool is placed in the application
 * itself: without `env`, or in a hostEnv
 * @throws TypeError for metadata, an implementation or a runtime that cannot be used
 */
export function bindTool<Types extends ToolTypes = ToolTypes>(
  metadata: ToolMetadata,
  implementation: Component | Readonly<Record<string, unknown>>,
  runtime: ToolLoader,
): LoadableTool<Types>
export function bindTool(
  metadata: ToolMetadata,
  implementation: Component | Readonly<Record<string, unknown>>,
  runtime?: ToolLoader,
): ToolFactory<unknown> {
  const known = checkedMetadata(metadata)
  const { name } = known
  const what = `Cannot bind tool "${name}"`
  if (typeof implementation === 'function') throw new TypeError(`${what}: implementation must not be a function`)
  checkImplementation(implementation, what)
  if (runtime !== undefined && typeof runtime !== 'function') throw new TypeError(`${what}: runtime must be a function`)
  const { options_schema: schema, ...definition } = known
  const optionsOf = optionsCheck(schema)
  const place = (placement?: unknown): PlacedTool => {
    const placing = `Cannot place tool "${name}"`
    const { options, env, ...grants } = parsePlacement(placement, optionsOf, placing)
    const isHere = env === undefined || env.driver === 'host'
    if (isHere && runtime === undefined)
      throw new TypeError(`${placing}: its code is not part of this application: give it an env that runs it`)
    const configuration = frozenJson(options, 'options', placing) as JsonObject
    const executable =
      isHere && runtime !== undefined
        ? lazyExecutable(definition, configuration, runtime)
        : executableOf(withConfiguration(implementation, configuration), configuration, placing)
    return placed({ name, definition, env, ...grants, executable })
  }
  return withDeclaration(Object.assign(place, { definition: definition satisfies ToolDefinition }), {
    metadata: () => known,
  })
}

const MEMBERS = ['name', 'description', 'input_schema', 'output_schema', 'options_schema']

function checkedMetadata(metadata: ToolMetadata): ToolMetadata {
  const { name, description, input_schema, output_schema, options_schema } = membersOf(
    metadata,
    MEMBERS,
    'Cannot bind a tool: metadata',
  )
  checkToolName(name)
  const what = `Cannot bind tool "${name}"`
  checkDescription(description, what)
  for (const [member, schema] of Object.entries({ input_schema, output_schema, options_schema }))
    if (!isJsonObject(schema) && (schema !== undefined || member === 'input_schema'))
      throw new TypeError(`${what}: ${member} must be a JSON Schema that is an object`)
  return frozenJson(withoutAbsent(metadata), 'metadata', what) as unknown as ToolMetadata
}

const withoutAbsent = (metadata: object): object =>
  Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined))

/** Refuses what the schema refuses, and hands on what was given: the tool's own schema makes the rest of it. */
function optionsCheck(schema: JsonObject | undefined): OptionsSchema | undefined {
  if (schema === undefined) return undefined
  const check = schemaOf(schema)
  return z.custom<object>().superRefine((given, context) => {
    const { error } = check.safeParse(given)
    for (const { path, message } of error?.issues ?? []) context.addIssue({ code: 'custom', path, message })
  })
}

/** What Zod cannot read of JSON Schema is left to whoever runs the tool. */
function schemaOf(schema: JsonObject): z.ZodType {
  try {
    return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
  } catch {
    return z.looseObject({})
  }
}

const withConfiguration = (
  implementation: Component | Readonly<Record<string, unknown>>,
  configuration: JsonObject,
): Component | Readonly<Record<string, unknown>> =>
  isComponent(implementation) ? implementation : { ...implementation, configuration }
