import { stat } from 'node:fs/promises'
import { basename, extname, join, resolve } from 'node:path'
import type { BuildOptions, BuiltTool, ToolBuilder } from './tool-builder.ts'

export type Language = 'python' | 'rust' | 'typescript'

const OF_EXTENSION: Readonly<Record<string, Language>> = {
  '.js': 'typescript',
  '.mjs': 'typescript',
  '.mts': 'typescript',
  '.py': 'python',
  '.ts': 'typescript',
}

/** What a folder may hold, in the order in which it is looked for. */
const IN_FOLDERS: readonly (readonly [string, Language])[] = [
  ['Cargo.toml', 'rust'],
  ['tool.py', 'python'],
  ['tool.ts', 'typescript'],
]

const TAKEN = 'take a .py, .ts, .mts, .js or .mjs file, a Cargo.toml, or a folder with Cargo.toml, tool.py or tool.ts'

/** Builders, loaded when they are needed. */
const BUILDERS: Readonly<Record<Language, () => Promise<ToolBuilder>>> = {
  python: async () => (await import('./python.ts')).buildPython,
  rust: async () => (await import('./rust.ts')).buildRust,
  typescript: async () => (await import('./typescript.ts')).buildTypeScript,
}

/** A file or a folder, and which language it is of. */
export type Source = { readonly path: string; readonly language: Language }

/**
 * Finds out what a path is the source of.
 *
 * @throws Error naming what is taken
 */
export async function sourceAt(given: string): Promise<Source> {
  const path = resolve(given)
  const what = `Cannot build ${JSON.stringify(given)}`
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw new Error(`${what}: there is no such file or folder`)
  if (found.isDirectory()) {
    for (const [name, language] of IN_FOLDERS)
      if (await isFile(join(path, name))) return { path: language === 'rust' ? path : join(path, name), language }
    throw new Error(`${what}: the folder holds no tool; ${TAKEN}`)
  }
  if (basename(path) === 'Cargo.toml') return { path: join(path, '..'), language: 'rust' }
  const language = OF_EXTENSION[extname(path)]
  if (language === undefined || /\.d\.m?ts$/.test(path)) throw new Error(`${what}: it is no source of a tool; ${TAKEN}`)
  return { path, language }
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  )

/**
 * Builds whatever tools there are at a path, by its language.
 *
 * @throws Error as {@link sourceAt} and the builder of the language do
 */
export async function buildTools(given: string, options: BuildOptions): Promise<readonly BuiltTool[]> {
  const { path, language } = await sourceAt(given)
  const build = await BUILDERS[language]()
  return build(path, { ...options, outDirectory: resolve(options.outDirectory) })
}
