import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { changeSubschemas, pointerStep } from '../../contract/provider-schema/subschemas.ts'
import type { Finding } from './lint.ts'

/** More of one kind say nothing new. */
const MOST = 20
const MANY_MEMBERS = 25
const DEEP = 5

/** What models do worse with than they could: members without a description, many of them, deep ones. */
export function describeFaults(input: JsonObject): readonly Finding[] {
  const silent: string[] = []
  const found: Finding[] = []
  visit(input, '#', 0, (path, schema, level) => {
    const { properties } = schema
    const members = isJsonObject(properties) ? Object.entries(properties) : []
    for (const [name, member] of members)
      if (!isDescribed(member, input)) silent.push(`${path}/properties/${pointerStep(name)}`)
    if (members.length > MANY_MEMBERS)
      found.push(advice(path, `it has ${members.length} members`, 'make it several tools, or group them'))
    if (members.length > 0 && level === DEEP)
      found.push(
        advice(path, `objects are nested deeper than ${DEEP}`, 'flatten it: models fill in flat inputs better'),
      )
  })
  return [
    ...found,
    ...silent.slice(0, MOST).map((path) => advice(path, 'it has no description', 'say what it means, with an example')),
    ...(silent.length > MOST
      ? [advice('#', `${silent.length - MOST} more members have no description`, 'say what they mean')]
      : []),
  ]
}

const advice = (path: string, problem: string, remedy: string): Finding => ({
  provider: 'all',
  severity: 'advice',
  path,
  problem,
  remedy,
})

/** A definition that is referred to describes the member as well. */
function isDescribed(member: Json, root: JsonObject): boolean {
  if (!isJsonObject(member)) return false
  if (typeof member['description'] === 'string' && member['description'].trim() !== '') return true
  const { $ref: reference } = member
  const [, keyword = '', name = ''] = /^#\/([^/]+)\/(.+)$/.exec(typeof reference === 'string' ? reference : '') ?? []
  const definitions = root[keyword]
  const definition = isJsonObject(definitions) ? definitions[name] : undefined
  return isJsonObject(definition) && typeof definition['description'] === 'string'
}

function visit(
  schema: JsonObject,
  path: string,
  level: number,
  see: (path: string, schema: JsonObject, level: number) => void,
): void {
  see(path, schema, level)
  if (level > DEEP) return
  const inner = level + (isJsonObject(schema['properties']) ? 1 : 0)
  changeSubschemas(schema, path, (one, at) => {
    if (isJsonObject(one)) visit(one, at, inner, see)
    return one
  })
}
