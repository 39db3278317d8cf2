import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import { describeFaults } from './describe-faults.ts'
import { EQUALITY_KEYWORDS } from './equality-keywords.ts'
import { boundsFault } from './schema-bounds.ts'

/** Says what is wrong with the JSON text of a value, if anything is. */
type Check = (valueText: string) => string | undefined
export type CompiledSchema = { readonly fault: string } | { readonly check: Check }

/** Schemas and values up to these lengths are told every fault; for larger ones looking on could be what is costly. */
const EVERY_FAULT_SCHEMA_LENGTH = 8 * 1024
const EVERY_FAULT_VALUE_LENGTH = 16 * 1024

/** Patterns that are only valid without the `u` flag are common in the wild. */
function tolerantRegExp(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return new RegExp(pattern)
  }
}

const OPTIONS: Options = {
  strict: false, // unknown keywords are annotations
  validateFormats: false,
  ownProperties: true, // a schema that asks for `toString` must not find Object.prototype's
  inlineRefs: false, // schemas that refer to themselves many times over would be copied as often
  logger: false,
  verbose: true, // errors name the schema that they break
  // Making its code smaller takes the validator far longer than running it saves.
  code: { optimize: false, regExp: Object.assign(tolerantRegExp, { code: 'tolerantRegExp' }) },
}

const metaSchema = new Ajv2020({ ...OPTIONS, inlineRefs: true })
// Compiled now, so that no check pays for it.
void metaSchema.validateSchema({})

/** Each schema has a validator of its own: nothing that one declares can be seen by another, or outlives it. */
function newValidator(allErrors: boolean): Ajv2020 {
  const validator = new Ajv2020({ ...OPTIONS, allErrors, meta: false, validateSchema: false })
  for (const definition of EQUALITY_KEYWORDS) validator.removeKeyword(definition.keyword).addKeyword(definition)
  return validator
}

export function compileSchema(text: string): CompiledSchema {
  try {
    return compile(JSON.parse(text), text.length <= EVERY_FAULT_SCHEMA_LENGTH)
  } catch (error) {
    return { fault: reasonOf(error) }
  }
}

function compile(given: unknown, tellsEvery: boolean): CompiledSchema {
  if (typeof given !== 'object' || given === null) return { fault: 'it is no object' }
  const fault = boundsFault(given)
  if (fault !== undefined) return { fault }
  // Its own name and dialect do not matter: it refers to itself only, and 2020-12 is what is spoken here.
  const { $id: _id, $schema: _dialect, ...schema } = given as Record<string, unknown>
  if (metaSchema.validateSchema(schema) !== true) return { fault: describeFaults(metaSchema.errors ?? []) }
  const first = newValidator(false).compile(schema)
  let every: ValidateFunction | undefined
  const check: Check = (valueText) => {
    const value: unknown = JSON.parse(valueText)
    if (first(value)) return undefined
    if (!tellsEvery || valueText.length > EVERY_FAULT_VALUE_LENGTH) return describeFaults(first.errors ?? [])
    every ??= newValidator(true).compile(schema)
    every(value)
    return describeFaults(every.errors ?? [])
  }
  return { check }
}

/** @returns what is wrong, or undefined. */
export function checkValue(schema: CompiledSchema, valueText: string): string | undefined {
  if ('fault' in schema) return `the schema is not usable: ${schema.fault}`
  try {
    return schema.check(valueText)
  } catch (error) {
    return reasonOf(error)
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError && error.message.includes('call stack'))
    return 'the schema is too costly: it recurses too deeply'
  if (error instanceof SyntaxError && error.message.includes('JSON')) return `it is not JSON: ${error.message}`
  return error instanceof Error ? error.message.slice(0, 900) : 'it cannot be compiled'
}
