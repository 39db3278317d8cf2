import { mkdtemp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterEach, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest'
import { fixture, pythonComponent } from '../fixtures/components.ts'
import { finishedValue, runComponent, type ReferenceResult } from '../fixtures/reference/run-component.ts'
import { embeddedMetadata, type EmbeddedMetadata } from '../fixtures/reference/tool-metadata.ts'

const ajv = new Ajv2020({ strict: false, allErrors: true })
const TEXTS = { 'notes.txt': 'hello', 'src/main.rs': 'fn main() {}', 'src/deep/er.txt': '123', 'naïve-日本.txt': 'é' }

// A build takes 5 s on an idle machine and much longer on a busy one: not the time of whichever test comes first.
beforeAll(async () => {
  for (const name of ['inspect', 'csv_report', 'pyfiles', 'wordcount'] as const) await pythonComponent(name)
}, 600_000)

let workspace: string
beforeEach(async () => {
  workspace = await mkdtemp(`${tmpdir()}/brain-example-`)
  await mkdir(`${workspace}/src/deep`, { recursive: true })
  for (const [name, text] of Object.entries(TEXTS)) await writeFile(`${workspace}/${name}`, text)
})
afterEach(() => rm(workspace, { recursive: true, force: true }))

async function metadataOf(component: string): Promise<EmbeddedMetadata> {
  const found = embeddedMetadata(await readFile(component))
  expect(found).toHaveLength(1)
  return found[0]!
}

/** Runs a tool as Brain would: what goes in and what comes out must hold to the schemas that it carries. */
async function call(component: string, input: unknown, configuration: unknown = {}): Promise<ReferenceResult> {
  const metadata = await metadataOf(component)
  expect(ajv.validate(metadata.input_schema, input), ajv.errorsText()).toBe(true)
  if (metadata.options_schema !== undefined) expect(ajv.validate(metadata.options_schema, configuration)).toBe(true)
  const result = await runComponent({ component, input, configuration, workspace })
  if (result.calls.some(({ method }) => method === 'finish')) {
    expect(metadata.output_schema).toBeDefined()
    expect(ajv.validate(metadata.output_schema!, finishedValue(result)), ajv.errorsText()).toBe(true)
    expect(result.calls.at(-1)?.method, 'nothing may follow `finish`').toBe('finish')
    expect(result.end).toEqual({ type: 'returned', text: '' })
  }
  return result
}

async function python(context: TestContext, name: Parameters<typeof pythonComponent>[0]): Promise<string> {
  const built = await pythonComponent(name)
  if (built.built) return built.component
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${built.reason}`)
  process.stderr.write(`\nNOT CHECKED: the Python tool "${name}". ${built.reason}\n\n`)
  return context.skip(built.reason)
}

/** The same tool in two languages. */
const LANGUAGES = [
  ['Rust', () => Promise.resolve(fixture('inspect'))],
  ['Python', (context: TestContext) => python(context, 'inspect')],
] as const

describe.each(LANGUAGES)('inspect in %s', (_language, build) => {
  it('lists one level of the workspace, directories with what they are', async (context) => {
    const result = await call(await build(context), { path: '.' }, { depth: 1 })
    expect(result.calls[0]).toEqual({ method: 'emit', kind: 'inspect_started', text: expect.any(String) })
    expect(finishedValue(result)).toEqual({
      path: '/workspace',
      entries: [
        { path: '/workspace/naïve-日本.txt', kind: 'file', size: 2 },
        { path: '/workspace/notes.txt', kind: 'file', size: 5 },
        { path: '/workspace/src', kind: 'directory', size: 0 },
      ],
      total_bytes: 7,
      truncated: false,
    })
  })

  it('goes as deep as its option says', async (context) => {
    const component = await build(context)
    const paths = async (depth: number) => {
      const { entries } = finishedValue(await call(component, { path: 'src' }, { depth })) as {
        entries: { path: string }[]
      }
      return entries.map(({ path }) => path.slice('/workspace/src/'.length))
    }
    expect(await paths(1)).toEqual(['deep', 'main.rs'])
    expect(await paths(2)).toEqual(['deep', 'deep/er.txt', 'main.rs'])
  })

  it('takes a file, and a path from the root', async (context) => {
    const value = finishedValue(await call(await build(context), { path: '/workspace/notes.txt' }))
    expect(value).toMatchObject({ entries: [{ path: '/workspace/notes.txt', kind: 'file', size: 5 }], total_bytes: 5 })
  })

  it('fails with a code and a reason when there is nothing', async (context) => {
    const { end } = await call(await build(context), { path: 'nowhere' })
    expect(end).toMatchObject({ type: 'failed', code: 'cannot_inspect' })
    expect(end).toHaveProperty('message', expect.stringMatching(/^Cannot inspect "\/workspace\/nowhere": No such file/))
  })

  it('refuses an option that its schema would have refused', async (context) => {
    const { end } = await runComponent({
      component: await build(context),
      input: { path: '.' },
      configuration: { depth: 0 },
      workspace,
    })
    expect(end).toMatchObject({ type: 'failed', code: 'invalid_options' })
  })

  it('sees nothing without a workspace', async (context) => {
    const { end } = await runComponent({ component: await build(context), input: { path: '.' } })
    expect(end).toMatchObject({ type: 'failed', code: 'cannot_inspect' })
  })
})

describe('wordcount', () => {
  const text = "The cat, the hat. THE END! Don't — naïve 你好"
  const value = {
    words: 9,
    unique: 7,
    top: [
      { word: 'the', count: 3 },
      { word: 'cat', count: 1 },
    ],
  }

  it('counts in Rust, with no record but its result', async () => {
    const result = await call(fixture('wordcount'), { text, top: 2 })
    expect(result.calls.map(({ method }) => method)).toEqual(['finish'])
    expect(finishedValue(result)).toEqual(value)
  })

  it('counts the same in Python', async (context) => {
    expect(finishedValue(await call(await python(context, 'wordcount'), { text, top: 2 }))).toEqual(value)
  })
})

describe('summarize', () => {
  const answer = (stop_reason: string) =>
    JSON.stringify({
      message: { role: 'assistant', content: [{ type: 'text', text: 'A greeting.' }] },
      stop_reason,
      usage: {},
    })

  it('asks the model about a file of the workspace and gives its words to value and content', async () => {
    const component = fixture('summarize')
    const result = await runComponent({ component, input: { path: 'notes.txt' }, workspace, model: answer('end_turn') })
    expect(finishedValue(result)).toEqual({ summary: 'A greeting.', complete: true, source_characters: 5 })
    expect(result.calls.map(({ method }) => method)).toEqual(['emit', 'model', 'finish'])
    const request = JSON.parse(result.calls[1]!.text!)
    expect(request.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hello' }] }])
    expect(JSON.parse(result.calls[2]!.text!)).toHaveProperty('content', 'A greeting.')
  })

  it('says when the model was cut short', async () => {
    const result = await runComponent({
      component: fixture('summarize'),
      input: { text: 'é' },
      model: answer('max_tokens'),
    })
    expect(finishedValue(result)).toMatchObject({ complete: false, source_characters: 1 })
  })

  it("passes the host's refusal on", async () => {
    const { end } = await runComponent({ component: fixture('summarize'), input: { text: 'hello' } })
    expect(end).toMatchObject({ type: 'failed', code: 'model_call_limit' })
  })
})

describe('csv_report', () => {
  const rows = 'city,amount\nOslo,1.5\nRome,none\nOslo,2\n"Bonn|Süd",1e3\n'
  beforeEach(() => writeFile(`${workspace}/sales.csv`, rows))

  it('sums by group and writes the report that it names', async (context) => {
    const component = await python(context, 'csv_report')
    const result = await call(component, { path: 'sales.csv', group_by: 'city', sum: 'amount' })
    expect(finishedValue(result)).toEqual({
      report: '/workspace/sales.report.md',
      rows: 3,
      skipped: 1,
      total: 1003.5,
      groups: [
        { group: 'Bonn|Süd', rows: 1, sum: 1000 },
        { group: 'Oslo', rows: 2, sum: 3.5 },
      ],
    })
    const report = await readFile(`${workspace}/sales.report.md`, 'utf8')
    expect(report).toContain('| Bonn\\|Süd | 1 | 1000 |\n| Oslo | 2 | 3.5 |\n| **all** | 3 | 1003.5 |\n')
    expect(JSON.parse(result.calls.at(-1)!.text!)).toHaveProperty('content', report)
  })

  it('counts rows where there is nothing to sum, and writes where it is told', async (context) => {
    const input = { path: 'sales.csv', group_by: 'city', report: 'out/by-city.md' }
    const result = await call(await python(context, 'csv_report'), input)
    expect(finishedValue(result)).toMatchObject({ report: '/workspace/out/by-city.md', rows: 4, skipped: 0 })
    expect(await readFile(`${workspace}/out/by-city.md`, 'utf8')).toContain('| Oslo | 2 |\n')
  })

  it('takes the delimiter from its options', async (context) => {
    await writeFile(`${workspace}/semicolon.csv`, '\uFEFFa;b\nx;1\n')
    const component = await python(context, 'csv_report')
    const result = await call(component, { path: 'semicolon.csv', group_by: 'a', sum: 'b' }, { delimiter: ';' })
    expect(finishedValue(result)).toMatchObject({ total: 1 })
  })

  it('names the column or the file that is not there', async (context) => {
    const component = await python(context, 'csv_report')
    const column = await call(component, { path: 'sales.csv', group_by: 'town' })
    expect(column.end).toEqual({
      type: 'failed',
      code: 'unknown_column',
      message: 'Cannot find the column "town" in "/workspace/sales.csv": it has city, amount',
    })
    const file = await call(component, { path: 'none.csv', group_by: 'city' })
    expect(file.end).toMatchObject({ type: 'failed', code: 'cannot_read' })
  })
})

describe('the library of Python tools', () => {
  it('is there at run time, wherever a tool imports it', async (context) => {
    const component = await python(context, 'pyfiles')
    const value = finishedValue(await runComponent({ component, input: { op: 'library' }, workspace }))
    expect(value).toMatchObject({
      json: "{'é': [1, 2.5, None, '😀']}",
      re: "[('a', 'b'), ('ünï', 'cöde')]",
      csv: "[{'a': '1', 'b': 'x, y'}]",
      strptime: '1770076800.0',
      encodings: "['efbbbfc3a9', 'e9', 'e9', 'e900', '786e2d2d396361']",
      sleep: 'True',
      random: '100',
      environment: '{}',
    })
  })

  it('gives each call other random numbers', async (context) => {
    const component = await python(context, 'pyfiles')
    const first = () => runComponent({ component, input: { op: 'library' } }).then(finishedValue)
    const [one, other] = (await Promise.all([first(), first()])) as { first_random: string }[]
    expect(one!.first_random).toMatch(/^\d+$/)
    expect(one!.first_random).not.toBe(other!.first_random)
  })

  it('reports an exception as an error of the tool, and where it was in the log', async (context) => {
    const { end, calls } = await runComponent({ component: await python(context, 'pyfiles'), input: { op: 'raise' } })
    expect(end).toEqual({ type: 'failed', code: 'tool_error', message: "KeyError: 'deliberate'" })
    expect(calls.map(({ method }) => method)).toEqual(['telemetry'])
    expect(JSON.parse(calls[0]!.text!).traceback).toMatch(/tool\.py", line \d+, in fail/)
  })

  it('refuses arguments and options before the function runs', async (context) => {
    const component = await python(context, 'pyfiles')
    const refused = async (input: unknown) => (await runComponent({ component, input, workspace })).end
    expect(await refused({ op: 'spit', n: '3' })).toEqual({
      type: 'failed',
      code: 'invalid_input',
      message: 'Cannot call "pyfiles": "n" must be an integer, not a string',
    })
    expect(await refused({ op: 'nothing' })).toMatchObject({ code: 'invalid_input' })
    expect(await refused({ op: 'stat', more: 1 })).toMatchObject({ code: 'invalid_input' })
    expect(await readdir(workspace)).not.toContain('p0')
  })

  it('reads hints that Python itself evaluates late', async (context) => {
    const component = await python(context, 'pyfiles')
    const later = { type: 'string', enum: ['a'] }
    const point = { $ref: '#/$defs/Point' }
    const next = { anyOf: [point, { type: 'null' }], default: null }
    expect(finishedValue(await runComponent({ component, input: { op: 'hints' } }))).toEqual({
      parameters: {
        type: 'object',
        properties: {
          one: later,
          many: { type: 'array', items: later },
          point,
          lost: { type: 'string' },
          ids: { type: 'array', items: { type: 'integer' }, default: [1] },
        },
        required: ['one', 'many', 'point'],
        $defs: { Point: { type: 'object', properties: { x: { type: 'integer' }, next }, required: ['x'] } },
      },
      output: later,
    })
  })

  it('is in a component of no more than 19 MB', async (context) => {
    for (const name of ['inspect', 'csv_report', 'wordcount', 'pyfiles'] as const)
      expect((await stat(await python(context, name))).size, name).toBeLessThanOrEqual(19_000_000)
  })

  it('has sockets that reach nothing', async (context) => {
    const component = await python(context, 'pyfiles')
    const value = finishedValue(await runComponent({ component, input: { op: 'sockets' } }))
    for (const answer of Object.values(value as Record<string, string>))
      expect(answer).toMatch(/^(?:PermissionError|gaierror) -?\d+$/)
  })
})
