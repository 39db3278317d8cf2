import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readPage, root } from './pages.ts'

const PAGE = 'docs/seed-rules.md'
const TITLE = /\b(?:it|test|describe)\b(?:\.\w+)*(?:<[^(]*>)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1/g
/** The title after a table: `])('is refused: %s'`. */
const TITLE_OF_TABLE = /^\s*(?:\]|[^(\n]*\.each\(.*)\)\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1/gm

const rowsOf = (section: string): string[][] =>
  [...section.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, number = '', rest = '']) => [number, ...rest.split(' | ')])

const [shown = '', missing = ''] = readPage(PAGE).split('\n## Not there yet\n')
const sections = shown.split('\n## ').slice(1)
const tested = sections.flatMap(rowsOf)
const open = rowsOf(missing)

const titles = new Map<string, string[]>()
function titlesOf(file: string): string[] {
  const known = titles.get(file)
  if (known !== undefined) return known
  const text = existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : ''
  const found = [TITLE, TITLE_OF_TABLE].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, , title = '']) => title),
  )
  titles.set(file, found)
  return found
}

describe(PAGE, () => {
  it('has at least 99 rules, numbered without a gap, none twice', () => {
    const all = [...tested, ...open]
    expect(all.length).toBeGreaterThanOrEqual(99)
    expect(all.map(([number]) => Number(number))).toEqual(all.map((_, index) => index + 1))
    const rules = [...tested.map((row) => row[1]), ...open.map((row) => row[2])]
    expect(rules.filter((rule, index) => rules.indexOf(rule) !== index)).toEqual([])
    expect(tested.filter((row) => row.length !== 4)).toEqual([])
    // What is no row at all would not be seen.
    expect(readPage(PAGE).match(/^\|/gm)?.length).toBe(all.length + 2 * (sections.length + 1))
  })

  it('names a test that is there for every rule', () => {
    const lost = tested.filter(([, , file = '', title = '']) => {
      const path = /^`(test\/[\w/.-]+\.test\.ts)`$/.exec(file)?.[1] ?? ''
      return title.trim().length < 10 || !titlesOf(path).some((one) => one.includes(title))
    })
    expect(lost).toEqual([])
  })

  it('says of every other rule under which heading it is and what is missing', () => {
    const headings = sections.map((section) => section.split('\n')[0])
    expect(open.filter((row) => row.length !== 4 || !headings.includes(row[1]) || row[3]?.trim() === '')).toEqual([])
    expect(open.length).toBeGreaterThan(0)
  })
})
