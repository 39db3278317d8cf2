import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../../kernel/errors.ts'
import { withMetadata } from './metadata-section.ts'
import { packSnapshot } from './pack/pack-snapshot.ts'
import type { BuildOptions, BuiltTool, ToolBuilder } from './tool-builder.ts'
import { type AuthorPackages, findAuthorPackages } from './typescript/author-packages.ts'
import { bundleTool, type ToolBundle } from './typescript/bundle-tool.ts'
import { JAVASCRIPT_WORLD, writeJavaScriptWorld } from './typescript/javascript-world.ts'
import { type ExportedTool, readTools } from './typescript/read-tools.ts'
import { hasRoomFor, makeRoomy, type RoomyComponent, withScript } from './typescript/roomy-component.ts'

/** Builds a component of each tool that a module exports, declared with `tool({ …, run })` of `@aexhq/brain`. */
export const buildTypeScript: ToolBuilder = async (source, options) => {
  const packages = await findAuthorPackages(source)
  const world = await mkdtemp(join(tmpdir(), 'brain-world-'))
  try {
    await writeJavaScriptWorld(world)
    await mkdir(options.outDirectory, { recursive: true })
    const build: Build = { packages, world, source, options }
    const bundles = foreseenBundles(build)
    const tools = await readTools(packages, source, options.env, options.signal)
    if (options.quick !== undefined) options.quick.exportedTools = tools.map(({ exported }) => exported)
    const built: BuiltTool[] = []
    for (const tool of tools) built.push(await buildOne(build, tool, bundles.get(tool.exported)))
    return built
  } catch (error) {
    options.signal?.throwIfAborted()
    throw new Error(`Cannot build ${JSON.stringify(source)}: ${messageOf(error)}`, { cause: error })
  } finally {
    await rm(world, { recursive: true, force: true })
  }
}

type Build = {
  readonly packages: AuthorPackages
  readonly world: string
  readonly source: string
  readonly options: BuildOptions
}

const bundle = ({ packages, source, options }: Build, exported: string): Promise<ToolBundle> =>
  bundleTool(packages, source, exported, options.quick === undefined ? 'esm' : 'cjs')

/** Which exports are tools is known when the module was loaded; those that were tools last time most likely still are. */
function foreseenBundles(build: Build): ReadonlyMap<string, Promise<ToolBundle>> {
  const names = build.options.quick?.exportedTools ?? []
  return new Map(
    names.map((exported) => {
      const foreseen = bundle(build, exported)
      // What is wrong with the source is told by whoever needs the bundle.
      foreseen.catch(() => {})
      return [exported, foreseen]
    }),
  )
}

async function buildOne(
  build: Build,
  { exported, metadata }: ExportedTool,
  foreseen: Promise<ToolBundle> | undefined,
): Promise<BuiltTool> {
  const { options } = build
  const { name } = metadata
  options.signal?.throwIfAborted()
  options.onProgress(`bundling ${name}`)
  const { text, warnings } = await (foreseen ?? bundle(build, exported))
  for (const warning of warnings) options.onProgress(`note: ${warning}`)
  options.signal?.throwIfAborted()
  options.onProgress(`compiling ${name}`)
  const bytes = withMetadata(await compiled(build, text), metadata)
  const file = join(options.outDirectory, `${name}.wasm`)
  // Whoever reads it meanwhile reads the one before.
  await writeFile(`${file}.new`, bytes)
  await rename(`${file}.new`, file)
  options.onProgress(`wrote ${file}`)
  return { name, component: file, bytes: bytes.length }
}

async function compiled({ packages, world, options }: Build, script: string): Promise<Uint8Array> {
  const { quick } = options
  if (quick !== undefined) {
    const make = (): Promise<RoomyComponent> => makeRoomy(packages, world, script)
    return withScript(await quick.roomyComponent.get(make, (made) => hasRoomFor(made, script)), script)
  }
  const { component } = await packages.qjs.componentize({
    witPath: world,
    world: JAVASCRIPT_WORLD,
    jsSource: script,
    sync: true,
    optSize: true,
  })
  return packSnapshot(component)
}
