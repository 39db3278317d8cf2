import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Every page that a reader of the project meets, by its path from the top. */
export const PAGES: readonly string[] = globSync(['*.md', 'docs/**/*.md', 'examples{,-*}/**/*.md'], { cwd: root })
  .filter((path) => !path.includes('node_modules'))
  .sort()

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8')
