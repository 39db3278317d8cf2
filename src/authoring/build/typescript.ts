import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../../kernel/errors.ts'
import { withMetadata } from './metadata-section.ts'
import { packSnapshot } from './pack/pack-snapshot.ts'
import type { BuildOptions, BuiltTool, ToolBuilder } from './tool-builder.ts'
import { type AuthorPackages, findAuthorPackages } from './typescript/author-packages.ts'
import { bundleTool } from './typescript/bundle-tool.ts'
import { JAVASCRIPT_WORLD, writeJavaScriptWorld } from './typescript/javascript-world.ts'
import { type ExportedTool, readTools } from './typescript/read-tools.ts'

/** Builds a component of each tool that a module exports, declared with `tool({ …, run })` of `@aexhq/brain`. */
export const buildTypeScript: ToolBuilder = async (source, options) => {
  const packages = await findAuthorPackages(source)
  const world = await mkdtemp(join(tmpdir(), 'brain-world-'))
  try {
    await writeJavaScriptWorld(world)
    const tools = await readTools(packages, source, options.env, options.signal)
    await mkdir(options.outDirectory, { recursive: true })
    const built: BuiltTool[] = []
    for (const tool of tools) built.push(await buildOne({ packages, world, source, options }, tool))
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

async function buildOne(build: Build, { exported, metadata }: ExportedTool): Promise<BuiltTool> {
  const { packages, world, source, options } = build
  const { name } = metadata
  options.signal?.throwIfAborted()
  options.onProgress(`bundling ${name}`)
  const { text, warnings } = await bundleTool(packages, source, exported)
  for (const warning of warnings) options.onProgress(`note: ${warning}`)
  options.signal?.throwIfAborted()
  options.onProgress(`compiling ${name}`)
  const { component } = await packages.qjs.componentize({
    witPath: world,
    world: JAVASCRIPT_WORLD,
    jsSource: text,
    sync: true,
    optSize: true,
  })
  const bytes = withMetadata(packSnapshot(component), metadata)
  const file = join(options.outDirectory, `${name}.wasm`)
  // Whoever reads it meanwhile reads the one before.
  await writeFile(`${file}.new`, bytes)
  await rename(`${file}.new`, file)
  options.onProgress(`wrote ${file}`)
  return { name, component: file, bytes: bytes.length }
}
