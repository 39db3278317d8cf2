import { access, constants, mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPython } from './python/find-python.ts'
import { packageFor } from './python/python-package.ts'
import { pythonCompiler } from './python/python-compiler.ts'
import { runPython } from './python/run-python.ts'
import type { BuildOptions, BuiltTool, ToolBuilder } from './tool-builder.ts'

/** Of a checkout; beside what else is made from it and can be made again. */
const CACHE_IN_CHECKOUT = fileURLToPath(new URL('../../../node_modules/.cache/brain/python', import.meta.url))

/**
 * Builds a component of each function under `@tool` in a Python file: `python -m brain.build` does the work, in the
 * author's Python, and componentize-py is taken from there or installed into a cache.
 *
 * @throws PythonMissing without a Python that is new enough; else as {@link ToolBuilder} says
 */
export const buildPython: ToolBuilder = async (source, options) =>
  buildPythonIn(await defaultCache(options.env), source, options)

/** The same with a cache of one's own, which holds the compiler. */
export async function buildPythonIn(
  cacheDirectory: string,
  source: string,
  { outDirectory, onProgress, signal, env }: BuildOptions,
): Promise<readonly BuiltTool[]> {
  const python = await findPython(source, env)
  const beside = await packageFor(python, source)
  const run = { env, onLine: onProgress, ...(signal === undefined ? {} : { signal }) }
  const compiler = await pythonCompiler(python, cacheDirectory, run)
  signal?.throwIfAborted()
  const path = [beside, env['PYTHONPATH']].filter((one) => one !== undefined && one !== '').join(delimiter)
  const parameters = ['-m', 'brain.build', source, '--out', outDirectory, '--json', '--compiler', compiler]
  const { code, lines, stderr } = await runPython(python.command, parameters, {
    ...run,
    env: path === '' ? env : { ...env, PYTHONPATH: path },
    onLine: (line) => (line.startsWith('{') ? undefined : onProgress(line)),
  })
  signal?.throwIfAborted()
  if (code !== 0)
    throw new Error(stderr.trim() || `Cannot build ${JSON.stringify(source)}: ${python.command} ended with ${code}`)
  return (JSON.parse(lines.at(-1) ?? '') as { tools: BuiltTool[] }).tools
}

async function defaultCache(env: BuildOptions['env']): Promise<string> {
  const parent = join(CACHE_IN_CHECKOUT, '../../..')
  const isCheckout = await access(parent, constants.W_OK).then(
    () => true,
    () => false,
  )
  const own = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache')
  const directory = isCheckout ? CACHE_IN_CHECKOUT : join(own, 'brain/python')
  await mkdir(directory, { recursive: true })
  return directory
}
