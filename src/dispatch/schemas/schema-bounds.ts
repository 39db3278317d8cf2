export const MAX_SCHEMA_DEPTH = 32

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
/** Their members are schemas under names, not keywords. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])
/** Their values are data, whatever it looks like. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** Why a schema is refused before anything is compiled, or undefined. It may only speak of itself. */
export function boundsFault(schema: object): string | undefined {
  if (isDeeper(schema, MAX_SCHEMA_DEPTH)) return `it is nested deeper than ${MAX_SCHEMA_DEPTH} levels`
  if ('$async' in schema && schema.$async !== false) return 'the keyword "$async" is not part of JSON Schema'
  return identityFault(schema, '')
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1)))

function identityFault(schema: unknown, at: string): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  for (const [key, value] of Object.entries(schema)) {
    const path = `${at}/${key}`
    const fault = keywordFault(key, value, at) ?? (DATA.has(key) ? undefined : memberFault(key, value, path))
    if (fault !== undefined) return fault
  }
  return undefined
}

function keywordFault(key: string, value: unknown, at: string): string | undefined {
  if (typeof value !== 'string') return undefined
  if (REFERENCES.has(key) && !value.startsWith('#'))
    return `${at}/${key} is ${JSON.stringify(value.slice(0, 200))}: only references within the schema, which begin with "#", are followed`
  // A name for a part of a schema changes what the references in it mean. That of the whole is of no consequence.
  if (key === '$id' && at !== '')
    return `${at}/$id names a part of the schema: use "$defs" and references to "#/$defs/…"`
  return undefined
}

function memberFault(key: string, value: unknown, path: string): string | undefined {
  if (!NAMED_SCHEMAS.has(key) || typeof value !== 'object' || value === null) return identityFault(value, path)
  for (const [name, schema] of Object.entries(value)) {
    const fault = identityFault(schema, `${path}/${name}`)
    if (fault !== undefined) return fault
  }
  return undefined
}
