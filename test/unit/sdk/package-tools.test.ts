import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consumerModule } from '../../../src/sdk/package/consumer-files.ts'
import { packageTools } from '../../../src/sdk/package/package-tools.ts'
import { typescriptOfSchema } from '../../../src/sdk/package/typescript-of-schema.ts'
import { loadTool } from '../../../src/sdk/runtime/load-tool.ts'

const SDK = new URL('../../../src/sdk/index.ts', import.meta.url).href
const ZOD = new URL('../../../node_modules/zod/index.js', import.meta.url).href

const BUILT = `
import { tool } from ${JSON.stringify(SDK)}
import { z } from ${JSON.stringify(ZOD)}
export const lookup = tool({
  name: 'lookup',
  description: 'Finds one customer. */ Carefully\\nand slowly',
  input: z.object({ id: z.string(), limit: z.number().default(3) }),
  output: z.object({ value: z.string() }).nullable(),
  options: z.object({ prefix: z.string().default('c:') }),
  run: ({ id }, ctx) => ctx.finish({ value: ctx.options.prefix + id }),
})
const other = tool({ name: 'other', description: 'x', input: z.object({}), run: () => undefined })
export { other as default }
`

let folder = ''
let count = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-package-tools-'))
})
afterAll(() => rm(folder, { recursive: true }))

const EXPORTS = {
  './lookup': { 'brain-tool': './dist/lookup.js', types: './made/lookup.d.ts', default: './made/lookup.js' },
}

/** A package as its author's build leaves it. */
async function packageOf(manifest: object = {}, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const home = join(folder, `package-${count++}`)
  const whole = {
    name: '@acme/crm',
    version: '1.2.0',
    type: 'module',
    dependencies: { '@aexhq/brain': '*' },
    exports: EXPORTS,
    ...manifest,
  }
  const all = { 'package.json': JSON.stringify(whole), 'dist/lookup.js': BUILT, ...files }
  for (const [path, text] of Object.entries(all)) {
    await mkdir(join(home, path, '..'), { recursive: true })
    await writeFile(join(home, path), text)
  }
  return home
}

const reference = {
  type: 'node_package',
  package: '@acme/crm',
  version: '1.2.0',
  entry: './lookup',
  export: 'lookup',
  configuration: {},
}

