import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import fc from 'fast-check'
import type { SchemaChecker } from '../../src/contract/schema-checker.ts'
import type { Json, JsonObject } from '../../src/kernel/json.ts'
import { openSchemaChecker } from '../../src/dispatch/schemas/open-schema-checker.ts'

const COSTLY = 'the schema is too costly: the check took more than 250 ms'

function open(): SchemaChecker {
  const checker = openSchemaChecker()
  onTestFinished(() => checker[Symbol.asyncDispose]())
  return checker
}

const valid = { valid: true }
const check = (checker: SchemaChecker, schema: JsonObject, value: Json) =>
  checker.checkValue(schema, JSON.stringify(value))

async function messageOf(verdict: ReturnType<SchemaChecker['checkSchema']>): Promise<string> {
  const answered = await verdict
  if (answered.valid) throw new Error('the verdict was: valid')
  expect(answered.message.length).toBeLessThanOrEqual(1000)
  expect(answered.message.length).toBeGreaterThan(0)
  return answered.message
}

/** Milliseconds of CPU that this thread took between one turn of its event loop, about, and the next. */
async function cpuBetweenTurns(work: () => Promise<void>): Promise<readonly number[]> {
  const used: number[] = []
  let last = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(last)
    used.push((user + system) / 1000)
    last = process.threadCpuUsage()
  }
  const timer = setInterval(look, 1)
  await work()
  clearInterval(timer)
  look()
  return used
}

const nested = (levels: number): JsonObject => {
  let schema: JsonObject = { type: 'string' }
  for (let level = 1; level < levels; level++) schema = { not: schema }
  return schema
}

