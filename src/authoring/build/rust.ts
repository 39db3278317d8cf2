import { copyFile, mkdir, readFile, realpath, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { messageOf } from '../../kernel/errors.ts'
import { type Cargo, cargo } from './rust/cargo.ts'
import { findRustCompiler, TARGET } from './rust/rust-compiler.ts'
import { findRustTools, type RustTool, type RustWorkspace } from './rust/rust-tools.ts'
import type { BuiltTool, ToolBuilder } from './tool-builder.ts'

/** The unit test that the attribute of brain-tool makes; told to write, it brings `tool.json` up to date. */
const METADATA_TEST = 'tool_json_is_what_the_types_say'

/** Contract A22; a name becomes the name of a file here. */
const METADATA = z.object({ name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) })

const ARTIFACT = z.object({
  reason: z.literal('compiler-artifact'),
  target: z.object({ name: z.string(), kind: z.array(z.string()) }),
  filenames: z.array(z.string()),
})

/**
 * Builds a component of each package in a folder that uses the crate `brain-tool`. What the component says about itself is
 * brought up to date first, on this machine, in the package's `tool.json`.
 */
export const buildRust: ToolBuilder = async (source, options) => {
  try {
    // Cargo names its files without symbolic links.
    const directory = await realpath(source)
    const compiler = await findRustCompiler(options.env, directory)
    const runner: Cargo = { compiler, directory, signal: options.signal, onProgress: options.onProgress }
    const workspace = await findRustTools(runner)
    options.onProgress('reading the schemas of the types')
    await describe(runner, workspace)
    options.onProgress(`compiling for ${TARGET}`)
    const made = await compile(options.quick === true ? withFlags(runner, QUICK) : runner, workspace)
    await mkdir(options.outDirectory, { recursive: true })
    const built: BuiltTool[] = []
    for (const tool of workspace.tools) built.push(await keep(tool, made, options.outDirectory, built))
    for (const { component, bytes } of built) options.onProgress(`wrote ${component} (${Math.ceil(bytes / 1000)} kB)`)
    return built
  } catch (error) {
    options.signal?.throwIfAborted()
    throw new Error(`Cannot build ${JSON.stringify(source)}: ${messageOf(error)}`, { cause: error })
  }
}

const selected = ({ tools, target }: RustWorkspace): string[] => [
  '--lib',
  '--target-dir',
  target,
  ...tools.flatMap((tool) => ['--package', tool.package]),
]

/**
 * What takes back what the profile of components costs: optimisation, above all at link time. Tests of schemas need none of
 * it. They keep the profile itself, so that what the compiler runs, macros above all, is compiled once for both.
 */
const QUICK = ['lto=off', 'linker-plugin-lto=no', 'opt-level=0', 'codegen-units=16', 'debug-assertions=yes']

const withEnv = (runner: Cargo, more: Cargo['compiler']['env']): Cargo => ({
  ...runner,
  compiler: { ...runner.compiler, env: { ...runner.compiler.env, ...more } },
})

const withFlags = (runner: Cargo, flags: readonly string[]): Cargo =>
  withEnv(runner, { CARGO_ENCODED_RUSTFLAGS: flags.map((flag) => `-C${flag}`).join('\x1f') })

function describe(runner: Cargo, workspace: RustWorkspace): Promise<void> {
  const writing = withEnv(withFlags(runner, [...QUICK, 'panic=unwind']), { BRAIN_TOOL_JSON: 'write' })
  const { host } = runner.compiler
  return cargo(writing, ['test', '--release', '--target', host, ...selected(workspace), METADATA_TEST])
}

/** Compiles all tools. @returns the component that each package's library became */
async function compile(runner: Cargo, workspace: RustWorkspace): Promise<ReadonlyMap<string, string>> {
  const made = new Map<string, string>()
  const parameters = ['build', '--release', '--target', TARGET, '--message-format', 'json-render-diagnostics']
  await cargo(runner, [...parameters, ...selected(workspace)], (line) => {
    const message = ARTIFACT.safeParse(JSON.parse(line))
    const component = message.data?.filenames.find((name) => name.endsWith('.wasm'))
    if (message.success && component !== undefined) made.set(message.data.target.name, component)
  })
  return made
}

async function keep(
  tool: RustTool,
  made: ReadonlyMap<string, string>,
  outDirectory: string,
  others: readonly BuiltTool[],
): Promise<BuiltTool> {
  const compiled = made.get(tool.library)
  if (compiled === undefined) throw new Error(`cargo made no component of the package "${tool.package}"`)
  const [metadata, bytes] = await Promise.all([readFile(join(tool.directory, 'tool.json')), readFile(compiled)])
  if (!bytes.includes(metadata))
    throw new Error(`the component of "${tool.package}" lacks its tool.json: put #[brain_tool::tool] on its function`)
  const { name } = METADATA.parse(JSON.parse(metadata.toString()))
  if (others.some((other) => other.name === name)) throw new Error(`two of its tools are called "${name}"`)
  const component = join(outDirectory, `${name}.wasm`)
  // Whoever reads it meanwhile reads the one before.
  await copyFile(compiled, `${component}.new`)
  await rename(`${component}.new`, component)
  return { name, component, bytes: bytes.length }
}
