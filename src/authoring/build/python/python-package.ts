import { access } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Python } from './find-python.ts'

/** The package in a checkout. The published server is without it. */
export const PACKAGE_IN_CHECKOUT = fileURLToPath(
  new URL('../../../../examples-python/brain-patterns/src', import.meta.url),
)

/**
 * Where Python finds `brain-patterns` beside what is installed for it.
 *
 * @returns a folder for PYTHONPATH; undefined where it is installed
 * @throws Error naming the command that installs it
 */
export async function packageFor(python: Python, source: string): Promise<string | undefined> {
  if (python.hasPackage) return undefined
  const isThere = await access(PACKAGE_IN_CHECKOUT).then(
    () => true,
    () => false,
  )
  if (isThere) return PACKAGE_IN_CHECKOUT
  const remedy = `${python.command} -m pip install "brain-patterns[build]"`
  throw new Error(`Cannot build ${JSON.stringify(source)}: ${python.command} has no brain-patterns. Run: ${remedy}`)
}