describe('packageTools()', () => {
  it('makes factories and typings at the paths of the entry, and the same again', async () => {
    const home = await packageOf()
    const dry = await packageTools(home, { dryRun: true })
    await expect(stat(join(home, 'made'))).rejects.toThrow('ENOENT')
    const made = await packageTools(home)
    expect(made).toEqual(dry)
    expect(made).toEqual({
      package: '@acme/crm',
      version: '1.2.0',
      tools: [
        { name: 'other', entry: './lookup', export: 'default' },
        { name: 'lookup', entry: './lookup', export: 'lookup' },
      ],
      files: [
        { path: './made/lookup.js', state: 'written' },
        { path: './made/lookup.d.ts', state: 'written' },
      ],
    })
    const module = await readFile(join(home, 'made/lookup.js'), 'utf8')
    expect(module).toContain(`"export": "lookup"`)
    expect(module).toContain('export { tool1 as default, tool2 as lookup }')
    const typings = await readFile(join(home, 'made/lookup.d.ts'), 'utf8')
    expect(typings).toContain('readonly input: { readonly id: string; readonly limit?: number }')
    expect(typings).toContain('readonly output: { readonly value: string } | null')
    expect(typings).toContain('readonly options: { readonly prefix?: string }')
    expect((await packageTools(home)).files.map(({ state }) => state)).toEqual(['unchanged', 'unchanged'])
    const manifest = await readFile(join(home, 'package.json'), 'utf8')
    await writeFile(join(home, 'package.json'), manifest.replace('1.2.0', '1.3.0'))
    expect((await packageTools(home)).files.map(({ state }) => state)).toEqual(['written', 'unchanged'])
  })

  it('keeps members of any name', async () => {
    const input_schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}')
    const metadata = { name: 'odd', description: 'x', input_schema }
    const text = consumerModule([{ export: 'odd', metadata, implementation: { type: 'x' } }])
    const file = join(folder, 'odd.js')
    await writeFile(file, text.replace("'@aexhq/brain'", JSON.stringify(SDK)))
    const { odd } = (await import(file)) as { odd: any }
    expect(odd.definition.input_schema).toEqual(input_schema)
    expect(Object.hasOwn(odd.definition.input_schema.properties, '__proto__')).toBe(true)
  })

  const conditions = (given: object) => ({ exports: { '.': { ...EXPORTS['./lookup'], ...given } } })
  it.each<[string, object, Record<string, string>, string]>([
    ['no version', { version: undefined }, {}, 'package.json: ✖'],
    ['a range of versions', { version: '^1.0.0' }, {}, 'must be one exact version'],
    ['a name that is a path', { name: '../crm' }, {}, 'must be the name of an npm package'],
    ['no dependency on the SDK', { dependencies: {} }, {}, 'must have "@aexhq/brain" in dependencies'],
    [
      'no entry with tools',
      { exports: { '.': './dist/lookup.js' } },
      {},
      'has the condition "brain-tool", as in "./lookup"',
    ],
    ['an entry that is a pattern', { exports: { './*': EXPORTS['./lookup'] } }, {}, 'must name one path'],
    ['a condition that leads past it', conditions({ node: './dist/lookup.js' }), {}, 'the condition "node"'],
    ['no file to make', conditions({ default: undefined }), {}, 'must have "default"'],
    ['typings that are none', conditions({ types: './made/lookup.ts' }), {}, '"types" must be the .d.ts file'],
    ['a file to make that is built', conditions({ default: './dist/lookup.js' }), {}, 'stands twice in "exports"'],
    [
      'a file to make elsewhere',
      conditions({ default: './../x.js', types: './x.d.ts' }),
      {},
      './../x.js is not in the package',
    ],
    ['a package of CommonJS', { type: 'commonjs' }, {}, 'package.json needs "type": "module"'],
    ['a file in the way', {}, { 'made/lookup.js': 'export {}' }, './made/lookup.js is in the way'],
    ['no build', conditions({ 'brain-tool': './dist/none.js' }), {}, './dist/none.js is not there: run the package'],
    ['a build elsewhere', conditions({ 'brain-tool': './../package-0/dist/lookup.js' }), {}, 'is not in the package'],
    ['a module that throws', {}, { 'dist/lookup.js': 'throw new Error("boom")' }, 'cannot be imported: boom'],
    ['a module without exports', {}, { 'dist/lookup.js': 'export {}' }, 'exports no tools'],
    [
      'an export that is no tool',
      {},
      { 'dist/lookup.js': `${BUILT}\nexport const help = () => 3` },
      '"help" of ./dist/lookup.js is no tool',
    ],
    [
      'a tool without run',
      {},
      {
        'dist/lookup.js': `import { tool } from ${JSON.stringify(SDK)}\nimport { z } from ${JSON.stringify(ZOD)}\nexport const far = tool({ name: 'far', description: 'x', input: z.object({}), implementation: { type: 'x' } })`,
      },
      'is a tool without run',
    ],
    [
      'options that are no JSON',
      {},
      {
        'dist/lookup.js': `import { tool } from ${JSON.stringify(SDK)}\nimport { z } from ${JSON.stringify(ZOD)}\nexport const dated = tool({ name: 'dated', description: 'x', input: z.object({}), options: z.object({ at: z.date() }), run: () => {} })`,
      },
      'Cannot declare tool "dated": options.at: Date cannot be represented',
    ],
  ])('refuses %s, and writes nothing', async (_what, manifest, files, reason) => {
    const home = await packageOf(manifest, files)
    const refused = await packageTools(home).then(
      () => 'nothing',
      (error: Error) => error.message,
    )
    expect(refused).toContain(`Cannot package the tools of ${home}: `)
    expect(refused).toContain(reason)
    await expect(stat(join(home, 'made/lookup.d.ts'))).rejects.toThrow('ENOENT')
  })

  it('refuses to write where a link leads out of the package', async () => {
    const home = await packageOf()
    await symlink(folder, join(home, 'made'))
    await expect(packageTools(home)).rejects.toThrow('./made/lookup.js is not in the package')
  })
})

