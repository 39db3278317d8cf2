import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Json, JsonObject } from '../../../src/kernel/json.ts'
import { inputSchemaOf } from '../../../src/sdk/declare/json-schema.ts'
import { NotStrict } from '../../../src/contract/provider-schema/not-strict.ts'
import { portableSchema } from '../../../src/contract/provider-schema/portable-schema.ts'
import { strictSchema, type StrictSchema } from '../../../src/contract/provider-schema/strict-schema.ts'
import { withoutNulls } from '../../../src/contract/provider-schema/without-nulls.ts'
import { faultsOfSchema } from '../../support/provider-rules.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false, addUsedSchema: false })
const acceptance = (schema: JsonObject): ((value: Json) => boolean) => {
  const check = ajv.compile(schema as object)
  return (value) => check(value) === true
}

const NAMES = ['a', 'b', 'c', 'kind', 'ä ö', '__proto__']
const someNames = fc.subarray(NAMES, { minLength: 0 })

/** Schemas as Zod and others write them, with all that providers dislike. */
const { node } = fc.letrec<{ node: JsonObject; leaf: JsonObject; object: JsonObject }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    tie('object'),
    tie('node').map((items) => ({ type: 'array', items, maxItems: 3 })),
    fc.tuple(tie('node'), tie('node')).map(([one, other]) => ({ anyOf: [one, other] })),
    fc.tuple(tie('object'), tie('object')).map((two) => ({ oneOf: two.map(discriminated) })),
    fc.tuple(tie('leaf'), tie('leaf'), fc.boolean()).map(([one, other, isClosed]) => ({
      type: 'array',
      prefixItems: [one, other],
      ...(isClosed ? { items: false } : {}),
    })),
  ),
  leaf: fc.oneof(
    fc.constantFrom<JsonObject>(
      { type: 'string' },
      { type: 'string', minLength: 1, default: 'x' },
      { type: 'string', pattern: '^(?!b)' },
      { type: 'string', format: 'uri' },
      { type: ['string', 'null'], description: 'perhaps' },
      { type: ['integer', 'array'], minimum: 0, items: { type: 'string' } },
      { type: 'integer', minimum: 0 },
      { type: 'boolean' },
      { type: 'null' },
      { enum: ['x', 'y', null] },
      { const: 1 },
      { $ref: '#/$defs/shared' },
      {},
      { type: 'array' },
    ),
  ),
  object: fc
    .tuple(someNames, fc.array(tie('node'), { minLength: 6, maxLength: 6 }), someNames, fc.constantFrom(0, 1, 2, 3))
    .map(([names, members, required, more]) => ({
      type: 'object',
      properties: Object.fromEntries(names.map((name, index) => [name, members[index] ?? {}])),
      ...(required.length > 0 ? { required: required.filter((name) => names.includes(name)) } : {}),
      ...[{}, {}, { additionalProperties: false }, { additionalProperties: { type: 'string' } }][more],
    })),
}))

function discriminated(object: JsonObject, index: number): JsonObject {
  const { properties, required = [] } = object as { properties: JsonObject; required?: string[] }
  const names = new Set([...required, 'kind'])
  return { ...object, properties: { ...properties, kind: { const: `k${index}` } }, required: [...names] }
}

const roots = fc
  .tuple(node, node, fc.constantFrom('object', 'anyOf', 'allOf', 'oneOf'), someNames)
  .map(([one, other, form, required]): JsonObject => {
    const $defs = { shared: { type: 'object', properties: { deep: { type: 'string' } } } }
    const object = {
      type: 'object',
      properties: { one, other },
      ...(required.includes('a') ? { required: ['one'] } : {}),
    }
    if (form === 'object') return { ...object, $defs }
    return { type: 'object', [form]: [object, { ...object, properties: { two: other, one } }], $defs }
  })

/** Values that a schema is likely to accept. */
function valueOf(schema: any, root: any, depth = 0): fc.Arbitrary<Json> {
  const { anyOf, oneOf, allOf, enum: choices, const: only, $ref, type } = schema
  const inner = (one: any): fc.Arbitrary<Json> => valueOf(one, root, depth + 1)
  const several = anyOf ?? oneOf ?? (Array.isArray(type) ? type.map((one) => ({ ...schema, type: one })) : undefined)
  if (typeof $ref === 'string') return inner(root.$defs[$ref.split('/')[2] ?? ''])
  if (allOf) return fc.tuple(...allOf.map(inner)).map((parts) => Object.assign({}, ...(parts as object[])) as Json)
  if (several) return fc.oneof(...(several as any[]).map((one) => inner(one)))
  if (choices) return fc.constantFrom(...choices)
  if (only !== undefined) return fc.constant(only)
  if (type === 'object' || type === 'array') return compoundOf(schema, inner, depth)
  if (type === 'boolean') return fc.boolean()
  if (type === 'null') return fc.constant(null)
  return type === 'integer' ? fc.integer({ min: 0, max: 3 }) : fc.constantFrom('x', 'y', 'abc', 'b')
}

