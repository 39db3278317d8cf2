import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../environment.ts'

/** Where components stay admitted from one command to the next (XDG Base Directory); undefined = nowhere. */
export function cacheDirectoryOf(env: Environment): string | undefined {
  const base = env['XDG_CACHE_HOME']
  if (base !== undefined && base.startsWith('/')) return join(base, 'brain')
  const home = env['HOME'] ?? homedir()
  return home.startsWith('/') ? join(home, '.cache', 'brain') : undefined
}
