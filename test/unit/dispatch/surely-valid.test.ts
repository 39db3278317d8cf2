import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkValue, compileSchema } from '../../../src/dispatch/schemas/compiled-schema.ts'
import { isSurelyValid } from '../../../src/dispatch/schemas/surely-valid.ts'
import type { Json, JsonObject } from '../../../src/kernel/json.ts'

/** Undefined where the schema itself is not usable: the checker asks about such a one only once. */
function isValid(schema: Json, valueText: string): boolean | undefined {
  if (typeof schema === 'boolean') return schema
  const compiled = compileSchema(JSON.stringify(schema))
  return 'fault' in compiled ? undefined : checkValue(compiled, valueText) === undefined
}

const name = fc.constantFrom('a', 'b', 'toString', '__proto__', '')
/** Through text: only so is `__proto__` a member like any other. */
const objectOf = (members: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc
    .array(fc.tuple(name, members), { maxLength: 3 })
    .map(
      (pairs) =>
        JSON.parse(`{${pairs.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`) as JsonObject,
    )
const scalar = fc.constantFrom<Json[]>(null, true, false, 0, -1, 1, 1.5, 2, '', 'a', '😀', 'ab\u0301')
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    objectOf(tie('value')),
  ),
}))

const type = fc.constantFrom('null', 'array', 'object', 'integer', 'number', 'string', 'boolean')
const small = fc.integer({ min: 0, max: 3 })
const { schema } = fc.letrec<{ schema: Json }>((tie) => {
  const some = fc.array(tie('schema'), { minLength: 1, maxLength: 2 })
  const keywords: Record<string, fc.Arbitrary<Json>> = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 2 })),
    const: value,
    enum: fc.array(value, { minLength: 1, maxLength: 3 }),
    properties: objectOf(tie('schema')),
    additionalProperties: tie('schema'),
    patternProperties: fc.constantFrom({ '^a': false }, { '^a': true }),
    required: fc.uniqueArray(name, { maxLength: 2 }),
    items: tie('schema'),
    prefixItems: some,
    anyOf: some,
    allOf: some,
    oneOf: some,
    not: tie('schema'),
    minimum: small,
    maximum: small,
    exclusiveMinimum: small,
    exclusiveMaximum: small,
    minLength: small,
    maxLength: small,
    minItems: small,
    maxItems: small,
    minProperties: small,
    maxProperties: small,
    uniqueItems: fc.boolean(),
    multipleOf: fc.constantFrom(1, 2),
    pattern: fc.constant('^a'),
    title: fc.string(),
    format: fc.constant('email'),
    nullable: fc.boolean(),
    'x-unknown': value,
  }
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.boolean(),
      fc
        .subarray(Object.keys(keywords), { maxLength: 3 })
        .chain((chosen) =>
          fc.record(Object.fromEntries(chosen.map((key) => [key, keywords[key] ?? fc.constant(true)]))),
        ),
    ),
  }
})

describe('isSurelyValid()', () => {
  it('says yes only to what the validator takes', () => {
    let sure = 0
    fc.assert(
      fc.property(schema, value, (someSchema, someValue) => {
        const text = JSON.stringify(someValue)
        if (!isSurelyValid(someSchema, text)) return
        sure++
        expect(isValid(someSchema, text)).not.toBe(false)
      }),
      { numRuns: 1500 },
    )
    expect(sure).toBeGreaterThan(100)
  })

  it.each<[string, JsonObject, Json]>([
    [
      'an object of scalars',
      { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      { text: '' },
    ],
    ['nothing but what is named', { properties: { a: {} }, additionalProperties: false }, { a: 1 }],
    ['a list of objects', { items: { properties: { n: { type: 'integer', minimum: 1 } } } }, [{ n: 1 }, { n: 2 }]],
    ['something that may be null', { anyOf: [{ type: 'string' }, { type: 'null' }] }, null],
    ['one of some words', { enum: ['r', 'w'] }, 'w'],
    ['a length in code points', { minLength: 1, maxLength: 1 }, '😀'],
  ])('says yes to %s', (_, someSchema, someValue) => {
    expect(isSurelyValid(someSchema, JSON.stringify(someValue))).toBe(true)
  })

  it.each<[string, Json, string]>([
    ['text that is not JSON', {}, '{'],
    ['a value that is long', {}, JSON.stringify('x'.repeat(4095))],
    ['a keyword that is not known here', { pattern: 'a' }, '"a"'],
    ['items after others', { prefixItems: [true], items: false }, '[1]'],
    ['members by pattern', { patternProperties: { a: true }, additionalProperties: false }, '{"a":1}'],
    ['what every object inherits', { required: ['toString'] }, '{}'],
    ['equality of more than scalars', { const: {} }, '{}'],
    ['a schema that is none', { type: 'object', properties: 3 }, '{}'],
  ])('does not say yes to %s', (_, someSchema, text) => {
    expect(isSurelyValid(someSchema, text)).toBe(false)
  })

  const many = (count: number) => Array.from({ length: count }, () => true)
  it.each<[string, (count: number) => JsonObject, string]>([
    ['names', (count) => ({ items: { required: many(count).map(() => 'a') } }), '[{"a":1},{"a":1},{"a":1}]'],
    ['allowed values', (count) => ({ items: { enum: many(count).map((_, n) => n) } }), '[1,1,1]'],
    ['ways', (count) => ({ anyOf: [...many(count).map(() => ({ type: 'null' })), true] }), '1'],
    ['lengths', (count) => ({ allOf: many(count).map(() => ({ minLength: 1 })) }), JSON.stringify('x'.repeat(100))],
    ['members', (count) => ({ allOf: many(count).map(() => ({ properties: {} })) }), '{"a":1,"b":2,"c":3}'],
  ])('stops at too many %s, however cheap each is', (_, schemaOf, text) => {
    expect(isSurelyValid(schemaOf(50), text)).toBe(true)
    expect(isSurelyValid(schemaOf(5000), text)).toBe(false)
  })

  it('stops at deep nesting', () => {
    expect(isSurelyValid({}, `${'['.repeat(2040)}${']'.repeat(2040)}`)).toBe(true)
    const deep = (levels: number): Json => (levels === 0 ? true : { items: deep(levels - 1) })
    expect(isSurelyValid(deep(30), `${'['.repeat(30)}${']'.repeat(30)}`)).toBe(true)
  })
})
