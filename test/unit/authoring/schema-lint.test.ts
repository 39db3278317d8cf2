import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { type Finding, lint } from '../../../src/authoring/schema-lint/lint.ts'
import { providerSchema } from '../../../src/authoring/schema-lint/provider-schema.ts'
import { faultsOfSchema } from '../../support/provider-rules.ts'

const toolOf = (input_schema: JsonObject, more: object = {}) => ({
  name: 'lookup',
  description: 'Looks up one record.',
  input_schema,
  ...more,
})

const described = (schema: JsonObject): JsonObject => ({ ...schema, description: 'What it is for.' })
const objectOf = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const { schema } = fc.letrec<{ schema: JsonObject; inner: JsonObject | boolean }>((tie) => ({
  inner: fc.oneof({ weight: 6, arbitrary: tie('schema') }, { weight: 1, arbitrary: fc.boolean() }),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonObject>(
      { type: 'string' },
      { type: 'string', pattern: '^(?=a)' },
      { type: 'array' },
      { type: ['array', 'null'] },
      { $ref: 'https://example.com/schema' },
      { $ref: '#/$defs/one' },
      { enum: ['a'] },
      {},
    ),
    tie('inner').map((items) => ({ type: 'array', items })),
    fc.tuple(tie('inner'), tie('inner')).map((prefixItems) => ({ type: 'array', prefixItems })),
    fc.tuple(fc.constantFrom('anyOf', 'oneOf', 'allOf'), tie('schema'), tie('inner')).map(([keyword, one, other]) => ({
      [keyword]: [one, other],
    })),
    fc.tuple(tie('inner'), tie('inner'), fc.constantFrom('b', 'ä ö')).map(([one, other, name]) => ({
      type: 'object',
      properties: { a: one, [name]: other },
    })),
    tie('schema').map((one) => ({ type: 'object', additionalProperties: one, not: one })),
  ),
}))
const tools = fc.tuple(schema, schema).map(([root, one]) => toolOf({ ...root, $defs: { one } }))

const refusals = (findings: readonly Finding[], provider: string): readonly Finding[] =>
  findings.filter((finding) => finding.provider === provider && finding.severity === 'refused')

