import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import type { Environment } from './environment.ts'
import { cacheDirectoryOf } from './tool/cache-directory.ts'

/**
 * Keeps what Node makes of modules from one command to the next: most of them take longer to load than to work.
 *
 * In the user's own directory, and nowhere where there is none. By itself Node keeps it below the temporary directory, which
 * others share: whoever makes the folder first can put there what is run.
 */
export function keepCompiled(env: Environment): void {
  const directory = cacheDirectoryOf(env)
  if (directory !== undefined) enableCompileCache(join(directory, 'modules'))
}
