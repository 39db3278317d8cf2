import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'

const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const SINGLE = new Set(
  `items additionalItems additionalProperties not if then else contains propertyNames unevaluatedItems
  unevaluatedProperties`.split(/\s+/),
)

/** Sees one schema at its place, and says what stands there instead. */
export type SchemaChange = (schema: Json, path: string, keyword: string) => Json

/** A copy of a schema in which `change` was applied to each schema directly inside it. */
export function changeSubschemas(schema: JsonObject, path: string, change: SchemaChange): JsonObject {
  const entries = Object.entries(schema).map(([keyword, value]): [string, Json] => {
    const at = `${path}/${pointerStep(keyword)}`
    if (MAPS.has(keyword) && isJsonObject(value)) {
      const inner = Object.entries(value).map(([name, one]): [string, Json] => [
        name,
        change(one, `${at}/${pointerStep(name)}`, keyword),
      ])
      return [keyword, Object.fromEntries(inner)]
    }
    if (LISTS.has(keyword) && Array.isArray(value))
      return [keyword, (value as readonly Json[]).map((one, index) => change(one, `${at}/${index}`, keyword))]
    return [keyword, SINGLE.has(keyword) ? change(value, at, keyword) : value]
  })
  return Object.fromEntries(entries)
}

/** One step of a JSON Pointer (RFC 6901). */
export const pointerStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** What a reference within `root` leads to; undefined for any other reference, and where nothing is. */
export function referred(root: JsonObject, reference: Json | undefined): JsonObject | undefined {
  if (typeof reference !== 'string' || !/^#(\/|$)/.test(reference)) return undefined
  let found: Json | undefined = root
  for (const step of reference.split('/').slice(1)) {
    const name = nameOfStep(step)
    found = name !== undefined && isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined
  }
  return isJsonObject(found) ? found : undefined
}

/** Undefined for what is no encoding of anything, such as a lone `%`. */
function nameOfStep(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}

/** The types that a schema names; none when it names no type. */
export function typesOf({ type }: JsonObject): readonly string[] {
  if (typeof type === 'string') return [type]
  return Array.isArray(type) ? (type as readonly Json[]).filter((one): one is string => typeof one === 'string') : []
}

/** Whether a pattern looks around, which OpenAI's validator answers with 400, strict or not. */
export const looksAround = (pattern: Json | undefined): boolean =>
  typeof pattern === 'string' && /\(\?(?:[=!]|<[=!])/.test(pattern)
