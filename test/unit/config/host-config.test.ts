import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { hostConfigJsonSchema } from '../../../.ci/contracts/host-config-schema.ts'
import { readConfig } from '../../../src/compose/read-config.ts'
import { ConfigError } from '../../../src/config/config.ts'
import { jsonFaults } from '../../../src/config/json-faults.ts'
import { lineOf } from '../../../src/config/json-place.ts'
import { parseJson } from '../../../src/kernel/json.ts'

const directory = mkdtempSync(join(tmpdir(), 'brain-host-config-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = join(directory, 'brain.json')

const read = (text: string | Buffer | object, env: Record<string, string> = { KEY: 'k' }) => {
  writeFileSync(file, typeof text === 'string' || Buffer.isBuffer(text) ? text : JSON.stringify(text, null, 2))
  return readConfig(env, file)
}

async function problemsOf(text: string | Buffer | object, env?: Record<string, string>): Promise<readonly string[]> {
  try {
    await read(text, env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replaceAll(file, 'brain.json'))
    throw error
  }
}

const echo = {
  name: 'echo',
  description: 'Gives text back.',
  input_schema: { type: 'object', properties: { text: { type: 'string', maxLength: 4096 } }, required: ['text'] },
  url: 'http://127.0.0.1:8081/tools/echo',
  token_env: 'KEY',
  tenants: ['local'],
}

describe('the host config', () => {
  it('gives bindings their defaults, and is all of what the operator says of tenants', async () => {
    const config = await read({ $schema: 'x', tools: [echo, { ...echo, name: 'other', timeout_seconds: 60 }] })
    expect([...config.toolServices.values()]).toMatchObject([
      { name: 'echo', timeout_seconds: 300, max_output_bytes: 1_048_576, inspect_session: false },
      { name: 'other', timeout_seconds: 60 },
    ])
    expect(config.toolTokens).toEqual(new Map([['KEY', 'k']]))
    expect(config.tenants).toMatchObject([{ id: 'local', tokens: [] }])
    const tenants = [
      { id: 'a', token_env: ['OLD', 'NEW'], allow: { secrets: ['KEY'], network: ['https://*.example'] } },
      { id: 'b', token_env: 'KEY' },
    ]
    const env = { OLD: 'o', NEW: 'n', KEY: 'k', BRAIN_ENV_SECRET_ALLOW: 'HOME', BRAIN_LISTEN: '0.0.0.0:1' }
    const shared = await read({ tenants }, env)
    expect(shared.tenants).toMatchObject([
      { id: 'a', tokens: ['o', 'n'], allow: { secrets: ['KEY'], network: [{ host: 'example' }], environmentUrls: [] } },
      { id: 'b', tokens: ['k'], allow: { secrets: [], filesystem: [], network: [], environmentUrls: [] } },
    ])
    expect(shared.secrets).toEqual(new Map([['KEY', 'k']]))
  })

  it('tells every problem at once, each with its line and its place', async () => {
    const tools = [
      { ...echo, name: 'no good', url: 'ftp://x', more: 1 },
      { ...echo, input_schema: { type: 'nothing' }, tenants: ['nobody'], timeout_seconds: 0 },
    ]
    expect(await problemsOf({ tools })).toEqual([
      expect.stringMatching(/^brain\.json:4: tools\[0\]\.name: must be 1 to 64/),
      expect.stringMatching(/^brain\.json:18: tools\[0\]\.url: must be an http/),
      expect.stringMatching(/^brain\.json:23: tools\[0\]\.more: is no member/),
      expect.stringMatching(/^brain\.json:36: tools\[1\]\.timeout_seconds: /),
      expect.stringMatching(/^brain\.json:28: tools\[1\]\.input_schema: is not usable: /),
    ])
    expect(await problemsOf({ tools: [echo, { ...echo, tenants: ['nobody'] }] }, { BRAIN_LISTEN: 'x' })).toEqual([
      expect.stringContaining('tools[1].name: two tools are called "echo"'),
      expect.stringContaining('tools[0].token_env: the variable KEY is not set, or empty'),
      expect.stringContaining('tools[1].token_env: the variable KEY is not set, or empty'),
      expect.stringContaining('tools[1].tenants[0]: there is no tenant "nobody"'),
      expect.stringContaining('BRAIN_LISTEN'),
    ])
  })

  it.each([
    ['', 'brain.json'],
    ['[]', 'expected object'],
    ['{"tools": {}}', 'tools'],
    ['{"tool": []}', 'tool'],
    [{ tenants: [] }, 'tenants'],
    [{ tenants: [{ id: 'a' }] }, 'tenants[0].token_env'],
    [{ tenants: [{ id: 'a', token_env: 'NOT_SET' }] }, 'NOT_SET'],
    [{ tenants: [{ id: 'a b', token_env: 'KEY' }] }, 'tenants[0].id'],
    [{ tenants: ['a', 'a'].map((id) => ({ id, token_env: 'KEY' })) }, 'two tenants'],
    [{ tenants: ['a', 'b'].map((id) => ({ id, token_env: 'KEY' })) }, "another tenant's too"],
    [{ tenants: [{ id: 'a', token_env: 'KEY', allow: { network: ['example'] } }] }, 'allow.network[0]'],
    [{ tools: [{ ...echo, url: 'https://u:p@x.example/' }] }, 'token_env'],
    [{ tools: [{ ...echo, url: 'https://x.example/#part' }] }, 'fragment'],
    [{ tools: [{ ...echo, url: 'http://x.\texample/' }] }, 'must be an http or https URL'],
    [{ tools: [{ ...echo, description: undefined }] }, 'tools[0].description: is missing'],
    [{ tools: [{ ...echo, tenants: null }] }, 'tools[0].tenants'],
    [{ tools: [{ ...echo, token_env: 'NOT_SET' }] }, 'the variable NOT_SET is not set, or empty'],
    [{ tools: [{ ...echo, token_env: '' }] }, 'tools[0].token_env'],
    [{ tools: [{ ...echo, max_output_bytes: 33 * 1024 * 1024 }] }, 'max_output_bytes'],
    [{ tools: [{ ...echo, description: '' }] }, 'description'],
    [{ tools: [{ ...echo, output_schema: { $ref: 'https://x.example/s' } }] }, 'output_schema'],
    ['x'.repeat(16 * 1024 * 1024 + 1), 'larger than'],
  ])('is refused: %#', async (text, reason) => {
    expect((await problemsOf(text)).join('\n')).toContain(reason)
  })

  it.each(['two words', 'clé', 'line\n'])('is refused with a token that no header may hold: %j', async (KEY) => {
    const problems = await problemsOf({ tools: [echo], tenants: [{ id: 'local', token_env: 'KEY' }] }, { KEY })
    expect(problems).toHaveLength(2)
    for (const problem of problems) {
      expect(problem).toContain('no header may have')
      expect(problem).not.toContain(KEY)
    }
  })

  it('may begin with a byte order mark', async () => {
    expect(await problemsOf(`\ufeff${JSON.stringify({ tools: [echo] })}`)).toEqual([])
  })

  it('is refused where it is no JSON, with the line and without its words', async () => {
    const secret = 'canary-secret'
    const broken: [string | Buffer, number, string][] = [
      ['', 1, 'a value is expected here'],
      [`{\n  "token": "${secret}",\n}`, 3, 'the name of a member is expected here'],
      [`{\n  "tools": [{"a" "${secret}"}]}`, 2, 'tools[0].a: a colon is expected here'],
      [`{\n\n"a": ${secret}}`, 3, 'a: a value is expected here'],
      [`{"a": 1\n"b": 2}`, 2, 'a comma or } is expected here'],
      [`{"a": [1\n2]}`, 2, 'a comma or ] is expected here'],
      [`{"a":\n"${secret}`, 2, 'a: a text is not in the form of JSON'],
      ['{"a":\n"\\x"}', 2, 'a: a text is not in the form of JSON'],
      ['{"a":\n01}', 2, 'a: a number is wrongly written'],
      ['{"a":\n12345678901234567890}', 2, 'too large to be exact'],
      ['{}\n\n{}', 3, 'nothing may follow'],
      [`{\n// ${secret}\n}`, 2, 'the name of a member is expected here'],
      [`{"a":\n${'['.repeat(64)}${']'.repeat(64)}}`, 2, 'is nested deeper than 64 levels'],
    ]
    for (const [text, line, reason] of broken) {
      const problems = await problemsOf(text)
      expect(problems).toEqual([expect.stringContaining(reason)])
      expect(problems[0]).toMatch(new RegExp(`^brain\\.json:${line}: `))
      expect(problems[0]).not.toContain(secret)
    }
    const bytes = [Buffer.from('{"tools":[]}', 'utf16le'), Buffer.from('{"$schema":"\xe9"}', 'latin1')]
    expect([await problemsOf(bytes[0]!), await problemsOf(bytes[1]!)]).toEqual([
      ['brain.json:1: the name of a member is expected here, in double quotes'],
      ['brain.json: it is not UTF-8'],
    ])
  })

  it('is refused where a member stands twice, of which one would not count', async () => {
    const text = '{"tenants": [\n{"id": "a", "token_env": "KEY",\n "token_env": "OLD"}],\n"tenants": []}'
    expect(await problemsOf(text)).toEqual([
      'brain.json:3: tenants[0].token_env: is there twice: of two, one would not count',
      'brain.json:4: tenants: is there twice: of two, one would not count',
    ])
  })

  it('with more problems than anybody reads tells of the first hundred', async () => {
    const problems = await problemsOf(
      JSON.stringify(Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`m ${at}`, at]))),
    )
    expect(problems).toHaveLength(101)
    expect([problems[0], problems.at(-1)]).toEqual([
      expect.stringContaining('["m 0"]: is no member'),
      '… and 4900 more',
    ])
  })

  it('that is not there is a problem as well', async () => {
    await expect(readConfig({}, join(directory, 'none.json'))).rejects.toThrow('none.json')
  })

  it('lets the server listen beyond loopback, as a token does', async () => {
    const tenants = [{ id: 'a', token_env: 'KEY' }]
    expect(await problemsOf({ tenants }, { KEY: 'k', BRAIN_LISTEN: '0.0.0.0:1' })).toEqual([])
    expect((await problemsOf({}, { BRAIN_LISTEN: '0.0.0.0:1' })).join()).toContain('BRAIN_API_TOKEN')
  })

  it('that lists tenants leaves variables of the only one without effect, and says which', async () => {
    const allowed = { BRAIN_ENV_SECRET_ALLOW: 'HOME', BRAIN_ENV_NETWORK_ALLOW: '', BRAIN_ENVIRONMENT_URL_ALLOW: '' }
    const env = { ...allowed, KEY: 'k', BRAIN_API_TOKEN: 'unheard', BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace' }
    const tenants = [{ id: 'a', token_env: 'KEY' }]
    const { warnings } = await read({ tenants }, env)
    expect(warnings.map((warning) => warning.split(':')[0])).toEqual([
      'BRAIN_API_TOKEN',
      'BRAIN_ENV_SECRET_ALLOW',
      'BRAIN_ENV_FILESYSTEM_ALLOW',
      'BRAIN_ENV_NETWORK_ALLOW',
      'BRAIN_ENVIRONMENT_URL_ALLOW',
    ])
    expect(warnings.join()).not.toContain('unheard')
    expect((await read({ tools: [echo] }, env)).warnings).toEqual([])
    // A token that lets somebody in has an effect, whatever names it.
    expect((await read({ tenants }, { KEY: 'k', BRAIN_API_TOKEN: 'k' })).warnings).toEqual([])
    const named = [{ id: 'a', token_env: 'BRAIN_API_TOKEN' }]
    expect((await read({ tenants: named }, { BRAIN_API_TOKEN: 't' })).warnings).toEqual([])
  })

  it('has a JSON Schema for editors, which takes and refuses what the server does', async () => {
    const published = JSON.parse(await readFile(new URL('../../../wit/host-config.json', import.meta.url), 'utf8'))
    expect(published).toEqual(JSON.parse(JSON.stringify(hostConfigJsonSchema())))
    const check = new Ajv2020({ strict: false }).compile(published)
    expect(check({ $schema: 'x', tools: [echo], tenants: [{ id: 'local', token_env: ['A', 'B'] }] })).toBe(true)
    for (const wrong of [
      { tools: [{ ...echo, more: 1 }] },
      { tools: [{ ...echo, timeout_seconds: 0 }] },
      { tenants: [] },
    ])
      expect(check(wrong)).toBe(false)
  })
})

