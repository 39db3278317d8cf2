import { z } from 'zod'
import type { JsonObject } from '../../kernel/json.ts'
import type { ToolDefinition } from '../../contract/message.ts'
import type { AnyToolFunction } from '../host/tool-context.ts'
import { declarationOf, type DeclaredTool } from './declared-tool.ts'
import { parseOptions } from './parse-options.ts'
import type { HostExecutable } from './tool.ts'

/** Imports the factory of a tool that is a function. */
export type ToolLoader = () => Promise<unknown>

/** A function that is imported when its first call comes. What fails then fails the call, and the next one tries again. */
export function lazyExecutable(
  { name, output_schema }: ToolDefinition,
  configuration: JsonObject,
  load: ToolLoader,
): HostExecutable {
  let loading: Promise<Loaded> | undefined
  const loaded = (): Promise<Loaded> =>
    (loading ??= loadedTool(name, configuration, load).catch((error: unknown) => {
      loading = undefined
      throw error
    }))
  const run = async (input: never, ctx: object): Promise<unknown> => {
    const { run: ran, options } = await loaded()
    return ran(input, Object.freeze({ ...ctx, options }) as never)
  }
  return Object.freeze({
    type: 'function',
    run,
    input: through(async () => (await loaded()).input),
    output: output_schema === undefined ? undefined : through(async () => (await loaded()).output),
    options: configuration,
  })
}

type Loaded = {
  readonly run: AnyToolFunction
  readonly input: z.ZodType
  readonly output: z.ZodType
  readonly options: unknown
}

async function loadedTool(name: string, configuration: JsonObject, load: ToolLoader): Promise<Loaded> {
  const what = `Cannot run tool "${name}"`
  const declared: DeclaredTool | undefined = declarationOf(await load())
  if (declared?.run === undefined || declared.input === undefined)
    throw new TypeError(`${what}: what was imported is no factory of tool() with run`)
  if (declared.metadata().name !== name) throw new TypeError(`${what}: "${declared.metadata().name}" was imported`)
  const { run, input, output = z.unknown() } = declared
  return { run, input, output, options: parseOptions(configuration, declared.options, what) }
}

/** A schema that is there later. */
const through = (schema: () => Promise<z.ZodType>): z.ZodType =>
  z.unknown().transform(async (value, context) => {
    const parsed = await (await schema()).safeParseAsync(value)
    if (parsed.success) return parsed.data
    for (const { path, message } of parsed.error.issues) context.addIssue({ code: 'custom', path, message })
    return z.NEVER
  })
