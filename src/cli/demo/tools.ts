import { access, constants, mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedPythonTool, type CachedBuildOptions } from '../../authoring/build/python/cached-python-tool.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A component that `examples-rust` builds; its bytes are committed, so no toolchain is needed. */
export const rustTool = (name: string): Promise<Buffer> =>
  readFile(join(ROOT, 'test/fixtures/components', `${name}.wasm`))

/** Where Python components are kept between runs: in the checkout, or in `otherwise` where that cannot be written. */
export async function pythonCache(otherwise: string): Promise<string> {
  const directory = join(ROOT, 'node_modules/.cache/brain/python')
  try {
    await mkdir(directory, { recursive: true })
    await access(directory, constants.W_OK)
    return directory
  } catch {
    return join(otherwise, 'python')
  }
}

export type BuiltTool = { readonly bytes: Buffer } | { readonly reason: string }

/**
 * Builds a tool of `examples-python`, or takes it from the cache.
 * @param folder one with `tool.py`: the name of an example, or an absolute path
 * @returns its bytes, or why this machine cannot build it
 */
export async function pythonTool(folder: string, options: Omit<CachedBuildOptions, 'env'>): Promise<BuiltTool> {
  const built = await cachedPythonTool(resolve(ROOT, 'examples-python', folder), { ...options, env: process.env })
  return built.built ? { bytes: await readFile(built.component) } : { reason: built.reason }
}