it('the line of a value is found whatever stands before it', () => {
  const marked = fc.letrec((tie) => ({
    value: fc.oneof(
      fc.string(),
      fc.integer(),
      fc.constant(null),
      fc.array(tie('value')),
      fc.dictionary(fc.string(), tie('value')),
    ),
  })).value
  fc.assert(
    fc.property(
      fc.array(marked, { maxLength: 4 }),
      fc.string(),
      fc.integer({ min: 1, max: 20 }),
      (before, name, blank) => {
        const head = JSON.stringify({ before }, null, 2).slice(0, -2)
        const text = `${head},${'\n'.repeat(blank)}${JSON.stringify(`x${name}`)}: [1, {"here":true}]}`
        const line = text.slice(0, text.lastIndexOf('true')).split('\n').length
        expect(lineOf(text, [`x${name}`, 1, 'here'])).toBe(line)
      },
    ),
    { numRuns: 200 },
  )
})

it('faults are found exactly in texts that JSON.parse refuses or drops something of', () => {
  const cut = fc.tuple(
    fc.json({ maxDepth: 4 }),
    fc.nat(),
    fc.nat({ max: 3 }),
    fc.constantFrom('', ',', '"', '}', '[', ':', '0', 'x'),
  )
  fc.assert(
    fc.property(cut, ([text, from, length, put]) => {
      const at = from % (text.length + 1)
      const changed = text.slice(0, at) + put + text.slice(at + length)
      const [fault] = jsonFaults(changed)
      if (fault?.reason.startsWith('is there twice') === true) return
      expect(fault === undefined).toBe(isJson(changed))
    }),
    { numRuns: 500 },
  )
})

function isJson(text: string): boolean {
  try {
    parseJson(text, 'it')
    return true
  } catch {
    return false
  }
}
