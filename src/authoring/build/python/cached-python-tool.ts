import { createHash } from 'node:crypto'
import { access, glob, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { buildPythonIn } from '../python.ts'
import type { BuildOptions } from '../tool-builder.ts'
import { PythonMissing } from './find-python.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { PACKAGE_IN_CHECKOUT } from './python-package.ts'
import { COMPONENTIZE_PY } from './python-compiler.ts'

export type CachedBuildOptions = Partial<Pick<BuildOptions, 'onProgress'>> &
  Pick<BuildOptions, 'env' | 'signal'> & {
    /** Holds the compiler and the built components; made when it is not there. */
    readonly cacheDirectory: string
  }

/** A component, or, on a machine without a suitable Python, why there is none and what to install. */
export type CachedPythonTool =
  | { readonly built: true; readonly component: string; readonly fromCache: boolean }
  | { readonly built: false; readonly reason: string }

/**
 * Builds the one tool of a folder with `tool.py`, or takes it from a cache, where it is under the digest of everything
 * that it is made of. For the demo, the bench and the tests of a checkout.
 *
 * @throws Error when the tool does not compile, or the compiler cannot be installed
 */
export async function cachedPythonTool(folder: string, options: CachedBuildOptions): Promise<CachedPythonTool> {
  const component = join(options.cacheDirectory, `${basename(folder)}-${await digestOf(folder)}.wasm`)
  if (await exists(component)) return { built: true, component, fromCache: true }
  await mkdir(options.cacheDirectory, { recursive: true })
  return oneAtATime(`${component}.lock`, () => buildInto(component, folder, options), options.signal)
}

async function buildInto(component: string, folder: string, options: CachedBuildOptions): Promise<CachedPythonTool> {
  const { cacheDirectory, env, onProgress = () => {}, signal } = options
  if (await exists(component)) return { built: true, component, fromCache: true }
  const aside = await mkdtemp(join(cacheDirectory, 'build-'))
  try {
    const build = { outDirectory: aside, onProgress, env, ...(signal === undefined ? {} : { signal }) }
    const [tool] = await buildPythonIn(cacheDirectory, join(folder, 'tool.py'), build)
    if (tool === undefined) throw new Error(`Cannot build ${JSON.stringify(folder)}: there is no tool in it`)
    await rename(tool.component, component)
    return { built: true, component, fromCache: false }
  } catch (error) {
    if (error instanceof PythonMissing) return { built: false, reason: error.message }
    throw error
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

async function digestOf(folder: string): Promise<string> {
  const digest = createHash('sha256').update(COMPONENTIZE_PY)
  const own = await Array.fromAsync(glob(join(folder, '*.py')))
  const shared = await Array.fromAsync(glob(join(PACKAGE_IN_CHECKOUT, '**/*.{py,wit}')))
  for (const path of [...own.toSorted(), ...shared.toSorted()]) {
    const content = await readFile(path)
    digest.update(`${basename(dirname(path))}/${basename(path)} ${content.length}\n`).update(content)
  }
  return digest.digest('hex').slice(0, 16)
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
