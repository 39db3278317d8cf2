import { readFile, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { clip, messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json, parseJson } from '../../kernel/json.ts'
import { BrainError } from '../brain-error.ts'
import { declarationOf } from '../declare/declared-tool.ts'
import { parseOptions } from '../declare/parse-options.ts'
import type { HostExecutable } from '../declare/tool.ts'
import { nodePackage, type NodePackage } from './node-package.ts'
import { TOOL_CONDITION, toolFileOf } from './tool-entries.ts'

/** A tool with its options, ready to be called. */
export type LoadedTool = { readonly name: string; readonly executable: HostExecutable }

/** Nobody writes a package.json of more. */
const MOST_MANIFEST_BYTES = 1024 * 1024

/**
 * Imports a packaged tool: the package of exactly this version, of its entry only what `exports` of its package.json gives
 * for the condition `brain-tool`, and of that file only what lies in the package's own directory, links followed. The
 * module is evaluated in this process.
 *
 * @param implementation what {@link nodePackage} describes
 * @param directory where the package is installed: it holds `node_modules`, or is the package itself
 * @returns the tool, with its options parsed
 * @throws BrainError `tool_unavailable`, saying what is not as it should be; `invalid_request` for what is no
 * `node_package`
 */
export async function loadTool(implementation: unknown, directory: string = process.cwd()): Promise<LoadedTool> {
  const parsed = nodePackage.safeParse(implementation)
  if (!parsed.success)
    throw new BrainError(0, 'invalid_request', clip(`Cannot load a tool: ${z.prettifyError(parsed.error)}`))
  const asked = parsed.data
  try {
    return await load(asked, directory)
  } catch (cause) {
    const { package: name, version, entry, export: exported } = asked
    const what = `Cannot load "${exported}" of "${entry}" in ${name}@${version}`
    throw new BrainError(0, 'tool_unavailable', clip(`${what}: ${messageOf(cause)}`), { cause })
  }
}

async function load(asked: NodePackage, directory: string): Promise<LoadedTool> {
  const { home, manifest } = await packageIn(directory, asked.package)
  const found = isJsonObject(manifest) ? manifest['version'] : undefined
  if (found !== asked.version) throw new Error(`version ${quoted(found)} is installed`)
  const file = toolFileOf(manifest, asked.entry)
  if (file === undefined)
    throw new Error(`its package.json exports no such entry with the condition "${TOOL_CONDITION}"`)
  const module = (await import(pathToFileURL(await fileIn(home, file)).href)) as Readonly<Record<string, unknown>>
  return toolOf(module, asked)
}

/** @throws Error saying that a module has no such tool */
function toolOf(module: Readonly<Record<string, unknown>>, { export: name, configuration }: NodePackage): LoadedTool {
  if (!Object.hasOwn(module, name)) throw new Error('there is no such export')
  const declared = declarationOf(module[name])
  if (declared?.run === undefined || declared.input === undefined)
    throw new Error('the export is no tool that was declared with run')
  const tool = declared.metadata().name
  const options = parseOptions(configuration, declared.options, `Cannot place tool "${tool}"`)
  const { run, input, output } = declared
  const executable: HostExecutable = { type: 'function', run, input, output, options }
  return { name: tool, executable }
}

type Package = { readonly home: string; readonly manifest: Json }

async function packageIn(directory: string, name: string): Promise<Package> {
  const installed = await packageAt(join(directory, 'node_modules', ...name.split('/')))
  if (installed !== undefined) return installed
  const own = await packageAt(directory)
  if (isJsonObject(own?.manifest) && own.manifest['name'] === name) return own
  throw new Error(`the package is not installed in ${directory}`)
}

async function packageAt(path: string): Promise<Package | undefined> {
  const home = await realpath(path).catch(() => undefined)
  if (home === undefined) return undefined
  const file = join(home, 'package.json')
  const size = await stat(file).then(
    (found) => (found.isFile() ? found.size : undefined),
    () => undefined,
  )
  if (size === undefined) return undefined
  if (size > MOST_MANIFEST_BYTES) throw new Error(`its package.json is larger than ${MOST_MANIFEST_BYTES} bytes`)
  return { home, manifest: parseJson(await readFile(file, 'utf8'), 'package.json') }
}

/** The real path of a file of a package. Where the package itself is linked to does not matter, what it links to does. */
async function fileIn(home: string, file: string): Promise<string> {
  const path = await realpath(join(home, file)).catch(() => undefined)
  if (path === undefined) throw new Error(`it names ${quoted(file)}, which is not there: is the package built?`)
  if (!path.startsWith(home + sep)) throw new Error(`it names ${quoted(file)}, which is not in the package`)
  return path
}

const quoted = (value: Json | undefined): string => clip(JSON.stringify(value) ?? 'none', 200)
