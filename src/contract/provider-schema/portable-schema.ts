import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import type { PathRemark } from './schema-remark.ts'
import { mergedRoot } from './merged-root.ts'
import { changeSubschemas, looksAround, referred, typesOf } from './subschemas.ts'
import { distinct } from './distinct.ts'

/** Of the document, not of what it describes. */
const OF_DOCUMENT = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$vocabulary'])

/**
 * The same schema in words that OpenAI (without `strict`) and Anthropic both take. It accepts every object that the
 * original accepts, and no other where there are no remarks: the root is an object without `anyOf`, `oneOf`, `allOf`,
 * `enum`, `const` and `not`, arrays have `items`, objects `properties`, patterns do not look around, references stay inside.
 */
export function portableSchema(schema: JsonObject): { schema: JsonObject; remarks: readonly PathRemark[] } {
  const remarks: PathRemark[] = []
  const portable = changed(mergedRoot(schema, remarks), '#', remarks)
  const root = { properties: {}, ...portable, type: 'object' }
  return { schema: withoutDangling(root, root, '#', remarks), remarks }
}

/** References lead nowhere once anchors are gone and the branches of the root are merged; providers answer them with 400. */
function withoutDangling(root: JsonObject, schema: JsonObject, path: string, remarks: PathRemark[]): JsonObject {
  const node = {
    ...changeSubschemas(schema, path, (one, at) => (isJsonObject(one) ? withoutDangling(root, one, at, remarks) : one)),
  }
  for (const keyword of ['$ref', '$dynamicRef']) {
    if (node[keyword] === undefined || (keyword === '$ref' && referred(root, node[keyword]) !== undefined)) continue
    delete node[keyword]
    remarks.push(
      looser(`${path}/${keyword}`, 'providers follow references to definitions only', 'define it under $defs'),
    )
  }
  return node
}

function changed(schema: JsonObject, path: string, remarks: PathRemark[]): JsonObject {
  const known = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !OF_DOCUMENT.has(keyword)))
  const inner = changeSubschemas(known, path, (one, at, keyword) => {
    if (isJsonObject(one)) return changed(one, at, remarks)
    if (keyword === 'additionalProperties' || typeof one !== 'boolean') return one
    return one ? {} : { not: {} }
  })
  const node = { ...inner }
  if (looksAround(node['pattern'])) {
    delete node['pattern']
    remarks.push(looser(`${path}/pattern`, 'OpenAI refuses patterns that look ahead or behind', 'write it without'))
  }
  if (typeof node['$ref'] === 'string' && !node['$ref'].startsWith('#')) {
    delete node['$ref']
    remarks.push(looser(`${path}/$ref`, 'providers follow no reference to another document', 'define it under $defs'))
  }
  const { enum: values } = node
  if (Array.isArray(values)) {
    if (values.length === 0) return { not: {} }
    node['enum'] = distinct(values as readonly Json[])
  }
  const types = typesOf(node)
  if (types.includes('object')) node['properties'] ??= {}
  if (node['prefixItems'] !== undefined) return withoutTuple(node, path, remarks)
  if (types.includes('array')) node['items'] ??= {}
  return node
}

/** OpenAI reads `items` as the older drafts do, and knows no other way to say what is in an array. */
function withoutTuple(node: JsonObject, path: string, remarks: PathRemark[]): JsonObject {
  const { prefixItems, items: rest, ...others } = node
  const places = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : []
  const isClosed = isJsonObject(rest) && isNothing(rest)
  const most = typeof others['maxItems'] === 'number' ? Math.min(others['maxItems'], places.length) : places.length
  remarks.push(looser(`${path}/prefixItems`, 'OpenAI knows no tuples', 'take an object with named members'))
  if (isClosed) return { ...others, items: anyOf(places), maxItems: most }
  return { ...others, items: isJsonObject(rest) ? anyOf([...places, rest]) : {} }
}

const isNothing = (schema: JsonObject): boolean => JSON.stringify(schema) === '{"not":{}}'

/** One of several schemas, each of them once. */
function anyOf(schemas: readonly Json[]): JsonObject {
  const distinct = new Map(schemas.map((schema) => [JSON.stringify(schema), schema]))
  const [first, ...more] = distinct.values()
  if (!isJsonObject(first)) return {}
  return more.length === 0 ? first : { anyOf: [...distinct.values()] }
}

const looser = (path: string, reason: string, remedy: string): PathRemark => ({
  path,
  effect: 'looser',
  reason,
  remedy,
})
