import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { referred, typesOf } from './subschemas.ts'

/** Whether no value can match two of the branches, as far as types and a discriminating member show it. */
export function isDisjoint(root: JsonObject, branches: readonly Json[]): boolean {
  const schemas = branches.map((branch) => {
    const schema = isJsonObject(branch) ? branch : {}
    return schema['$ref'] === undefined ? schema : (referred(root, schema['$ref']) ?? {})
  })
  return areApart(schemas.map(kindsOf)) || discriminators(schemas).some((name) => areApart(valuesOf(schemas, name)))
}

/** Undefined where nothing is known: such a branch is apart from none. */
type Marks = readonly string[] | undefined

function areApart(marks: readonly Marks[]): boolean {
  const all = marks.flatMap((one) => one ?? [])
  return marks.every((one) => one !== undefined) && new Set(all).size === all.length
}

function kindsOf(schema: JsonObject): Marks {
  const types = typesOf(schema)
  return types.length === 0 ? undefined : types.map((type) => (type === 'integer' ? 'number' : type))
}

const discriminators = ([first]: readonly JsonObject[]): readonly string[] =>
  isJsonObject(first?.['properties']) ? Object.keys(first['properties']) : []

function valuesOf(schemas: readonly JsonObject[], name: string): readonly Marks[] {
  return schemas.map(({ properties, required }) => {
    if (!isJsonObject(properties) || !Array.isArray(required)) return undefined
    const member = (required as readonly Json[]).includes(name) ? properties[name] : undefined
    if (!isJsonObject(member)) return undefined
    if (member['const'] !== undefined) return [JSON.stringify(member['const'])]
    const { enum: values } = member
    return Array.isArray(values) ? (values as readonly Json[]).map((value) => JSON.stringify(value)) : undefined
  })
}
