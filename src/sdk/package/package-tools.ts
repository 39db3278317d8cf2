import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../../kernel/errors.ts'
import { parseJson } from '../../kernel/json.ts'
import { declarationOf } from '../declare/declared-tool.ts'
import { exportName } from '../runtime/node-package.ts'
import { consumerModule, consumerTypings, MARK, type ExportedTool } from './consumer-files.ts'
import { toolPackageOf, type ToolEntry, type ToolPackage } from './tool-package.ts'

/** How {@link packageTools} works. */
export type PackageToolsOptions = {
  /** Writes nothing. Default: false. */
  readonly dryRun?: boolean
}

/** What was made of a package, or would be. */
export type PackagedTools = {
  readonly package: string
  readonly version: string
  readonly tools: readonly { readonly name: string; readonly entry: string; readonly export: string }[]
  /** Paths from the package; `written` also where it is only a dry run that would write. */
  readonly files: readonly { readonly path: string; readonly state: 'written' | 'unchanged' }[]
}

type File = { readonly path: string; readonly text: string }

/**
 * Makes what applications import of a package with tools: for each entry of `exports` in its package.json with the
 * condition `brain-tool`, a module of factories and their typings, at the paths that the entry has for `default` and
 * `types`. Run it after the package's own build. The modules with the tools are evaluated in this process.
 *
 * @param directory of the package.json; default: the working directory
 * @throws Error, before anything is written: for a package.json or a module that is not as it must be, for an export that
 * is no tool with `run`, for options that JSON Schema cannot say, and for a file in the way that was not made by this
 */
export async function packageTools(
  directory: string = process.cwd(),
  { dryRun = false }: PackageToolsOptions = {},
): Promise<PackagedTools> {
  const home = await realpath(resolve(directory))
  try {
    const found = toolPackageOf(parseJson(await readFile(join(home, 'package.json'), 'utf8'), 'package.json'))
    const tools: PackagedTools['tools'][number][] = []
    const files: File[] = []
    for (const entry of found.entries) {
      const exported = await toolsOf(home, found, entry)
      for (const { metadata, export: name } of exported)
        tools.push({ name: metadata.name, entry: entry.entry, export: name })
      files.push({ path: entry.module, text: consumerModule(exported) })
      files.push({ path: entry.typings, text: consumerTypings(exported) })
    }
    // One after the other: of several that are in the way, always the first is named.
    const before = await Array.fromAsync(files, (file) => textOf(home, file))
    const states = files.map(({ text }, index) => (before[index] === text ? 'unchanged' : 'written'))
    const stale = dryRun ? [] : files.filter((_, index) => states[index] === 'written')
    for (const file of stale) await write(home, file)
    const listed = files.map(({ path }, index) => ({ path, state: states[index] ?? 'written' }) as const)
    return { package: found.name, version: found.version, tools, files: listed }
  } catch (cause) {
    throw new Error(`Cannot package the tools of ${home}: ${messageOf(cause)}`, { cause })
  }
}

async function toolsOf(home: string, found: ToolPackage, { entry, source }: ToolEntry): Promise<ExportedTool[]> {
  const path = await realpath(join(home, source)).catch(() => undefined)
  if (path === undefined) throw new Error(`${source} is not there: run the package's build first`)
  if (!path.startsWith(home + sep)) throw new Error(`${source} is not in the package`)
  let module: Readonly<Record<string, unknown>>
  try {
    module = (await import(pathToFileURL(path).href)) as typeof module
  } catch (cause) {
    throw new Error(`${source} cannot be imported: ${messageOf(cause)}`, { cause })
  }
  const names = Object.keys(module).toSorted()
  if (names.length === 0) throw new Error(`${source} exports no tools`)
  return names.map((name) => {
    const { name: package_, version } = found
    const implementation = { type: 'node_package', package: package_, version, entry, export: name }
    return { export: name, metadata: metadataOf(module[name], `"${name}" of ${source}`, name), implementation }
  })
}

function metadataOf(factory: unknown, what: string, name: string): ExportedTool['metadata'] {
  if (!exportName.safeParse(name).success) throw new Error(`${what} has a name that cannot be imported`)
  const declared = declarationOf(factory)
  if (declared === undefined)
    throw new Error(`${what} is no tool, and importing it would load the tools: export it from an entry of its own`)
  if (declared.run === undefined)
    throw new Error(`${what} is a tool without run, which needs no packaging: export it from an entry of its own`)
  return declared.metadata()
}

/** @throws Error when there is something that was not made by this */
async function textOf(home: string, { path }: File): Promise<string | undefined> {
  const file = join(home, path)
  // What is made must stay where the package is, whatever its folders link to.
  const folder = await realpath(dirname(file)).catch(() => undefined)
  if (folder !== undefined && folder !== home && !folder.startsWith(home + sep))
    throw new Error(`${path} is not in the package`)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined || text.startsWith(MARK)) return text
  throw new Error(
    `${path} is in the way: it was not made by brain-tools. Give "default" and "types" other files, or remove it`,
  )
}

async function write(home: string, { path, text }: File): Promise<void> {
  const file = join(home, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}
