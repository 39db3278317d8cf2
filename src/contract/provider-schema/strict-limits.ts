import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { NotStrict } from './not-strict.ts'
import { changeSubschemas } from './subschemas.ts'

const MOST_PROPERTIES = 5000
const MOST_LEVELS = 10
const MOST_ENUM_VALUES = 1000
const MOST_CHARACTERS = 120_000
const MANY_ENUM_VALUES = 250
const MOST_ENUM_CHARACTERS = 15_000

type Counts = { properties: number; values: number; characters: number }

/** @throws NotStrict for a schema beyond what OpenAI documents as the limits of strict mode */
export function assertWithinLimits(schema: JsonObject): void {
  const counts: Counts = { properties: 0, values: 0, characters: 0 }
  count(schema, { path: '#', level: 0 }, counts)
  const faults = [
    counts.properties > MOST_PROPERTIES && `${counts.properties} members, more than ${MOST_PROPERTIES}`,
    counts.values > MOST_ENUM_VALUES && `${counts.values} enum values, more than ${MOST_ENUM_VALUES}`,
    counts.characters > MOST_CHARACTERS && `${counts.characters} characters of names and values`,
  ].filter((fault) => fault !== false)
  if (faults.length > 0) throw new NotStrict('#', `it has ${faults.join(' and ')}`, 'make it several tools')
}

type Place = { readonly path: string; readonly level: number }

function count(schema: JsonObject, { path, level }: Place, counts: Counts): void {
  const inner = level + (schema['type'] === 'object' ? 1 : 0)
  if (inner > MOST_LEVELS) throw new NotStrict(path, `it is nested deeper than ${MOST_LEVELS} objects`, 'flatten it')
  for (const keyword of ['properties', '$defs', 'definitions']) {
    const names = isJsonObject(schema[keyword]) ? Object.keys(schema[keyword]) : []
    if (keyword === 'properties') counts.properties += names.length
    counts.characters += names.join('').length
  }
  countValues(schema, path, counts)
  changeSubschemas(schema, path, (one, at) => {
    if (isJsonObject(one)) count(one, { path: at, level: inner }, counts)
    return one
  })
}

function countValues({ enum: several, const: one }: JsonObject, path: string, counts: Counts): void {
  const values = Array.isArray(several) ? (several as readonly Json[]) : []
  const characters = [...values, one].filter((value) => typeof value === 'string').join('').length
  if (values.length > MANY_ENUM_VALUES && characters > MOST_ENUM_CHARACTERS)
    throw new NotStrict(path, `its enum has ${characters} characters`, 'take text, and check it in the tool')
  counts.values += values.length
  counts.characters += characters
}