describe('SchemaChecker', () => {
  it('`checkValue()` names the first faults with their paths and what would be right', async () => {
    const checker = open()
    const schema = {
      type: 'object',
      properties: {
        mode: { enum: ['r', 'w'] },
        limits: { type: 'object', properties: { depth: { type: 'integer', minimum: 1 } }, additionalProperties: false },
        kind: { const: 'file' },
        list: { type: 'array', items: { type: ['string', 'null'] } },
      },
      required: ['mode'],
    }
    expect(await check(checker, schema, { mode: 'r', limits: { depth: 3 }, kind: 'file', list: ['a', null] })).toEqual(
      valid,
    )
    expect(await messageOf(check(checker, schema, []))).toBe('the value must be object')
    expect(await messageOf(check(checker, schema, { limits: { depth: 0, 'a/b': 1 }, kind: 1, list: [1] }))).toBe(
      'the value must have the property "mode"; /limits must not have the property "a/b"; /limits/depth must be >= 1; /kind must be "file"; /list/0 must be string or null',
    )
    expect(await messageOf(check(checker, schema, { mode: 'x' }))).toBe('/mode must be one of "r", "w"')
    expect(await messageOf(checker.checkValue(schema, '{"mode":'))).toMatch(/^it is not JSON: /)
  })

  it('`checkValue()` says at most 1,000 characters, whatever a schema or a value holds', async () => {
    const checker = open()
    const words = Array.from({ length: 500 }, (_, n) => `😀 word ${n}`)
    const long = 'p'.repeat(5000)
    expect(await messageOf(check(checker, { enum: words }, 'x'))).toContain('must be one of "😀 word 0", ')
    expect(await messageOf(check(checker, { required: words }, {}))).toContain('"😀 word 0"; ')
    await messageOf(check(checker, { additionalProperties: { type: 'string' } }, { [long]: 1 }))
    await messageOf(check(checker, { required: [long] }, {}))
    await messageOf(check(checker, { pattern: long }, 'x'))
  })

  it.each([
    ['a type that is none', { type: 'thing' }, '/type must be'],
    ['keywords of the wrong form', { properties: 3 }, '/properties must be object'],
    ['a reference to nothing', { $ref: '#/$defs/none' }, "can't resolve reference #/$defs/none"],
    ['a pattern that is no regular expression', { pattern: '(' }, 'Invalid regular expression'],
    [
      'a remote reference',
      { properties: { a: { $ref: 'https://example.com/s.json' } } },
      '/properties/a/$ref is "https://example.com/s.json"',
    ],
    ['a relative reference', { items: { $ref: 'other.json#/a' } }, 'only references within the schema'],
    ['a remote dynamic reference', { $dynamicRef: 'https://example.com/s' }, 'only references within the schema'],
    ['a named part', { $defs: { a: { $id: 'https://example.com/a' } } }, '/$defs/a/$id names a part'],
    ['a named part in an unknown keyword', { 'x-more': [{ $id: 'a' }] }, '/x-more/0/$id names a part'],
    ['an asynchronous schema', { $async: true }, '"$async" is not part of JSON Schema'],
    ['a schema that is too deep', nested(33), 'nested deeper than 32 levels'],
    ['a schema that is too large', { description: 'é'.repeat(33_000) }, 'over the limit of 65536'],
  ] as const)('`checkSchema()` refuses %s', async (_, schema, reason) => {
    const checker = open()
    expect(await messageOf(checker.checkSchema(schema as JsonObject))).toContain(reason)
    expect(await messageOf(check(checker, schema as JsonObject, 1))).toContain(reason)
    expect(await checker.checkSchema({ type: 'string' })).toEqual(valid)
  })

  it('`checkSchema()` takes what is common in the wild', async () => {
    const checker = open()
    const schemas: readonly JsonObject[] = [
      {},
      { $schema: 'http://json-schema.org/draft-07/schema#', $id: 'https://example.com/root', type: 'object' },
      // The name of the dialect's own schema must not change what other schemas mean.
      { $id: 'https://json-schema.org/draft/2020-12/schema', type: 'string' },
      { type: 'string', format: 'date-time', 'x-unknown': { any: 'thing' }, examples: [{ $ref: 'https://x' }] },
      { properties: { $ref: { type: 'string' }, $id: { type: 'string' }, toString: { type: 'number' } } },
      { $defs: { node: { properties: { next: { $ref: '#/$defs/node' } } } }, $ref: '#/$defs/node' },
      { $defs: { a: { $anchor: 'here' } }, $ref: '#here' },
      { prefixItems: [{ type: 'string' }], items: false, unevaluatedProperties: false },
      { pattern: '^[\\w-.]+$' },
      { const: { $ref: 'https://example.com' } },
      nested(32),
    ]
    for (const schema of schemas) expect(await checker.checkSchema(schema), JSON.stringify(schema)).toEqual(valid)
    expect(await checker.checkSchema({ type: 'thing' })).toMatchObject({ valid: false })
  })

  it('`checkValue()` sees what a value has and not what every object inherits', async () => {
    const checker = open()
    expect(await check(checker, { required: ['toString'] }, {})).toMatchObject({ valid: false })
    expect(await check(checker, { properties: { constructor: { type: 'number' } } }, {})).toEqual(valid)
    const own = '{"__proto__":1}'
    expect(await checker.checkValue({ additionalProperties: false }, own)).toMatchObject({ valid: false })
    expect(await checker.checkValue({ required: ['__proto__'] }, own)).toEqual(valid)
    expect(await checker.checkValue({ type: 'string', maxLength: 1 }, '"😀"')).toEqual(valid)
    expect(await checker.checkValue({ const: 'a\u0000b\ud800' }, JSON.stringify('a\u0000b\ud800'))).toEqual(valid)
  })

  const bomb: JsonObject = {
    $defs: Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `a${n}`,
        n === 39 ? {} : { allOf: [{ $ref: `#/$defs/a${n + 1}` }, { $ref: `#/$defs/a${n + 1}` }] },
      ]),
    ),
    $ref: '#/$defs/a0',
  }
  it.each([
    ['a pattern that backtracks', { pattern: '^(a+)+$' }, JSON.stringify(`${'a'.repeat(40)}!`), COSTLY],
    [
      'a property pattern that backtracks',
      { patternProperties: { '^(([a-z])+.)+[A-Z]([a-z])+$': {} } },
      JSON.stringify({ ['a'.repeat(60)]: 1 }),
      COSTLY,
    ],
    ['references that double at each level', bomb, '1', 'the schema is too costly: the check took more than'],
    ['a reference to itself', { $ref: '#' }, '1', 'it recurses too deeply'],
  ] as const)('`checkValue()` ends %s and goes on', { timeout: 30_000 }, async (_, schema, text, reason) => {
    const checker = open()
    await checker.checkSchema({})
    const began = performance.now()
    const message = await messageOf(checker.checkValue(schema as JsonObject, text))
    expect(message).toContain(reason)
    // The kill itself is prompt; what is left of two seconds is for a busy machine.
    expect(performance.now() - began).toBeLessThan(2000)
    expect(await check(checker, { type: 'string' }, 'still here')).toEqual(valid)
  })

  it('`checkValue()` takes large values and wide schemas in its stride', async () => {
    const checker = open()
    expect(await checker.checkValue({ type: 'string' }, JSON.stringify('x'.repeat(1024 * 1024)))).toEqual(valid)
    expect(await checker.checkValue({ type: 'string' }, JSON.stringify('x'.repeat(30 * 1024 * 1024)))).toEqual(valid)
    const objects = Array.from({ length: 15_000 }, (_, n) => ({ n: n % 14_999 }))
    expect(await check(checker, { uniqueItems: true }, objects.slice(1))).toEqual(valid)
    const twice = await messageOf(check(checker, { uniqueItems: true }, objects))
    expect(twice).toBe('the value must not hold the same item twice')
    const numbers = Array.from({ length: 150_000 }, (_, n) => n)
    expect(await check(checker, { items: { type: 'integer' }, uniqueItems: true }, numbers)).toEqual(valid)
    expect(await messageOf(check(checker, { items: { type: 'string' } }, numbers))).toBe('/0 must be string')
    const properties = Object.fromEntries(Array.from({ length: 1500 }, (_, n) => [`property${n}`, { type: 'string' }]))
    expect(await check(checker, { properties }, { property7: 'x' })).toEqual(valid)
  })

  it('`checkValue()` answers good checks while bad ones are killed, each with its own verdict', async () => {
    const checker = open()
    await checker.checkSchema({})
    const bad = { pattern: '^(b+)+$' }
    const worse = { pattern: '^(c+)+$' }
    const good = { type: 'object', required: ['n'] }
    const verdicts = await Promise.all([
      ...Array.from({ length: 20 }, (_, n) => check(checker, good, { n })),
      check(checker, bad, `${'b'.repeat(40)}!`),
      ...Array.from({ length: 20 }, () => check(checker, good, {})),
      check(checker, worse, `${'c'.repeat(40)}!`),
      check(checker, bad, 'bbb'),
      check(checker, bad, 'x'),
      check(checker, bad, `${'b'.repeat(41)}!`),
      ...Array.from({ length: 20 }, (_, n) => check(checker, good, { n })),
    ])
    const missing = { valid: false, message: 'the value must have the property "n"' }
    expect(verdicts.slice(0, 20)).toEqual(Array(20).fill(valid))
    expect(verdicts.slice(21, 41)).toEqual(Array(20).fill(missing))
    expect(verdicts.slice(45)).toEqual(Array(20).fill(valid))
    const costly = { valid: false, message: COSTLY }
    const mismatch = { valid: false, message: 'the value must match pattern "^(b+)+$"' }
    expect([verdicts[20], ...verdicts.slice(41, 45)]).toEqual([costly, costly, valid, mismatch, costly])
  })

  it('computes next to nothing on the thread that asks, however costly a schema is', async () => {
    const checker = open()
    await checker.checkSchema({})
    const doubled = (levels: number) => ({
      $ref: `#/$defs/d${levels}`,
      $defs: Object.fromEntries(
        Array.from({ length: levels + 1 }, (_, n) => {
          const one = { $ref: `#/$defs/d${n - 1}` }
          return [`d${n}`, n === 0 ? {} : { allOf: [one, one] }]
        }),
      ),
    })
    const costly: readonly (readonly [JsonObject, Json])[] = [
      [{ pattern: '^(e+)+$' }, `${'e'.repeat(40)}!`],
      [{ patternProperties: { '^(e+)+$': true } }, { [`${'e'.repeat(40)}!`]: 1 }],
      [{ uniqueItems: true }, Array.from({ length: 20_000 }, (_, n) => ({ a: { b: [n] } }))],
      [{ $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } } }, {}],
      [doubled(30), {}],
    ]
    const texts = costly.map(([schema, value]) => [schema, JSON.stringify(value)] as const)
    // CPU time, which nobody else on the machine can take: the bound of 20 ms for what else is served holds there.
    const used = await cpuBetweenTurns(async () => {
      for (const [schema, text] of texts)
        await Promise.all([checker.checkSchema(schema), checker.checkValue(schema, text)])
    })
    expect(Math.max(...used)).toBeLessThan(10)
  })

  it('`checkValue()` of a schema that was too costly once holds up nobody else', async () => {
    const checker = open()
    await checker.checkSchema({})
    const bad = { pattern: '^(d+)+$' }
    let ended = 0
    const burst = (count: number) =>
      Array.from({ length: count }, () => check(checker, bad, `${'d'.repeat(40)}!`).then(() => ended++))
    const first = burst(4)
    expect(await check(checker, { type: 'integer' }, 1)).toEqual(valid)
    expect(ended).toBe(1)
    const second = burst(3)
    for (let n = 0; n < 200; n++) expect(await check(checker, { type: 'integer' }, n)).toEqual(valid)
    expect(ended).toBeLessThan(4)
    await Promise.all([...first, ...second])
  })

  it('`checkValue()` remembers schemas by what they say, and more of them than it keeps compiled', async () => {
    const checker = open()
    const schemas = Array.from({ length: 600 }, (_, n) => ({ const: n }))
    for (let round = 0; round < 2; round++) {
      const verdicts = await Promise.all(schemas.map((schema, n) => check(checker, schema, n)))
      expect(verdicts).toEqual(Array(600).fill(valid))
    }
    for (let n = 0; n < 600; n += 50) expect(await check(checker, { const: n }, n + 1)).toMatchObject({ valid: false })
  })

  it('`[Symbol.asyncDispose]()` leaves no thread, ends what is running and refuses what comes after', async () => {
    let threads = 0
    const counted = (worker: { once(event: 'exit', listener: () => void): unknown }): void => {
      threads++
      worker.once('exit', () => threads--)
    }
    process.on('worker', counted)
    onTestFinished(() => void process.off('worker', counted))
    const checker = openSchemaChecker()
    await checker.checkSchema({})
    await check(checker, { pattern: '^(e+)+$' }, `${'e'.repeat(40)}!`)
    const running = check(checker, { pattern: '^(e+)+$' }, `${'e'.repeat(40)}!`)
    const refused = expect(running).rejects.toMatchObject({ code: 'internal' })
    expect(threads).toBeGreaterThan(0)
    await checker[Symbol.asyncDispose]()
    await refused
    expect(threads).toBe(0)
    await expect(checker.checkSchema({})).rejects.toThrow('the checker is closed')
    await checker[Symbol.asyncDispose]()
  })

  it('`trust()` spares a schema, and simple values of it, the thread; others go there', async () => {
    let threads = 0
    const counted = (): void => void threads++
    process.on('worker', counted)
    onTestFinished(() => void process.off('worker', counted))
    await using checker = openSchemaChecker({ atOnce: false })
    checker.trust({ type: 'object', required: ['a'] })
    const schema = { type: 'object', required: ['a'] } as const
    expect(await checker.checkSchema(schema)).toEqual({ valid: true })
    expect(await checker.checkValue(schema, '{"a":1}')).toEqual({ valid: true })
    expect(threads).toBe(0)
    expect(await checker.checkValue(schema, '{}')).toMatchObject({ valid: false })
    expect(await checker.checkSchema({ type: 'nothing' })).toMatchObject({ valid: false })
    expect(threads).toBeGreaterThan(0)
  })

  it('`checkValue()` agrees with what a value is, for any JSON and any names', async () => {
    const checker = open()
    const key = fc.oneof(
      // Not the empty name: the validator takes an absent member of that name for present in `required`.
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.constantFrom('valueOf', 'toString', 'constructor', '__proto__', 'hasOwnProperty', 'length', 'toJSON', 'then'),
    )
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        fc.constantFrom<Json[]>(null, true, 0, 1, -1.5, '', 'a\u0000', '\ud800'),
        fc.array(tie('value'), { maxLength: 3 }),
        // Through text: only so is `__proto__` a member like any other.
        fc
          .array(fc.tuple(key, tie('value')), { maxLength: 3 })
          .map(
            (members) =>
              JSON.parse(`{${members.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`) as Json,
          ),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(value, value, key, async (one, other, name) => {
        const same = isDeepStrictEqual(one, other)
        const isValid = async (schema: JsonObject, subject: Json) => (await check(checker, schema, subject)).valid
        expect(await isValid({ const: one }, one)).toBe(true)
        expect(await isValid({ enum: [one] }, other)).toBe(same)
        expect(await isValid({ uniqueItems: true }, [one, other])).toBe(!same)
        const type = one === null ? 'null' : Array.isArray(one) ? 'array' : typeof one
        expect(await isValid({ type }, one)).toBe(true)
        expect(await isValid({ not: { type } }, one)).toBe(false)
        const isPlain = type === 'object'
        const has = isPlain && Object.hasOwn(one as object, name)
        expect(await isValid({ required: [name] }, one)).toBe(has || !isPlain)
        // The validator passes over a schema for a member of this name; it never takes it for the prototype either.
        if (name === '__proto__') return
        expect(await isValid({ properties: { [name]: false } }, one)).toBe(!has)
        const only = isPlain && Object.keys(one as object).every((member) => member === name)
        expect(await isValid({ properties: { [name]: true }, additionalProperties: false }, one)).toBe(only || !isPlain)
      }),
    )
  })
})
