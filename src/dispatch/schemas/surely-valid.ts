import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'

const MAX_VALUE_LENGTH = 4096
/** Parts of schemas and values that are looked at: some hundred microseconds, whatever a schema makes of a value. */
const MAX_STEPS = 10_000

/**
 * Whether a value matches a schema for certain, found out here and now: asking the schema thread costs four wakes of a
 * processor a call, which is more than most tools compute (decision 0007).
 *
 * No means that the schema thread has to be asked: because the value does not match, since only the thread can say why;
 * because the schema says something that is not known here; or because it takes too long. Known is what cannot be made
 * costly: no pattern, no reference, no comparison of anything but scalars.
 */
export function isSurelyValid(schema: Json, valueText: string): boolean {
  if (valueText.length > MAX_VALUE_LENGTH) return false
  try {
    return new QuickCheck().matches(schema, JSON.parse(valueText) as Json)
  } catch {
    return false // no JSON, or too many steps
  }
}

class QuickCheck {
  #steps = 0

  /** @throws Error when there were too many */
  spend(steps: number): void {
    this.#steps += steps
    if (this.#steps > MAX_STEPS) throw new Error('too many steps')
  }

  matches(schema: Json, value: Json): boolean {
    this.spend(1)
    if (schema === true) return true
    if (!isJsonObject(schema)) return false
    for (const [keyword, expected] of Object.entries(schema)) {
      this.spend(1)
      if (KEYWORDS.get(keyword)?.(expected, value, this, schema) !== true) return false
    }
    return true
  }

  some(parts: Json, holds: (part: Json) => boolean): boolean {
    if (!Array.isArray(parts)) return false
    this.spend(parts.length)
    return parts.some(holds)
  }

  every(parts: Json, holds: (part: Json) => boolean): boolean {
    if (!Array.isArray(parts)) return false
    this.spend(parts.length)
    return parts.every(holds)
  }
}

/** @returns true only when the value is as `expected` says */
type Keyword = (expected: Json, value: Json, check: QuickCheck, schema: JsonObject) => boolean

const isType = (type: Json, value: Json): boolean => {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isJsonObject(value)
    case 'integer':
      return Number.isInteger(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type
    default:
      return false
  }
}

/** Whether anything else is equal is the thread's business. */
const isScalar = (value: Json): boolean => typeof value !== 'object' || value === null

type Bound = (size: number, bound: number) => boolean

/** @param sizeOf what is bounded of a value; nothing where the keyword does not speak of its type */
const bound =
  (sizeOf: (value: Json, check: QuickCheck) => number | undefined, holds: Bound): Keyword =>
  (limit, value, check) => {
    const size = sizeOf(value, check)
    return typeof limit === 'number' && (size === undefined || holds(size, limit))
  }

const atLeast: Bound = (size, limit) => size >= limit
const atMost: Bound = (size, limit) => size <= limit
const numberOf = (value: Json): number | undefined => (typeof value === 'number' ? value : undefined)
const itemsOf = (value: Json): number | undefined => (Array.isArray(value) ? value.length : undefined)

/** In code points (JSON Schema 2020-12, validation, 6.3). */
function lengthOf(value: Json, check: QuickCheck): number | undefined {
  if (typeof value !== 'string') return undefined
  check.spend(value.length)
  return Array.from(value).length
}

function namesOf(value: JsonObject, check: QuickCheck): readonly string[] {
  const names = Object.keys(value)
  check.spend(names.length)
  return names
}

const membersOf = (value: Json, check: QuickCheck): number | undefined =>
  isJsonObject(value) ? namesOf(value, check).length : undefined

const properties: Keyword = (schemas, value, check) =>
  isJsonObject(schemas) &&
  (!isJsonObject(value) ||
    namesOf(value, check).every(
      (name) => !Object.hasOwn(schemas, name) || check.matches(schemas[name] ?? null, value[name] ?? null),
    ))

const additionalProperties: Keyword = (schema, value, check, { properties: named = {}, patternProperties }) =>
  isJsonObject(named) &&
  patternProperties === undefined &&
  (!isJsonObject(value) ||
    namesOf(value, check).every((name) => Object.hasOwn(named, name) || check.matches(schema, value[name] ?? null)))

const required: Keyword = (names, value, check) =>
  check.every(names, (name) => typeof name === 'string' && (!isJsonObject(value) || Object.hasOwn(value, name)))

const items: Keyword = (schema, value, check, { prefixItems }) =>
  prefixItems === undefined &&
  !Array.isArray(schema) &&
  (!Array.isArray(value) || check.every(value, (item) => check.matches(schema, item)))

const annotation: Keyword = () => true

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['$schema', annotation],
  ['$comment', annotation],
  ['title', annotation],
  ['description', annotation],
  ['default', annotation],
  ['examples', annotation],
  ['deprecated', annotation],
  ['readOnly', annotation],
  ['writeOnly', annotation],
  ['format', annotation], // asserts nothing (compiled-schema.ts)
  ['type', (type, value, check) => isType(type, value) || check.some(type, (one) => isType(one, value))],
  ['const', (allowed, value) => isScalar(allowed) && allowed === value],
  ['enum', (allowed, value, check) => isScalar(value) && check.some(allowed, (one) => one === value)],
  ['minimum', bound(numberOf, atLeast)],
  ['maximum', bound(numberOf, atMost)],
  ['exclusiveMinimum', bound(numberOf, (size, limit) => size > limit)],
  ['exclusiveMaximum', bound(numberOf, (size, limit) => size < limit)],
  ['minLength', bound(lengthOf, atLeast)],
  ['maxLength', bound(lengthOf, atMost)],
  ['minItems', bound(itemsOf, atLeast)],
  ['maxItems', bound(itemsOf, atMost)],
  ['minProperties', bound(membersOf, atLeast)],
  ['maxProperties', bound(membersOf, atMost)],
  ['required', required],
  ['properties', properties],
  ['additionalProperties', additionalProperties],
  ['items', items],
  ['anyOf', (schemas, value, check) => check.some(schemas, (one) => check.matches(one, value))],
  ['allOf', (schemas, value, check) => check.every(schemas, (one) => check.matches(one, value))],
])