describe('lint()', () => {
  it('finds a refusal exactly where a provider would refuse the schema', () => {
    const found = { openai: 0, anthropic: 0 }
    const property = fc.property(tools, (tool) => {
      for (const provider of ['openai', 'anthropic'] as const) {
        const { length } = refusals(lint(tool), provider)
        expect(length > 0, provider).toBe(faultsOfSchema(tool.input_schema, provider).length > 0)
        if (length > 0) found[provider]++
      }
    })
    fc.assert(property, { numRuns: 300 })
    expect(Math.min(found.openai, found.anthropic)).toBeGreaterThan(20)
  })

  it('says nothing of a tool that all take as it is', () => {
    expect(lint(toolOf(objectOf({ id: described({ type: 'string' }) })))).toEqual([])
  })

  const explained: readonly (readonly [string, ReturnType<typeof toolOf>, string, string, RegExp, RegExp])[] = [
    [
      'an array without items',
      toolOf(objectOf({ a: described({ type: 'array' }) })),
      'openai',
      '/input_schema/properties/a',
      /without "items"/,
      /\{\} is anything/,
    ],
    [
      'a union at the root',
      toolOf({ type: 'object', properties: {}, anyOf: [objectOf({})] }),
      'anthropic',
      '/input_schema/anyOf',
      /refused at the top/,
      /member of its own/,
    ],
    [
      'a root that is no object',
      toolOf({ type: 'array', items: {} }),
      'mcp',
      '/input_schema',
      /type "object"/,
      /one object/,
    ],
    ['a name with a space', toolOf(objectOf({}), { name: 'a b' }), 'openai', '/name', /does not match/, /1 to 64/],
    [
      'a name of 65 characters',
      toolOf(objectOf({}), { name: 'a'.repeat(65) }),
      'anthropic',
      '/name',
      /does not match/,
      /1 to 64/,
    ],
    [
      'no description',
      toolOf(objectOf({}), { description: ' ' }),
      'all',
      '/description',
      /no description/,
      /when to call it/,
    ],
    [
      'a long description',
      toolOf(objectOf({}), { description: 'x'.repeat(5000) }),
      'openai',
      '/description',
      /5000 characters/,
      /shorten/,
    ],
    [
      'a member without a description',
      toolOf(objectOf({ 'a/b': { type: 'string' } })),
      'all',
      '/input_schema/properties/a~1b',
      /no description/,
      /example/,
    ],
    [
      'a member that Anthropic cannot name',
      toolOf(objectOf({ 'ä ö': described({ type: 'string' }) })),
      'anthropic',
      '/input_schema/properties/ä ö',
      /of this name/,
      /rename/,
    ],
    [
      'an open object in strict mode',
      toolOf(objectOf({ m: described({ type: 'object', additionalProperties: { type: 'string' } }) })),
      'openai_strict',
      '/input_schema/properties/m',
      /strict mode is not possible/,
      /list its members/,
    ],
    [
      'a keyword that strict mode lacks',
      toolOf(objectOf({ s: described({ type: 'string', minLength: 2 }) })),
      'openai_strict',
      '/input_schema/properties/s/minLength',
      /no minLength/,
      /Brain/,
    ],
    [
      'a pattern that looks ahead',
      toolOf(objectOf({ s: described({ type: 'string', pattern: '^(?!a)' }) })),
      'openai',
      '/input_schema/properties/s/pattern',
      /look ahead/,
      /without/,
    ],
    [
      'a tuple',
      toolOf(objectOf({ t: described({ type: 'array', prefixItems: [{ type: 'string' }] }) })),
      'openai',
      '/input_schema/properties/t',
      /tuples/,
      /named members/,
    ],
    [
      'a result that is a list',
      toolOf(objectOf({}), { output_schema: { type: 'array', items: {} } }),
      'mcp',
      '/output_schema',
      /objects only/,
      /give an object/,
    ],
    [
      'many members',
      toolOf(
        objectOf(Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`m${n}`, described({ type: 'string' })]))),
      ),
      'all',
      '/input_schema',
      /30 members/,
      /several tools/,
    ],
    [
      'a large schema',
      toolOf(objectOf({ e: described({ type: 'string', enum: ['x'.repeat(40_000)] }) })),
      'all',
      '/input_schema',
      /every request/,
      /several tools/,
    ],
  ]
  it.each(explained.map(([what, ...rest]) => ({ what, rest })))('explains $what', ({ rest }) => {
    const [tool, provider, path, problem, remedy] = rest
    const finding = lint(tool).find(
      (one) => one.provider === provider && one.path === path && problem.test(one.problem),
    )
    expect(finding?.problem).toMatch(problem)
    expect(finding?.remedy).toMatch(remedy)
  })

  it('bounds what it says and what it looks at', () => {
    const wide = objectOf(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`m${n}`, { type: 'string' }])))
    expect(lint(toolOf(wide)).length).toBeLessThan(30)
    const deep = Array.from({ length: 60 }).reduce<JsonObject>((inner) => objectOf({ a: inner }), { type: 'array' })
    const found = lint(toolOf(deep))
    expect(found.map(({ problem }) => problem)).toContainEqual(expect.stringMatching(/nested deeper/))
    expect(found.length).toBeLessThan(40)
  })
})

describe('providerSchema()', () => {
  it('is taken by the provider, whatever the tool has', () => {
    fc.assert(
      fc.property(tools, (tool) => {
        const openai = providerSchema(tool, 'openai') as { function: { parameters: JsonObject } }
        const anthropic = providerSchema(tool, 'anthropic') as { input_schema: JsonObject }
        expect(faultsOfSchema(openai.function.parameters, 'openai')).toEqual([])
        const isNamed = !JSON.stringify(tool).includes('ä ö')
        if (isNamed) expect(faultsOfSchema(anthropic.input_schema, 'anthropic')).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('has the form of each provider', () => {
    const input = objectOf({ id: described({ type: 'string' }) })
    const tool = toolOf(input, { output_schema: objectOf({}) })
    const { name, description } = tool
    expect(providerSchema(tool, 'openai')).toEqual({
      type: 'function',
      function: { name, description, parameters: input, strict: false },
    })
    expect(providerSchema(tool, 'anthropic')).toEqual({ name, description, input_schema: input })
    expect(providerSchema(tool, 'mcp')).toEqual({ name, description, inputSchema: input, outputSchema: objectOf({}) })
  })
})
