import type { z } from 'zod'
import type { JsonObject } from '../../kernel/json.ts'
import type { ToolDefinition } from '../../contract/message.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { deepFrozen } from '../deep-frozen.ts'
import type { AnyToolFunction, ToolFunction } from '../host/tool-context.ts'
import { membersOf } from '../strict-members.ts'
import type { Environment, HostEnv } from './environments.ts'
import {
  checkImplementation,
  checkPlace,
  executableOf,
  type Executable,
  type Implementation,
} from './implementation.ts'
import { inputSchemaOf, outputSchemaOf } from './json-schema.ts'
import { withDeclaration } from './declared-tool.ts'
import { checkDescription, checkToolName } from './names.ts'
import {
  checkOptionsSchema,
  parsePlacement,
  type OptionsOf,
  type OptionsSchema,
  type PlacementArguments,
  type PlacementOf,
} from './placement.ts'

/** A function with all that is needed to call it. */
export type HostExecutable = {
  readonly type: 'function'
  readonly run: AnyToolFunction
  readonly input: z.ZodType
  readonly output: z.ZodType | undefined
  readonly options: unknown
}

/** A tool with its place and options, as `sessions.create` takes it. Made by calling a factory; frozen. */
export type PlacedTool = {
  readonly name: string
  readonly definition: ToolDefinition
  /** Undefined: the environment that the client makes for functions without one. */
  readonly env: Environment | undefined
  readonly environments?: readonly EnvironmentGrant[]
  readonly executable: HostExecutable | Executable
}

type Common<Input, Output, Options> = {
  /** 1 to 64 of the characters A-Z a-z 0-9 _ - */
  readonly name: string
  /** 1 to 8192 characters, for the model. */
  readonly description: string
  /** An object schema. The model is told what it accepts before it parses. */
  readonly input: Input
  /** What results must be. The model is told what it makes of them. */
  readonly output?: Output
  /** An object schema of what the factory takes beside `env` and `environments`. */
  readonly options?: Options
}

type OutputOf<Output> = Output extends z.ZodType ? z.input<Output> : unknown

/** A tool that is a function of the application. */
export type FunctionDeclaration<
  Input extends z.ZodType,
  Output extends z.ZodType | undefined,
  Options extends OptionsSchema | undefined,
> = Common<Input, Output, Options> & {
  readonly run: ToolFunction<z.output<Input>, OutputOf<Output>, OptionsOf<Options>>
  readonly implementation?: never
}

/** A tool that something else runs. */
export type ImplementationDeclaration<
  Input extends z.ZodType,
  Output extends z.ZodType | undefined,
  Options extends OptionsSchema | undefined,
> = Common<Input, Output, Options> & {
  readonly implementation: Implementation<OptionsOf<Options>>
  readonly run?: never
}

/** What a tool is called with, what it publishes, and what its factory takes beside `env`, as types. */
export type ToolTypes = { readonly input: unknown; readonly output: unknown; readonly options: unknown }

/** Places a tool: call it with `env` and options. */
export type ToolFactory<Given, Types extends ToolTypes = ToolTypes> = ((
  ...placement: PlacementArguments<Given>
) => PlacedTool) & {
  readonly definition: ToolDefinition
  /** Never there: carries {@link TypesOf} the tool. */
  readonly '~types'?: Types
}

/** Of a factory, `typeof lookup`: the types of its input, output and options. */
export type TypesOf<Factory> = Factory extends { readonly '~types'?: infer Types } ? NonNullable<Types> : never

type TypesOfSchemas<Input, Output, Options> = {
  readonly input: z.input<Input>
  readonly output: Output extends z.ZodType ? z.output<Output> : unknown
  readonly options: Options extends z.ZodType ? z.input<Options> : unknown
}

type Declaration = Common<z.ZodType, z.ZodType | undefined, OptionsSchema | undefined> & {
  readonly run?: AnyToolFunction | undefined
  readonly implementation?: Implementation<never> | undefined
}

/** Two copies of the package know each other's placed tools by it. */
const BRAND = Symbol.for('@aexhq/brain/placed-tool')

const MEMBERS = ['name', 'description', 'input', 'output', 'options', 'run', 'implementation']