describe('loadTool()', () => {
  it('imports the export of an installed package, linked or not, or of the package itself, with parsed options', async () => {
    const home = await packageOf()
    const installed = join(folder, 'installed')
    await mkdir(join(installed, 'node_modules/@acme'), { recursive: true })
    await symlink(home, join(installed, 'node_modules/@acme/crm'))
    for (const directory of [home, installed]) {
      const { name, executable } = await loadTool(reference, directory)
      expect({ name, options: executable.options }).toEqual({ name: 'lookup', options: { prefix: 'c:' } })
      expect(Object.isFrozen(executable.options)).toBe(true)
    }
  })

  it.each<[string, object, object, string]>([
    ['another version', { version: '1.2.1' }, {}, 'version "1.2.0" is installed'],
    ['another package', { package: 'crm' }, {}, 'the package is not installed in'],
    ['an entry that is not there', { entry: './other' }, {}, 'exports no such entry with the condition "brain-tool"'],
    ['an entry of a prototype', { entry: './constructor' }, {}, 'exports no such entry'],
    [
      'an entry without the condition',
      {},
      { exports: { './lookup': { default: './dist/lookup.js' } } },
      'no such entry',
    ],
    ['an export that is not there', { export: 'found' }, {}, 'there is no such export'],
    ['an export of a prototype', { export: 'toString' }, {}, 'there is no such export'],
    ['options that are refused', { configuration: { prefix: 3 } }, {}, 'options: ✖ Invalid input'],
    [
      'a file outside',
      {},
      { exports: { './lookup': { 'brain-tool': '../outside.js' } } },
      'which is not in the package',
    ],
    [
      'a link to outside',
      {},
      { exports: { './lookup': { 'brain-tool': './linked.js' } } },
      'which is not in the package',
    ],
    [
      'a file that is not there',
      {},
      { exports: { './lookup': { 'brain-tool': './none.js' } } },
      'is the package built?',
    ],
    [
      'what is no tool',
      { export: 'help' },
      { exports: { './lookup': { 'brain-tool': './help.js' } } },
      'is no tool that was declared with run',
    ],
  ])('refuses %s', async (_what, asked, manifest, reason) => {
    const home = await packageOf(manifest, { 'help.js': 'export const help = () => 3' })
    await writeFile(join(folder, 'outside.js'), BUILT)
    await symlink(join(folder, 'outside.js'), join(home, 'linked.js'))
    await expect(loadTool({ ...reference, ...asked }, home)).rejects.toMatchObject({
      code: 'tool_unavailable',
      message: expect.stringMatching(/^Cannot load "\w+" of "\.\/\w+" in (@acme\/)?crm@1\.2\.\d: /),
    })
    await expect(loadTool({ ...reference, ...asked }, home)).rejects.toThrow(reason)
  })

  it.each([
    { type: 'host_function' },
    { version: '1.x' },
    { version: '1.2.0 || 2.0.0' },
    { version: 'latest' },
    { package: '..' },
    { package: '@acme/../crm' },
    { package: '/crm' },
    { package: 'node_modules/crm/x' },
    { entry: 'lookup' },
    { entry: './../lookup' },
    { entry: './a/./b' },
    { export: 'a b' },
    { export: '' },
    { configuration: [] },
    { more: 1 },
  ])('takes for no node_package what has %j', async (asked) => {
    await expect(loadTool({ ...reference, ...asked }, folder)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^Cannot load a tool: ✖ /),
    })
  })
})

describe('typescriptOfSchema()', () => {
  it.each<[unknown, string]>([
    [{}, 'unknown'],
    [true, 'unknown'],
    [false, 'never'],
    [{ const: null }, 'null'],
    [{ enum: ['a', 1, 'a'] }, '"a" | 1'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'array' }, 'readonly (unknown)[]'],
    [{ type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'boolean' }] } }, 'readonly (string | boolean)[]'],
    [{ not: {} }, 'never'],
    [
      { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'null' }, minItems: 1 },
      'readonly [string, ...readonly (null)[]]',
    ],
    [
      { type: 'array', prefixItems: [{ type: 'string' }, { type: ['number', 'null'] }], items: false, minItems: 1 },
      'readonly [string, (number | null)?]',
    ],
    [
      {
        type: 'object',
        propertyNames: { type: 'string', enum: ['x', 'y'] },
        additionalProperties: { type: 'boolean' },
        required: ['x'],
      },
      '{ readonly x: boolean; readonly y?: boolean }',
    ],
    [{ type: 'object' }, '{ readonly [member: string]: unknown }'],
    [{ type: 'object', additionalProperties: false }, 'Readonly<Record<string, never>>'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, '{ readonly [member: string]: number }'],
    [
      { type: 'object', properties: { 'a-b': {}, c: {} }, required: ['c'] },
      '{ readonly "a-b"?: unknown; readonly c: unknown }',
    ],
    [
      {
        allOf: [
          { type: 'object', properties: { a: {} } },
          { type: 'object', properties: { b: {} } },
        ],
      },
      '({ readonly a?: unknown }) & ({ readonly b?: unknown })',
    ],
    [{ $ref: '#/$defs/none' }, 'Tool1'],
  ])('says %j as %s', (schema, type) => {
    expect(typescriptOfSchema(schema as never, 'Tool').type).toBe(type)
  })

  it('names what refers to itself', () => {
    const tree = { type: 'object', properties: { children: { type: 'array', items: { $ref: '#' } } } }
    expect(typescriptOfSchema(tree as never, 'Tree')).toEqual({
      type: '{ readonly children?: readonly (Tree1)[] }',
      definitions: ['type Tree1 = { readonly children?: readonly (Tree1)[] }'],
    })
  })
})
