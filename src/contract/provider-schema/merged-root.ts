import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import type { PathRemark } from './schema-remark.ts'
import { referred } from './subschemas.ts'

/** What neither OpenAI nor Anthropic takes at the top of an input schema. */
const NOT_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'enum', 'const', 'not']

/** A root that leads to itself would be followed for ever. */
const MOST_REFERENCES = 16

/** A root without unions and the like: what its branches describe becomes optional members of the root itself. */
export function mergedRoot(schema: JsonObject, remarks: PathRemark[]): JsonObject {
  const root = followed(schema, schema)
  const present = NOT_AT_ROOT.filter((keyword) => root[keyword] !== undefined)
  if (present.length === 0) return root
  const kept: Record<string, Json> = { ...root }
  for (const keyword of [...present, 'unevaluatedProperties']) delete kept[keyword]
  for (const keyword of present)
    remarks.push({
      path: `#/${keyword}`,
      effect: 'looser',
      reason: `providers refuse ${keyword} at the top of an input schema`,
      remedy: 'put it into a member of its own',
    })
  const all = branchesOf(schema, root['allOf'])
  const choices = [branchesOf(schema, root['anyOf']), branchesOf(schema, root['oneOf'])]
  const merged = [root, ...all].reduceRight<JsonObject>((members, one) => ({ ...members, ...propertiesOf(one) }), {})
  kept['properties'] = choices.reduce<JsonObject>((members, one) => ({ ...chosen(one), ...members }), merged)
  const required = new Set([root, ...all].flatMap(requiredOf))
  for (const one of choices) for (const name of requiredInAll(one)) required.add(name)
  if (required.size > 0) kept['required'] = [...required]
  // What members the branches have is more than the root alone would have allowed.
  if (all.length > 0 || choices.some((one) => one.length > 0)) delete kept['additionalProperties']
  return kept
}

/** A root that is only a reference, as what it refers to. */
function followed(whole: JsonObject, schema: JsonObject): JsonObject {
  let root = schema
  for (let i = 0; i < MOST_REFERENCES && root['$ref'] !== undefined; i++) {
    const { $ref: reference, ...rest } = root
    root = { ...referred(whole, reference), ...rest }
  }
  return root
}

const branchesOf = (whole: JsonObject, branches: Json | undefined): readonly JsonObject[] =>
  Array.isArray(branches)
    ? (branches as readonly Json[]).map((branch) => (isJsonObject(branch) ? followed(whole, branch) : {}))
    : []

const propertiesOf = ({ properties }: JsonObject): JsonObject => (isJsonObject(properties) ? properties : {})

const requiredOf = ({ required }: JsonObject): readonly string[] =>
  Array.isArray(required) ? (required as readonly string[]) : []

const requiredInAll = ([first, ...more]: readonly JsonObject[]): readonly string[] =>
  first === undefined
    ? []
    : requiredOf(first).filter((name) => more.every((branch) => requiredOf(branch).includes(name)))

/** The members that any of the branches has. Where one does not speak of a member, it may be anything. */
function chosen(branches: readonly JsonObject[]): JsonObject {
  const names = new Set(branches.flatMap((branch) => Object.keys(propertiesOf(branch))))
  const members = [...names].map((name): [string, Json] => {
    const variants = branches.map((branch) => propertiesOf(branch)[name] ?? {})
    const distinct = [...new Map(variants.map((one) => [JSON.stringify(one), one])).values()]
    return [name, distinct.length === 1 ? (distinct[0] ?? {}) : { anyOf: distinct }]
  })
  return Object.fromEntries(members)
}