/**
 * Declares a tool, once, to be placed any number of times.
 *
 * With `run` it is a function of the application: `factory(options)` lets it run in the process that creates the
 * session, `factory({ env: hostEnv({ name }), ...options })` in a named host. With `implementation` it is a component or a
 * descriptor, and a placement names the environment that runs it: `factory({ env, ...options })`. Options are parsed and
 * frozen when the factory is called; a descriptor may be a function of them.
 *
 * @throws TypeError, naming the tool: for a name, description or schema that cannot be used, at the path where JSON
 * Schema cannot say it; for both or none of `run` and `implementation`; for a member that it does not know. The factory
 * throws TypeError for wrong options and for an environment that cannot run it.
 */
export function tool<
  Input extends z.ZodType,
  Output extends z.ZodType | undefined = undefined,
  Options extends OptionsSchema | undefined = undefined,
>(
  declaration: FunctionDeclaration<Input, Output, Options>,
): ToolFactory<PlacementOf<Options, HostEnv, false>, TypesOfSchemas<Input, Output, Options>>
export function tool<
  Input extends z.ZodType,
  Output extends z.ZodType | undefined = undefined,
  Options extends OptionsSchema | undefined = undefined,
>(
  declaration: ImplementationDeclaration<Input, Output, Options>,
): ToolFactory<PlacementOf<Options, Environment, true>, TypesOfSchemas<Input, Output, Options>>
export function tool(declaration: Declaration): ToolFactory<unknown> {
  checkToolName(declaration?.name)
  const what = `Cannot declare tool "${declaration.name}"`
  membersOf(declaration, MEMBERS, what)
  const { name, description, input, output, options, run, implementation } = declaration
  checkDescription(description, what)
  if ((run === undefined) === (implementation === undefined))
    throw new TypeError(`${what}: it needs either run or implementation, and not both`)
  if (run !== undefined && typeof run !== 'function') throw new TypeError(`${what}: run must be a function`)
  if (implementation !== undefined) checkImplementation(implementation, what)
  checkOptionsSchema(options, what)
  const input_schema: JsonObject = inputSchemaOf(what, input)
  const output_schema = output === undefined ? {} : { output_schema: outputSchemaOf(what, output) }
  const definition: ToolDefinition = deepFrozen({ name, description, input_schema, ...output_schema })
  const declared = { run, implementation, input, output, options, definition }
  const factory = Object.assign((placement?: unknown) => place(declared, placement), { definition })
  const optionsSchema = () => (options === undefined ? {} : { options_schema: inputSchemaOf(what, options, 'options') })
  return withDeclaration(factory, {
    metadata: () => deepFrozen({ ...definition, ...optionsSchema() }),
    input,
    ...(run && { run }),
    ...(output && { output }),
    ...(options && { options }),
  })
}

type Declared = Pick<Declaration, 'run' | 'implementation' | 'input'> & {
  readonly output: z.ZodType | undefined
  readonly options: OptionsSchema | undefined
  readonly definition: ToolDefinition
}

function place(
  { run, implementation, input, output, options: schema, definition }: Declared,
  given: unknown,
): PlacedTool {
  const { name } = definition
  const what = `Cannot place tool "${name}"`
  const { options, env, ...grants } = parsePlacement(given, schema, what)
  if (implementation === undefined) {
    if (env !== undefined && env.driver !== 'host')
      throw new TypeError(`${what}: a function runs in the application: leave env out, or name a hostEnv()`)
    const executable = Object.freeze({ type: 'function', run: run as AnyToolFunction, input, output, options } as const)
    return placed({ name, definition, env, ...grants, executable })
  }
  if (env === undefined || env.driver === 'host')
    throw new TypeError(`${what}: its implementation needs an env that runs it, such as brainEnv({ name })`)
  const executable = executableOf(implementation, options, what)
  checkPlace(executable, env, what)
  return placed({ name, definition, env, ...grants, executable })
}

/** Brands and freezes a placed tool. */
export const placed = (tool: PlacedTool): PlacedTool =>
  Object.freeze(Object.defineProperty(tool, BRAND, { value: true }))

export const isPlacedTool = (value: unknown): value is PlacedTool =>
  typeof value === 'object' && value !== null && BRAND in value
