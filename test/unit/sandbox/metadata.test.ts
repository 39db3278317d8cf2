import { afterAll, describe, expect, test } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { readMetadata } from '../../../src/sandbox/admission/metadata.ts'
import { ajvSchemas } from '../../sandbox/admission-schemas.ts'

const schemas = ajvSchemas()
afterAll(async () => await schemas[Symbol.asyncDispose]())

const good = { name: 'word-count_2', description: 'Counts words', input_schema: { type: 'object' } }
const read = (value: unknown) =>
  readMetadata(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), schemas)

async function reasonOf(value: unknown): Promise<string> {
  const error = await read(value).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof BrainError)) throw new Error(`not refused: ${String(error)}`)
  expect(error.code).toBe('invalid_request')
  expect(error.details).toEqual({ fault: 'bad_metadata' })
  expect(error.message).toMatch(/^Cannot admit the component: its section brain:tool-metadata /)
  return error.message
}

describe('readMetadata()', () => {
  test('answers exactly the members that the author gave', async () => {
    expect(await read(good)).toEqual(good)
    const all = { ...good, output_schema: { type: 'array' }, options_schema: { type: 'object' } }
    expect(await read(all)).toEqual(all)
  })

  test.each([
    ['not JSON', '{', /cannot be read: it is not usable JSON/],
    ['two values', '{}{}', /cannot be read/],
    ['an array', [], /is not a JSON object/],
    ['an unknown member', { ...good, url: 'x' }, /unknown member "url"/],
    ['`__proto__` as a member', '{"__proto__":1}', /unknown member "__proto__"/],
    ['no name', { ...good, name: undefined }, /needs a "name"/],
    ['a name with a dot', { ...good, name: 'a.b' }, /needs a "name"/],
    ['a name of 65 characters', { ...good, name: 'a'.repeat(65) }, /needs a "name"/],
    ['no description', { ...good, description: '' }, /needs a "description"/],
    ['a description of 8193 characters', { ...good, description: 'a'.repeat(8193) }, /needs a "description"/],
    ['no input schema', { ...good, input_schema: undefined }, /needs an "input_schema"/],
    ['a schema that is true', { ...good, input_schema: true }, /"input_schema" that is not an object/],
    ['an input schema of no type', { ...good, input_schema: { type: 'text' } }, /"input_schema" that is not usable/],
    ['an output schema of no type', { ...good, output_schema: { type: 'text' } }, /"output_schema" that is not usable/],
    ['an options schema of no type', { ...good, options_schema: { type: 1 } }, /"options_schema" that is not usable/],
  ])('refuses %s', async (_what, value, reason) => {
    expect(await reasonOf(value)).toMatch(reason)
  })

  test('refuses text that is not UTF-8', async () => {
    const error = readMetadata(Buffer.from([0x22, 0xff, 0x22]), schemas)
    await expect(error).rejects.toThrow(/not UTF-8/)
  })

  test('accepts 64 KiB and refuses one byte more', async () => {
    const padded = (size: number) => JSON.stringify(good).padEnd(size, ' ')
    expect(await read(padded(65_536))).toEqual(good)
    expect(await reasonOf(padded(65_537))).toMatch(/has 65537 bytes; 65536 are allowed/)
  })

  test('refuses nesting that recursion would not survive', async () => {
    const deep = `${'{"a":'.repeat(8000)}1${'}'.repeat(8000)}`
    expect(await reasonOf(`{"name":"a","description":"b","input_schema":${deep}}`)).toMatch(/nested deeper/)
  })
})
