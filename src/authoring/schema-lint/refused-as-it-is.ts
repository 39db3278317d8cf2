import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { changeSubschemas, looksAround, typesOf } from '../../contract/provider-schema/subschemas.ts'
import type { Finding } from './lint.ts'

type Place = { readonly path: string; readonly schema: Json; readonly keyword: string }

/** What no provider takes at the top; of `enum`, `const` and `not` only OpenAI says so. */
const UNIONS = ['anyOf', 'oneOf', 'allOf']
const VALUES = ['enum', 'const', 'not']

/** Schemas of more are costly in every request, and beyond what admission takes of metadata. */
const MOST_BYTES = 32 * 1024

/** What a provider answers 400 to when a schema is sent as it is written: Brain does that. */
export function refusedAsItIs(input: JsonObject): readonly Finding[] {
  return [...rootFindings(input), ...sizeFindings(input), ...placesIn(input).flatMap(findingsAt)]
}

const refused = (provider: Finding['provider'], path: string, problem: string, remedy: string): Finding => ({
  provider,
  severity: 'refused',
  path,
  problem,
  remedy,
})

function rootFindings(input: JsonObject): readonly Finding[] {
  const found: Finding[] = []
  if (input['type'] !== 'object')
    for (const provider of ['openai', 'anthropic', 'mcp'] as const)
      found.push(
        refused(provider, '#', 'the root does not have the type "object"', 'take one object with named members'),
      )
  if (input['properties'] === undefined)
    found.push(refused('openai', '#', 'OpenAI misses "properties"', 'add "properties", which may be {}'))
  for (const keyword of [...UNIONS, ...VALUES]) {
    if (input[keyword] === undefined) continue
    const providers = UNIONS.includes(keyword) ? (['openai', 'anthropic'] as const) : (['openai'] as const)
    for (const provider of providers)
      found.push(
        refused(
          provider,
          `#/${keyword}`,
          `${keyword} is refused at the top of an input schema`,
          'put it into a member of its own, such as { "request": { "anyOf": […] } }',
        ),
      )
  }
  return found
}

function sizeFindings(input: JsonObject): readonly Finding[] {
  const { length } = JSON.stringify(input)
  if (length <= MOST_BYTES) return []
  return [
    {
      provider: 'all',
      severity: 'advice',
      path: '#',
      problem: `the schema has ${length} characters, which every request of the model carries`,
      remedy: 'make it several tools, or let the tool look up what it needs',
    },
  ]
}

/** Every schema inside another one; JSON is at most 64 levels deep (kernel/json.ts). */
function placesIn(schema: JsonObject, path = '#'): readonly Place[] {
  const places: Place[] = [{ path, schema, keyword: '' }]
  changeSubschemas(schema, path, (one, at, keyword) => {
    places.push(...(isJsonObject(one) ? placesIn(one, at) : [{ path: at, schema: one, keyword }]))
    return one
  })
  return places
}

function findingsAt({ path, schema, keyword }: Place): readonly Finding[] {
  if (!isJsonObject(schema)) return booleanFindings(path, schema, keyword)
  const found: Finding[] = []
  const isTuple = schema['prefixItems'] !== undefined
  if (typesOf(schema).includes('array') && !isJsonObject(schema['items']))
    found.push(
      refused(
        'openai',
        path,
        isTuple ? 'OpenAI knows no tuples and misses "items"' : 'OpenAI refuses an array without "items"',
        isTuple ? 'take an object with named members' : 'say with "items" what is in it; {} is anything',
      ),
    )
  if (looksAround(schema['pattern']))
    found.push(
      refused(
        'openai',
        `${path}/pattern`,
        'OpenAI refuses patterns that look ahead or behind',
        'write it without, and check the rest in the tool',
      ),
    )
  if (typeof schema['$ref'] === 'string' && !schema['$ref'].startsWith('#'))
    found.push(
      refused('openai', `${path}/$ref`, 'OpenAI follows no reference to another document', 'define it under $defs'),
    )
  return found
}

const booleanFindings = (path: string, schema: Json, keyword: string): readonly Finding[] =>
  keyword === 'additionalProperties' || typeof schema !== 'boolean'
    ? []
    : [
        refused(
          'openai',
          path,
          `OpenAI refuses ${String(schema)} as a schema`,
          schema ? 'write {}' : 'write { "not": {} }',
        ),
      ]
