import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readPage, root } from './pages.ts'

/** The pages, with how many rules their seeds have at least. */
const SEEDS = [
  ['docs/seed-rules.md', 99],
  ['docs/seed-rules-distributed-tools.md', 41],
  ['docs/seed-rules-tool-specs.md', 26],
] as const

const TITLE = /\b(?:it|test|describe)\b(?:\.\w+)*(?:<[^(]*>)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1/g
/** The title after a table: `])('is refused: %s'`. */
const TITLE_OF_TABLE = /^\s*(?:\]|[^(\n]*\.each\(.*)\)\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1/gm

/** In Python a test has a name and no title. */
const NAME_IN_PYTHON = /^ +def (test_\w+)\(/gm

const rowsOf = (section: string): string[][] =>
  [...section.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, number = '', rest = '']) => [number, ...rest.split(' | ')])

const TEST_FILE = /^`(test\/[\w/.-]+\.test\.ts|examples-python\/brain-patterns\/tests\/test_\w+\.py)`$/

const titles = new Map<string, string[]>()
function titlesOf(file: string): string[] {
  const known = titles.get(file)
  if (known !== undefined) return known
  const text = existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : ''
  const found = file.endsWith('.py')
    ? [...text.matchAll(NAME_IN_PYTHON)].map(([, name = '']) => name)
    : [TITLE, TITLE_OF_TABLE].flatMap((pattern) => [...text.matchAll(pattern)].map(([, , title = '']) => title))
  titles.set(file, found)
  return found
}

describe.each(SEEDS)('%s', (page, atLeast) => {
  const sections = readPage(page).split('\n## ').slice(1)
  const tested = sections.flatMap(rowsOf)

  it('has all rules, numbered without a gap, none twice', () => {
    expect(tested.length).toBeGreaterThanOrEqual(atLeast)
    expect(tested.map(([number]) => Number(number))).toEqual(tested.map((_, index) => index + 1))
    const rules = tested.map((row) => row[1])
    expect(rules.filter((rule, index) => rules.indexOf(rule) !== index)).toEqual([])
    expect(tested.filter((row) => row.length !== 4)).toEqual([])
    // What is no row at all would not be seen.
    expect(readPage(page).match(/^\|/gm)?.length).toBe(tested.length + 2 * sections.length)
  })

  it('names a test that is there for every rule', () => {
    const lost = tested.filter(([, , file = '', title = '']) => {
      const path = TEST_FILE.exec(file)?.[1] ?? ''
      return title.trim().length < 10 || !titlesOf(path).some((one) => one.includes(title))
    })
    expect(lost).toEqual([])
  })
})
