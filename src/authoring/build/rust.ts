import { copyFile, mkdir, readFile, realpath, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { messageOf } from '../../kernel/errors.ts'
import { type Cargo, cargo } from './rust/cargo.ts'
import { findRustCompiler, type RustCompiler, TARGET } from './rust/rust-compiler.ts'
import { findRustTools, type RustTool, type RustWorkspace } from './rust/rust-tools.ts'
import type { BuildOptions, BuiltTool, ToolBuilder } from './tool-builder.ts'

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
    const find = (): Promise<RustCompiler> => findRustCompiler(options.env, directory)
    const compiler = await (options.quick === undefined ? find() : options.quick.rustCompiler.get(find))
    const { signal, onProgress, quick } = options
    const once: Cargo = { compiler, directory, signal, onProgress }
    const runner = quick === undefined ? once : withEnv(once, INCREMENTAL)
    const workspace = await findRustTools(runner)
    const build: Build = { runner: quick === undefined ? runner : withFlags(runner, QUICK), workspace, options }
    const built = quick !== undefined && (await isDescribed(workspace)) ? await foreseen(build) : await inOrder(build)
    for (const { component, bytes } of built) onProgress(`wrote ${component} (${Math.ceil(bytes / 1000)} kB)`)
    return built
  } catch (error) {
    options.signal?.throwIfAborted()
    throw new Error(`Cannot build ${JSON.stringify(source)}: ${messageOf(error)}`, { cause: error })
  }
}

type Build = { readonly runner: Cargo; readonly workspace: RustWorkspace; readonly options: BuildOptions }

async function inOrder(build: Build): Promise<readonly BuiltTool[]> {
  await describe(build)
  return await compile(build)
}

/** What the types say rarely changes: compiled first, a tool can be admitted while that is found out. */
async function foreseen(build: Build): Promise<readonly BuiltTool[]> {
  const { workspace, options } = build
  const before = await metadataIn(workspace)
  const built = await compile(build)
  options.onLikely?.(built)
  await describe(build)
  return (await metadataIn(workspace)) === before ? built : await compile(build)
}

const isDescribed = (workspace: RustWorkspace): Promise<boolean> =>
  metadataIn(workspace).then(
    () => true,
    () => false,
  )

const metadataIn = async ({ tools }: RustWorkspace): Promise<string> =>
  JSON.stringify(await Promise.all(tools.map(({ directory }) => readFile(join(directory, 'tool.json'), 'utf8'))))

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

/**
 * The compiler keeps what it made of each function: longer the first time, a third less after it. Not as CARGO_INCREMENTAL,
 * which sccache refuses and with which an author may say no.
 */
const INCREMENTAL = { CARGO_PROFILE_RELEASE_INCREMENTAL: 'true' }

const withEnv = (runner: Cargo, more: Cargo['compiler']['env']): Cargo => ({
  ...runner,
  compiler: { ...runner.compiler, env: { ...runner.compiler.env, ...more } },
})

const withFlags = (runner: Cargo, flags: readonly string[]): Cargo =>
  withEnv(runner, { CARGO_ENCODED_RUSTFLAGS: flags.map((flag) => `-C${flag}`).join('\x1f') })

function describe({ runner, workspace, options }: Build): Promise<void> {
  options.onProgress('reading the schemas of the types')
  const writing = withEnv(withFlags(runner, [...QUICK, 'panic=unwind']), { BRAIN_TOOL_JSON: 'write' })
  const { host } = runner.compiler
  return cargo(writing, ['test', '--release', '--target', host, ...selected(workspace), METADATA_TEST])
}

/** Compiles all tools, and keeps the components that their libraries became. */
async function compile({ runner, workspace, options }: Build): Promise<readonly BuiltTool[]> {
  options.onProgress(`compiling for ${TARGET}`)
  const made = new Map<string, string>()
  const parameters = ['build', '--release', '--target', TARGET, '--message-format', 'json-render-diagnostics']
  await cargo(runner, [...parameters, ...selected(workspace)], (line) => {
    const message = ARTIFACT.safeParse(JSON.parse(line))
    const component = message.data?.filenames.find((name) => name.endsWith('.wasm'))
    if (message.success && component !== undefined) made.set(message.data.target.name, component)
  })
  await mkdir(options.outDirectory, { recursive: true })
  const built: BuiltTool[] = []
  for (const tool of workspace.tools) built.push(await keep(tool, made, options.outDirectory, built))
  return built
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