function compoundOf(schema: any, inner: (one: any) => fc.Arbitrary<Json>, depth: number): fc.Arbitrary<any> {
  const { type, properties = {}, required = [], items = {}, prefixItems } = schema
  if (prefixItems) return fc.tuple(...prefixItems.map(inner))
  if (type === 'array') return depth > 4 ? fc.constant([]) : fc.array(inner(items), { maxLength: 3 })
  const members = Object.entries(properties).map(([name, member]) => [name, inner(member)])
  return fc.record(Object.fromEntries(members), { requiredKeys: required, noNullPrototype: true })
}

function strictOf(schema: JsonObject): StrictSchema | undefined {
  try {
    return strictSchema(schema)
  } catch (error) {
    if (error instanceof NotStrict) return undefined
    throw error
  }
}

const values = (schema: JsonObject): fc.Arbitrary<Json[]> =>
  fc.array(valueOf(schema, schema), { minLength: 4, maxLength: 4 })

describe('schemas for providers', () => {
  it('portable: obeys OpenAI, accepts whatever the original accepts, and no more when there are no remarks', () => {
    let checked = 0
    const cases = roots.chain((root) => fc.tuple(fc.constant(root), values(root)))
    const property = fc.property(cases, ([root, given]) => {
      const { schema, remarks } = portableSchema(root)
      expect(faultsOfSchema(schema, 'openai')).toEqual([])
      const [isRight, isTaken] = [acceptance(root), acceptance(schema)]
      for (const value of given) {
        if (isRight(value)) checked++
        if (isRight(value) || remarks.length === 0) expect(isTaken(value), JSON.stringify(value)).toBe(isRight(value))
      }
    })
    fc.assert(property, { numRuns: 100 })
    expect(checked).toBeGreaterThan(100)
  })

  it('strict: obeys OpenAI, and its inputs are right for the original when there are no remarks', () => {
    let checked = 0
    const exact = roots.map((root) => ({ root, made: strictOf(root) })).filter(({ made }) => made !== undefined)
    const cases = exact.chain(({ root, made }) =>
      fc.record({ root: fc.constant(root), made: fc.constant(made!), given: values(made!.schema) }),
    )
    const property = fc.property(cases, ({ root, made, given }) => {
      expect(faultsOfSchema(made.schema, 'openai_strict')).toEqual([])
      if (made.remarks.length > 0) return
      const [isRight, isTaken] = [acceptance(root), acceptance(made.schema)]
      for (const value of given.filter((one) => isTaken(one))) {
        checked++
        const own = withoutNulls(made, value)
        expect(isRight(own), JSON.stringify([value, own])).toBe(true)
      }
    })
    fc.assert(property, { numRuns: 100 })
    expect(checked).toBeGreaterThan(50)
  })
})

const inputOf = (schema: z.ZodType): JsonObject => inputSchemaOf('Cannot test', schema)

describe('portable()', () => {
  const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
    type: 'object',
    properties,
    ...more,
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['an anchor', { $ref: '#word' }, { $defs: { word: { $anchor: 'word', type: 'string' } } }],
    ['a dynamic anchor', { $dynamicRef: '#word' }, { $defs: { word: { $dynamicAnchor: 'word', type: 'string' } } }],
    ['nothing', { $ref: '#/$defs/none' }, {}],
    ['no name at all', { $ref: '#/$defs/%' }, { $defs: { '%': {} } }],
    ['a branch of the root', { $ref: '#/anyOf/0/properties/b' }, { anyOf: [object({ b: { type: 'string' } })] }],
  ])('leaves no reference to %s, and says so', (_, member, more) => {
    const { schema, remarks } = portableSchema(object({ a: { ...member, description: 'One' } }, more))
    expect((schema['properties'] as JsonObject)['a']).toEqual({ description: 'One' })
    expect(remarks.map(({ path }) => path)).toContain(`#/properties/a/${Object.keys(member)[0]}`)
    expect(() => acceptance(schema)).not.toThrow()
  })

  it('keeps references that lead somewhere', () => {
    const whole = object(
      { a: { $ref: '#/$defs/a~1b%20c' }, b: { $ref: '#' } },
      { $defs: { 'a/b c': { type: 'string' } } },
    )
    expect(portableSchema(whole)).toEqual({ schema: whole, remarks: [] })
  })

  it('lists no value twice, and never none', () => {
    const { schema } = portableSchema(object({ a: { enum: ['x', 1, 'x', { b: 1 }, { b: 1 }] }, b: { enum: [] } }))
    expect(schema['properties']).toEqual({ a: { enum: ['x', 1, { b: 1 }] }, b: { not: {} } })
  })
})

