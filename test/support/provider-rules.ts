/** What OpenAI and Anthropic answer 400 to in the schema of a tool, as far as their documents and their refusals say. */
export type Rules = 'openai' | 'openai_strict' | 'anthropic'

const AT_ROOT: Readonly<Record<Rules, readonly string[]>> = {
  openai: ['anyOf', 'oneOf', 'allOf', 'enum', 'not'],
  openai_strict: ['anyOf', 'oneOf', 'allOf', 'enum', 'not'],
  anthropic: ['anyOf', 'oneOf', 'allOf'],
}
const STRICT_KEYWORDS = new Set(
  `type description properties required additionalProperties items anyOf enum const $ref $defs definitions pattern format
  multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems`.split(/\s+/),
)
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

/** @returns one sentence for each fault, none for a schema that is taken */
export function faultsOfSchema(schema: any, rules: Rules): string[] {
  const faults: string[] = []
  if (schema?.type !== 'object') faults.push(`schema must be a JSON Schema of type "object"`)
  for (const keyword of AT_ROOT[rules]) if (schema?.[keyword] !== undefined) faults.push(`${keyword} at the top level`)
  if (rules !== 'anthropic' && schema?.properties === undefined) faults.push('object schema missing properties')
  if (rules === 'anthropic')
    for (const name of Object.keys(schema?.properties ?? {}))
      if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(name)) faults.push(`property key ${JSON.stringify(name)}`)
  if (rules !== 'anthropic') visit(schema, '#', rules, faults)
  return faults
}

const MAPS = ['properties', '$defs', 'definitions', 'patternProperties']
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const SINGLE = ['items', 'not', 'propertyNames', 'contains', 'additionalProperties']

/** The schemas directly inside another one, with their places. */
function subschemas(schema: any): [string, unknown][] {
  const members = (keyword: string): [string, unknown][] =>
    Object.entries(schema[keyword] ?? {}).map(([name, one]) => [`${keyword}/${name}`, one])
  const isOpenOrClosed = typeof schema.additionalProperties === 'boolean'
  return [
    ...[...MAPS, ...LISTS].flatMap(members),
    ...SINGLE.filter((one) => schema[one] !== undefined && !(one === 'additionalProperties' && isOpenOrClosed)).map(
      (keyword): [string, unknown] => [keyword, schema[keyword]],
    ),
  ]
}

function visit(schema: any, at: string, rules: Rules, faults: string[]): void {
  const fail = (reason: string): number => faults.push(`In context=${at}, ${reason}`)
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    return void fail(`${JSON.stringify(schema)} is not of type 'object'`)
  if (hasType(schema, 'array') && typeof schema.items !== 'object') fail('array schema missing items')
  if (/\(\?(?:[=!]|<[=!])/.test(schema.pattern ?? '')) fail('regex lookaround is not supported')
  if (typeof schema.$ref === 'string' && !schema.$ref.startsWith('#')) fail('reference can only point to definitions')
  if (rules === 'openai_strict') {
    visitStrict(schema, fail)
    if (hasType(schema, 'object')) visitClosed(schema, fail)
  }
  for (const [place, one] of subschemas(schema)) visit(one, `${at}/${place}`, rules, faults)
}

const hasType = (schema: any, type: string): boolean => [schema.type].flat().includes(type)

function visitStrict(schema: any, fail: (reason: string) => number): void {
  for (const keyword of Object.keys(schema)) if (!STRICT_KEYWORDS.has(keyword)) fail(`'${keyword}' is not permitted`)
  if (schema.format !== undefined && !FORMATS.has(schema.format)) fail(`'${schema.format}' is not a valid format`)
  if (schema.$ref !== undefined && Object.keys(schema).length > 1) fail('$ref cannot have keywords')
  if (schema.type === undefined && schema.anyOf === undefined && schema.$ref === undefined)
    fail("schema must have a 'type' key")
}

function visitClosed(
  { additionalProperties: more, properties = {}, required = [] }: any,
  fail: (reason: string) => number,
): void {
  if (more !== false) fail("'additionalProperties' is required to be supplied and to be false")
  const missing = Object.keys(properties).filter((name) => !required.includes(name))
  if (missing.length > 0 || required.length !== Object.keys(properties).length)
    fail(`'required' must include every key in properties. Missing ${missing.join()}`)
}
