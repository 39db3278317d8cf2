// Writes the generated part of docs/configuration.md; test/docs holds that it is up to date.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { limitsTable } from './limits-table.ts'

const page = join(import.meta.dirname, '../../docs/configuration.md')
const GENERATED = /(<!-- limits: written by `npm run docs` -->\n)[^]*?(<!-- end -->)/

const text = await readFile(page, 'utf8')
if (!GENERATED.test(text)) throw new Error(`Cannot write the table of limits: ${page} has no place for it`)
await writeFile(
  page,
  text.replace(GENERATED, (_all, before: string, after: string) => `${before}${limitsTable()}\n${after}`),
)