describe('strict()', () => {
  it('lists the values that the type has', () => {
    const inside = (member: JsonObject): Json =>
      strictSchema({ type: 'object', properties: { a: member }, required: ['a'] }).schema['properties'] ?? null
    expect(inside({ type: 'string', enum: ['x', 1, null, 'x'] })).toEqual({ a: { type: 'string', enum: ['x'] } })
    expect(inside({ type: 'integer', enum: [1, 2, 2.5] })).toEqual({ a: { type: 'integer', enum: [1, 2] } })
    expect(inside({ type: ['string', 'null'], enum: ['x', null] })).toEqual({
      a: { type: ['string', 'null'], enum: ['x', null] },
    })
    for (const nothing of [{ enum: [] }, { type: 'string', enum: [1] }, { type: 'string', const: 1 }])
      expect(() => inside(nothing)).toThrow('it accepts nothing')
  })

  it('makes optional members nullable, and takes the nulls away again', () => {
    const made = strictSchema(
      inputOf(
        z.object({
          city: z.string(),
          days: z.number().int().default(3),
          unit: z.enum(['C', 'F']).nullable().optional(),
        }),
      ),
    )
    expect(made.schema).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: {
          description: '(default: 3)',
          anyOf: [{ type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 }, { type: 'null' }],
        },
        unit: { anyOf: [{ type: 'string', enum: ['C', 'F'] }, { type: 'null' }] },
      },
      required: ['city', 'days', 'unit'],
      additionalProperties: false,
    })
    expect(made.remarks).toEqual([])
    expect(withoutNulls(made, { city: 'Oslo', days: null, unit: null })).toEqual({ city: 'Oslo', unit: null })
  })

  it('follows recursion, lists and choices when it takes nulls away', () => {
    const tree = z.object({
      name: z.string(),
      note: z.string().optional(),
      get children() {
        return z.array(tree).optional()
      },
    })
    const shape = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('circle'), radius: z.number().optional() }),
      z.object({ kind: z.literal('square'), side: z.number() }),
    ])
    const made = strictSchema(inputOf(z.object({ tree, shapes: z.array(shape) })))
    expect(made.remarks).toEqual([])
    const input = {
      tree: { name: 'a', note: null, children: [{ name: 'b', note: 'n', children: null }] },
      shapes: [
        { kind: 'square', side: 1 },
        { kind: 'circle', radius: null },
      ],
    }
    expect(withoutNulls(made, input)).toEqual({
      tree: { name: 'a', children: [{ name: 'b', note: 'n' }] },
      shapes: [{ kind: 'square', side: 1 }, { kind: 'circle' }],
    })
  })

  it('takes no time that doubles with each level of a recursive choice', () => {
    const branch = (kind: string): JsonObject => ({
      type: 'object',
      properties: {
        child: { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }, { type: 'null' }] },
        kind: { const: kind },
      },
      required: ['child', 'kind'],
    })
    const $defs = { a: branch('a'), b: branch('b') }
    const made = strictSchema({
      type: 'object',
      properties: { tree: { $ref: '#/$defs/a' } },
      required: ['tree'],
      $defs,
    })
    let tree: Json = null
    for (let level = 0; level < 60; level++) tree = { child: tree, kind: level % 2 === 0 ? 'b' : 'a' }
    expect(withoutNulls(made, { tree })).toEqual({ tree })
  })

  it.each([
    ['an open map', z.object({ headers: z.record(z.string(), z.string()) }), '#/properties/headers'],
    ['further members', z.looseObject({ a: z.string() }), '#'],
    ['anything', z.object({ a: z.any() }), '#/properties/a'],
    ['a tuple', z.object({ at: z.tuple([z.number(), z.number()]) }), '#/properties/at/prefixItems'],
    ['two objects in one', undefined, '#/properties/a/allOf'],
    ['a thousand values', z.object({ a: z.enum(Array.from({ length: 1001 }, (_, i) => `v${i}`)) }), '#'],
    [
      'long values',
      z.object({ a: z.enum(Array.from({ length: 251 }, (_, i) => `${i}`.padEnd(60, 'x'))) }),
      '#/properties/a',
    ],
    ['5001 members', z.object(Object.fromEntries(Array.from({ length: 5001 }, (_, i) => [`m${i}`, z.string()]))), '#'],
    ['eleven levels', z.object({ a: nested(10) }), undefined],
  ])('refuses %s with the path', (_what, schema, path) => {
    const refused = (): unknown => strictSchema(schema ? inputOf(schema) : intersection)
    expect(refused).toThrow(NotStrict)
    if (path !== undefined) expect(refused).toThrow(expect.objectContaining({ path }))
  })

  it('tells the model in words what it cannot say, and remarks on it', () => {
    const { schema, remarks } = strictSchema(
      inputOf(
        z.object({
          page: z.url().describe('Yours'),
          code: z
            .string()
            .regex(/^(?=.*a)/)
            .min(6),
        }),
      ),
    )
    expect(schema['properties']).toEqual({
      page: { description: 'Yours (format: "uri")', type: 'string' },
      code: { description: '(minLength: 6; pattern: "^(?=.*a)")', type: 'string' },
    })
    expect(remarks.map(({ path }) => path).toSorted()).toEqual([
      '#/properties/code/minLength',
      '#/properties/code/pattern',
      '#/properties/page/format',
    ])
  })
})

/** Zod makes one object of two where it can. */
const intersection: JsonObject = {
  type: 'object',
  properties: { a: { allOf: [{ type: 'object' }, { type: 'object' }] } },
}

function nested(levels: number): z.ZodType {
  return levels === 0 ? z.string() : z.object({ a: nested(levels - 1) })
}
