import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { limitsTable } from '../../.ci/docs/limits-table.ts'
import { loadConfig } from '../../src/config/config.ts'
import { LIMITS } from '../../src/contract/limits.ts'
import { toProblem } from '../../src/http/problem.ts'
import { BrainError, ERRORS, type ErrorCode } from '../../src/kernel/errors.ts'
import { fencedBlocks } from './fenced-blocks.ts'
import { PAGES, readPage, root } from './pages.ts'

/** Rows of a page's tables whose first cell is code: that code, and the other cells. */
function rowsOf(page: string, heading?: string): { name: string; cells: readonly string[] }[] {
  const text = readPage(page)
  const from = heading === undefined ? 0 : text.indexOf(`## ${heading}\n`)
  const next = heading === undefined ? -1 : text.indexOf('\n## ', from + 1)
  const rows = text.slice(from, next < 0 ? undefined : next).matchAll(/^\| `([^`]+)` \|(.*)\|$/gm)
  return [...rows].map(([, name = '', rest = '']) => ({ name, cells: rest.split(' | ').map((cell) => cell.trim()) }))
}

const sorted = (names: readonly (string | undefined)[]): (string | undefined)[] =>
  names.toSorted((a = '', b = '') => a.localeCompare(b))

const namesOf = (page: string, heading?: string): (string | undefined)[] =>
  sorted(rowsOf(page, heading).map(({ name }) => name))

const source = (pattern: string): string =>
  globSync(pattern, { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n')

describe('docs/configuration.md', () => {
  const page = 'docs/configuration.md'
  const config = source('src/config/config.ts')

  it('holds the table of limits as src/contract/limits.ts has them (else: npm run docs)', () => {
    expect(readPage(page)).toContain(`\n${limitsTable()}\n`)
  })

  it('names every variable that the configuration reads, once, and no other', () => {
    const read = [...config.matchAll(/^ {2}(BRAIN_[A-Z_]+):/gm)].map(([, name]) => name)
    const limits = Object.values(LIMITS).map(({ variable }) => variable)
    expect(read.length).toBeGreaterThan(10)
    expect(namesOf(page)).toEqual(sorted([...read, ...limits]))
  })

  it('shows the defaults that an empty environment gives', () => {
    const shown = new Map(rowsOf(page).map(({ name, cells }) => [name, cells[0]?.replaceAll('`', '')]))
    const { listen, dataDirectory, logLevel, isUnsafeAllowed, isolation, scriptedModel, ...rest } = loadConfig({})
    expect(shown.get('BRAIN_LISTEN')).toBe(`${listen.host}:${listen.port}`)
    expect(shown.get('BRAIN_DATA_DIR')).toBe(dataDirectory)
    expect(shown.get('BRAIN_LOG_LEVEL')).toBe(logLevel)
    expect(shown.get('BRAIN_ENV_UNSAFE')).toBe(isUnsafeAllowed ? '1' : '0')
    expect(shown.get('BRAIN_ENV_ISOLATION')).toBe(isolation)
    expect(shown.get('BRAIN_SCRIPTED_MODEL')).toBe(scriptedModel === undefined ? '0' : '1')
    expect(rest).toMatchObject({
      tenants: [{ id: 'local', tokens: [] }],
      publicUrl: undefined,
      corsOrigins: [],
      secretKey: undefined,
    })
    expect(rest).toMatchObject({ sessionIdleTtlMs: undefined, tenants: [{ allow: { secrets: [], filesystem: [] } }] })
  })

  it('is where every variable leads that another page names', () => {
    const ofTests = ['BRAIN_URL', 'BRAIN_SOAK', 'BRAIN_RUST_TOOLCHAIN', 'BRAIN_STARLINGMONKEY']
    const ofExamples = ['BRAIN_TOOLS', 'BRAIN_API_KEY', 'BRAIN_TOOLS_KEY']
    const known = new Set([...rowsOf(page).map(({ name }) => name), ...ofTests, ...ofExamples])
    const named = PAGES.flatMap((path) => [...readPage(path).matchAll(/\bBRAIN_[A-Z_]+\b/g)].map(([name]) => name))
    expect([...new Set(named)].filter((name) => !known.has(name) && !name.endsWith('_'))).toEqual([])
  })
})

describe('docs/errors.md', () => {
  const page = 'docs/errors.md'

  it('has every code of Brain with its HTTP status and whether it is retryable, and no other', () => {
    const shown = rowsOf(page, 'Codes of Brain').map(({ name, cells }) => [name, Number(cells[0]), cells[1] === 'yes'])
    const real = (Object.keys(ERRORS) as ErrorCode[]).map((code) => {
      const { status, body } = toProblem(new BrainError(code, 'text'))
      return [code, status, body.retryable]
    })
    const byCode = (a: unknown[], b: unknown[]): number => String(a[0]).localeCompare(String(b[0]))
    expect(shown.toSorted(byCode)).toEqual(real.toSorted(byCode))
  })

  it('calls reserved exactly the codes that nothing in the source answers', () => {
    const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !/kernel\/errors|http\/problem/.test(file))
    const text = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
    const unused = Object.keys(ERRORS).filter((code) => !text.includes(`'${code}'`))
    const reserved = rowsOf(page, 'Codes of Brain').filter(({ cells }) => cells[2]?.startsWith('Reserved'))
    expect(sorted(reserved.map(({ name }) => name))).toEqual(sorted(unused))
  })

  it('has every fault of a refused upload, and no other', () => {
    const faults = [...source('src/sandbox/admission/refusal.ts').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(
      ([, name]) => name,
    )
    expect(faults.length).toBeGreaterThan(5)
    expect(namesOf(page, 'Refused uploads')).toEqual(sorted(faults))
  })

  it('names outcomes and codes of calls that the source knows', () => {
    const text = source('src/**/*.ts')
    const names = rowsOf(page, 'Outcomes').map(({ name }) => name)
    expect(names.length).toBeGreaterThan(15)
    expect(names.filter((name) => !text.includes(`'${name}'`))).toEqual([])
  })
})

