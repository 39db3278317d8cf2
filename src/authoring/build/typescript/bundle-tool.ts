import { readFile } from 'node:fs/promises'
import { dirname, extname, relative, resolve } from 'node:path'
import type { BuildOptions, BuildResult, Loader, Plugin } from 'esbuild'
import { absentAmong, COMPONENT_GLOBALS, componentGlobals } from './component-globals.ts'
import type { AuthorPackages } from './author-packages.ts'
import { esbuildFailure } from './esbuild-failure.ts'
import { refuseNodeModules } from './node-modules.ts'
import { withoutUnusedZod, zodAsNamespace } from './zod-parts.ts'

/** QuickJS knows it; and the promises of async functions would be its own, which nobody settles in an export. */
const COMMON = {
  bundle: true,
  format: 'esm',
  target: 'es2023',
  supported: {
    'async-await': false,
    'async-generator': false,
    'for-await': false,
    using: false,
  },
  platform: 'neutral',
  mainFields: ['module', 'main'],
  conditions: ['module', 'import'],
  write: false,
  metafile: true,
  charset: 'ascii',
  logLevel: 'silent',
  legalComments: 'none',
} as const satisfies BuildOptions

export type ToolBundle = { readonly text: string; readonly warnings: readonly string[] }

/**
 * Joins a tool, what it imports and what runs it into one module, of ASCII, whose export is that of the world.
 *
 * @param exported which export of `source` is the tool
 * @param format of the module: strict CommonJS for who evaluates it later
 * @throws Error saying what the source asks for that a component has not
 */
export async function bundleTool(
  packages: AuthorPackages,
  source: string,
  exported: string,
  format: 'esm' | 'cjs' = 'esm',
): Promise<ToolBundle> {
  const folder = dirname(source)
  const entry = `import { toolComponent } from '@aexhq/brain/component'
import { ${exported === 'default' ? 'default' : JSON.stringify(exported)} as declared } from ${JSON.stringify(source)}
export const run = toolComponent(declared)`
  const options = { ...COMMON, absWorkingDir: folder, nodePaths: [...packages.nodePaths] }
  const build = async (more: BuildOptions): Promise<BuildResult<{ write: false; metafile: true }>> => {
    try {
      return await packages.esbuild.build({ ...options, ...more } as BuildOptions & { write: false; metafile: true })
    } catch (error) {
      throw new Error(esbuildFailure(error, folder), { cause: error })
    }
  }
  const joined = await build({
    stdin: { contents: entry, resolveDir: folder },
    external: ['brain:*', 'wasi:*', 'zod', 'zod/*'],
    inject: [...COMPONENT_GLOBALS],
    plugins: [clientOfComponents(packages.component), componentGlobals(), refuseNodeModules()],
  })
  const warnings = await checkGlobals(packages, joined, folder)
  const text = zodAsNamespace(joined.outputFiles[0]?.text ?? '')
  const whole = await build({
    stdin: { contents: text, resolveDir: folder },
    external: ['brain:*', 'wasi:*'],
    plugins: [withoutUnusedZod(text)],
    minify: true,
    format,
    ...(format === 'cjs' && { banner: { js: '"use strict";' } }),
  })
  return { text: whole.outputFiles[0]?.text ?? '', warnings }
}

/** In a component, the client is what is left of it there. */
const clientOfComponents = (path: string): Plugin => ({
  name: 'client-of-components',
  setup(build) {
    build.onResolve({ filter: /^@aexhq\/brain(?:\/component)?$/ }, () => ({ path, sideEffects: true }))
  },
})

/**
 * @returns what is to be said of packages that use what is not there, and may know how to do without
 * @throws Error for an own file that does
 */
async function checkGlobals(
  { esbuild }: AuthorPackages,
  { metafile }: BuildResult<{ metafile: true }>,
  folder: string,
): Promise<readonly string[]> {
  const [output] = Object.values(metafile.outputs)
  const inputs = Object.entries(output?.inputs ?? {}).flatMap(([name, { bytesInOutput }]) =>
    bytesInOutput > 0 ? [name] : [],
  )
  const files = inputs.filter((input) => !/^[a-z-]+:|^</.test(input)).map((input) => resolve(folder, input))
  const warnings: string[] = []
  for (const { name, remedy } of absentAmong(inputs)) {
    const users: string[] = []
    for (const file of files) if (await isUsedIn(esbuild, file, name)) users.push(file)
    const own = users.find((file) => !file.includes('/node_modules/'))
    const said = `${relative(folder, own ?? users[0] ?? '')} uses ${name}, which a component has not: ${remedy}`
    if (own !== undefined) throw new Error(said)
    warnings.push(said)
  }
  return warnings
}

/** Whether a file means the global of a name: neither a variable of its own nor a word of a comment. */
async function isUsedIn({ transform }: AuthorPackages['esbuild'], file: string, name: string): Promise<boolean> {
  const text = await readFile(file, 'utf8')
  if (!text.includes(name)) return false
  const found = '__brain_absent_global'
  const define = { [name]: found, [`globalThis.${name}`]: found }
  const { code } = await transform(text, { loader: loaderOf(file), define, logLevel: 'silent' })
  return code.includes(found)
}

const LOADERS: Readonly<Record<string, Loader>> = { '.cts': 'ts', '.mts': 'ts', '.ts': 'ts', '.tsx': 'tsx' }

const loaderOf = (file: string): Loader => LOADERS[extname(file)] ?? 'jsx'