describe('docs/api.md', () => {
  it('lists every route of the server, and no other', () => {
    const text = source('src/http/routes/*.ts').replaceAll(
      '`${base}/*`',
      "'/v1/sessions/:id/environments/:env/files/*'",
    )
    const routes = [
      ...text.matchAll(/app\.(get|post|put|delete)(?:<[^>]*(?:\{[^}]*\})*[^>]*>)?\(\s*(?:'([^']+)'|base\b)/g),
    ].map(([, method = '', path = '/v1/sessions/:id/environments/:env/files']) => `${method.toUpperCase()} ${path}`)
    expect(routes.length).toBeGreaterThan(15)
    expect(namesOf('docs/api.md', 'Routes')).toEqual(sorted(routes))
  })

  it('marks exactly the routes that need an Idempotency-Key', () => {
    const marked = rowsOf('docs/api.md', 'Routes').filter(({ cells }) => cells[0]?.startsWith('*key*'))
    const keyless =
      /^(PUT|DELETE) .*\/files\/|^DELETE \/v1\/(tools|agentloops)\/|^(POST|DELETE) \/mcp\/|^POST (\/v1\/hosts|\/v1\/brain-env\/prepare$|.*\/(events|executions\/:sequence\/call)$)/
    const mutating = rowsOf('docs/api.md', 'Routes').filter(
      ({ name }) => !name.startsWith('GET') && !keyless.test(name),
    )
    expect(marked.map(({ name }) => name)).toEqual(mutating.map(({ name }) => name))
  })
})

describe('every page', () => {
  it('shows every promise of SECURITY.md by a test', () => {
    const promises = readPage('SECURITY.md').match(/^\|.*\| a vulnerability \|.*$/gm) ?? []
    expect(promises.filter((row) => !row.includes('`test/'))).toEqual([])
    expect(promises.length).toBeGreaterThan(10)
  })

  it('links only to what is there', () => {
    const broken = PAGES.flatMap((page) =>
      [...readPage(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
        if (/^https?:/.test(target)) return []
        const [path = '', anchor] = target.split('#')
        const file = path === '' ? page : join(dirname(page), path)
        if (!existsSync(join(root, file))) return [`${page}: ${target}`]
        if (anchor === undefined) return []
        const anchors = [...readPage(file).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
          title
            .toLowerCase()
            .replaceAll(/[^a-z0-9 -]/g, '')
            .replaceAll(' ', '-'),
        )
        return anchors.includes(anchor) ? [] : [`${page}: ${target}`]
      }),
    )
    expect(broken).toEqual([])
  })

  it('names only files, folders and scripts that are there', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
    const gone = PAGES.flatMap((page) => {
      const text = readPage(page)
      const paths = [...text.matchAll(/`((?:src|test|docs|wit|bench|\.ci|examples(?:-\w+)?)\/[\w./*-]*)`/g)]
        .map(([, path = '']) => path)
        .filter((path) => globSync(path.replace(/\/$/, ''), { cwd: root }).length === 0)
      const commands = [...text.matchAll(/npm run (?:-s )?([\w:]+)/g)]
        .map(([, name = '']) => name)
        .filter((name) => !Object.hasOwn(scripts, name))
        .map((name) => `npm run ${name}`)
      return [...paths, ...commands].map((what) => `${page}: ${what}`)
    })
    expect(gone).toEqual([])
  })

  it('runs every example of the client, and says what it prints', () => {
    const page = readPage('examples/README.md')
    const examples = globSync('examples/*/main.ts', { cwd: root })
    expect(examples.length).toBeGreaterThanOrEqual(5)
    expect(examples.filter((file) => !page.includes(`\nnpm run -s example ${file}`))).toEqual([])
    expect(examples.filter((file) => !existsSync(join(root, dirname(file), 'README.md')))).toEqual([])
  })

  it('quotes source as it stands in the file that it names', () => {
    const quotes = PAGES.flatMap((page) =>
      fencedBlocks(readPage(page)).flatMap(({ marks, text, line }) => {
        const file = marks.find((mark) => mark.startsWith('from='))?.slice('from='.length)
        return file === undefined ? [] : [{ at: `${page}:${line}`, file, text }]
      }),
    )
    expect(quotes.length).toBeGreaterThan(0)
    expect(quotes.filter(({ file, text }) => !readFileSync(join(root, file), 'utf8').includes(text))).toEqual([])
  })
})

describe('AGENTS.md', () => {
  it('stays short enough to be read', () => {
    expect(readPage('AGENTS.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120)
  })
})
