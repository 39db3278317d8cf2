import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { distinct } from './distinct.ts'
import { isDisjoint } from './is-disjoint.ts'
import { assertWithinLimits } from './strict-limits.ts'
import { NotStrict } from './not-strict.ts'
import type { PathRemark } from './schema-remark.ts'
import { looksAround, pointerStep, referred, typesOf } from './subschemas.ts'

/** A schema for OpenAI's strict mode, and what takes its inputs back to those of the original. */
export type StrictSchema = {
  readonly schema: JsonObject
  /** Members that may be left out and are `null` then, as OpenAI has every member required. */
  readonly optional: ReadonlySet<Json>
  readonly remarks: readonly PathRemark[]
}

const KEPT: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'format'],
  number: ['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'],
  integer: ['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'],
  array: ['minItems', 'maxItems'],
  boolean: [],
  null: [],
}
const FORMATS = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']
const STRUCTURE = 'type properties required additionalProperties items anyOf oneOf enum const $ref $defs definitions'
const ANNOTATIONS = '$schema $id $comment title description default examples deprecated readOnly writeOnly'
const SHOWN = ['default', 'examples']
const DEFINITION = /^#(?:$|\/(?:\$defs|definitions)\/[^/]+$)/

/**
 * The schema in the subset that OpenAI's strict mode takes: every object is closed, every member required, each node has a
 * type, an enum or a choice. What it says less than the original stands in its descriptions, and in the remarks.
 *
 * @throws NotStrict, with path and remedy, for what the subset cannot say at all, such as open maps
 */
export function strictSchema(original: JsonObject): StrictSchema {
  const writer = new StrictWriter(original)
  const root = writer.node(original, '#')
  if (root['type'] !== 'object') throw new NotStrict('#', 'the root is not one object', 'take one z.object({ … })')
  const definitions = [writer.definitions('$defs'), writer.definitions('definitions')]
  const schema = Object.assign({}, root, ...definitions) as JsonObject
  assertWithinLimits(schema)
  return { schema, optional: writer.optional, remarks: writer.remarks }
}

class StrictWriter {
  readonly optional = new Set<Json>()
  readonly remarks: PathRemark[] = []
  readonly #root: JsonObject

  constructor(root: JsonObject) {
    this.#root = root
  }

  definitions(keyword: '$defs' | 'definitions'): JsonObject {
    const given = this.#root[keyword]
    return isJsonObject(given) ? { [keyword]: this.#nodes(given, `#/${keyword}`) } : {}
  }

  #nodes(schemas: JsonObject, path: string): JsonObject {
    const nodes = Object.entries(schemas).map(([name, one]) => [name, this.node(one, `${path}/${pointerStep(name)}`)])
    return Object.fromEntries(nodes) as JsonObject
  }

  /** @throws NotStrict */
  node(schema: Json, path: string): JsonObject {
    if (!isJsonObject(schema)) throw new NotStrict(path, 'it accepts anything or nothing', 'say what it is')
    const choice = schema['anyOf'] ?? schema['oneOf']
    if (schema['allOf'] !== undefined)
      throw new NotStrict(`${path}/allOf`, 'OpenAI knows no allOf', 'extend one object instead of intersecting two')
    if (schema['$ref'] !== undefined) return this.#reference(schema, path)
    if (Array.isArray(choice)) return this.#choice(schema, choice as readonly Json[], path)
    if (schema['enum'] !== undefined || schema['const'] !== undefined) return this.#values(schema, path)
    const types = typesOf(schema)
    if (types.length > 1) return this.#typed(schema, types, path)
    const [type = inferredType(schema)] = types
    if (type === undefined) throw new NotStrict(path, 'it accepts anything', 'say what type it has')
    if (type === 'object') return this.#object(schema, path)
    return this.#described(schema, path, { type, ...this.#constraints(schema, type, path) })
  }

  #reference(schema: JsonObject, path: string): JsonObject {
    const { $ref } = schema
    if (typeof $ref !== 'string' || !DEFINITION.test($ref) || referred(this.#root, $ref) === undefined)
      throw new NotStrict(`${path}/$ref`, 'it leads to no definition of this schema', 'define it under $defs')
    const extra = Object.keys(schema).find((keyword) => keyword !== '$ref' && !ANNOTATIONS.split(' ').includes(keyword))
    if (extra !== undefined && path !== '#')
      throw new NotStrict(
        path,
        `OpenAI takes nothing beside $ref, and there is ${extra}`,
        'move it into the definition',
      )
    return { $ref }
  }

  #choice(schema: JsonObject, choices: readonly Json[], path: string): JsonObject {
    const keyword = schema['anyOf'] === undefined ? 'oneOf' : 'anyOf'
    const beside = ['properties', 'required', 'items', 'enum', 'const', keyword === 'anyOf' ? 'oneOf' : 'anyOf']
    const extra = beside.find((one) => schema[one] !== undefined)
    if (extra !== undefined)
      throw new NotStrict(path, `there is ${extra} beside ${keyword}`, `move it into each branch of ${keyword}`)
    if (keyword === 'oneOf' && !isDisjoint(this.#root, choices))
      this.#looser(
        `${path}/oneOf`,
        'OpenAI takes a value that more than one branch accepts',
        'discriminate the branches',
      )
    const anyOf = choices.map((one, index) => this.node(one, `${path}/${keyword}/${index}`))
    return this.#described(schema, path, { anyOf }, [keyword, 'type'])
  }

  #values(schema: JsonObject, path: string): JsonObject {
    const { enum: several, const: one } = schema
    const declared = typesOf(schema)
    const listed = Array.isArray(several) ? distinct(several as readonly Json[]) : [one ?? null]
    const values = listed.filter((value) => declared.length === 0 || declared.some((type) => isOf(type, value)))
    if (values.length === 0) throw new NotStrict(path, 'it accepts nothing', 'list what it may be')
    const types = [...new Set(values.map((value) => typeOfValue(value, declared)))]
    if (types.includes('object') || types.includes('array'))
      throw new NotStrict(path, 'OpenAI takes only plain values here', 'use text or numbers')
    const kept = several === undefined ? { const: one ?? null } : { enum: values }
    return this.#described(schema, path, { type: types.length === 1 ? types.join() : types, ...kept }, [
      'enum',
      'const',
    ])
  }

  #typed(schema: JsonObject, types: readonly string[], path: string): JsonObject {
    const { description, ...rest } = schema
    const anyOf = types.map((type) => this.node({ ...only(rest, type), type }, path))
    return { ...(description === undefined ? {} : { description }), anyOf }
  }

  #object(schema: JsonObject, path: string): JsonObject {
    const { properties = {}, required = [], additionalProperties: more } = schema
    if (!isJsonObject(properties) || !Array.isArray(required)) throw new NotStrict(path, 'it is malformed', 'mend it')
    const names = Object.keys(properties)
    if (more !== undefined && more !== false)
      throw new NotStrict(path, 'OpenAI closes every object, and this one takes more members', 'list its members')
    if (names.length === 0 && more !== false && path !== '#')
      throw new NotStrict(path, 'OpenAI would only ever send {} for it', 'list its members')
    const undescribed = (required as readonly string[]).find((name) => !Object.hasOwn(properties, name))
    if (undescribed !== undefined)
      throw new NotStrict(path, `it requires ${JSON.stringify(undescribed)} and does not say what it is`, 'describe it')
    const nodes = names.map((name): [string, Json] => {
      const at = `${path}/properties/${pointerStep(name)}`
      const node = this.node(properties[name] ?? {}, at)
      return [name, (required as readonly string[]).includes(name) ? node : this.#orLeftOut(node)]
    })
    const closed = {
      type: 'object',
      properties: Object.fromEntries(nodes),
      required: names,
      additionalProperties: false,
    }
    return this.#described(schema, path, closed)
  }

  /** The same or null, which stands for a member that is left out; the same where null is among it already. */
  #orLeftOut(node: JsonObject): JsonObject {
    if (acceptsNull(this.#root, node)) return node
    const { description, ...rest } = node
    const wrapper = { ...(description === undefined ? {} : { description }), anyOf: [rest, { type: 'null' }] }
    this.optional.add(wrapper)
    return wrapper
  }

  #constraints(schema: JsonObject, type: string, path: string): JsonObject {
    const kept = Object.fromEntries(
      (KEPT[type] ?? []).flatMap((keyword) => (isTaken(keyword, schema[keyword]) ? [[keyword, schema[keyword]]] : [])),
    ) as JsonObject
    if (type !== 'array') return kept
    if (schema['prefixItems'] !== undefined)
      throw new NotStrict(`${path}/prefixItems`, 'OpenAI knows no tuples', 'take an object with named members')
    if (schema['items'] === undefined)
      throw new NotStrict(path, 'OpenAI must know what is in an array', 'say it with items')
    return { ...kept, items: this.node(schema['items'], `${path}/items`) }
  }

  /** Adds the description, with what the model is not told in another way. */
  #described(schema: JsonObject, path: string, node: JsonObject, told: readonly string[] = []): JsonObject {
    const silent = [...told, ...STRUCTURE.split(' '), ...ANNOTATIONS.split(' ')]
    const lost = Object.keys(schema).filter((keyword) => node[keyword] === undefined && !silent.includes(keyword))
    for (const keyword of lost)
      this.#looser(
        `${path}/${pointerStep(keyword)}`,
        `OpenAI's strict mode has no ${keyword} like this`,
        'leave it to Brain',
      )
    const shown = [...lost, ...SHOWN.filter((keyword) => schema[keyword] !== undefined)]
    const notes = shown.map((keyword) => `${keyword}: ${JSON.stringify(schema[keyword]).slice(0, 200)}`)
    const own = typeof schema['description'] === 'string' ? [schema['description']] : []
    const description = [...own, ...(notes.length > 0 ? [`(${notes.join('; ')})`] : [])].join(' ')
    return description === '' || path === '#' ? node : { description, ...node }
  }

  #looser(path: string, reason: string, remedy: string): void {
    this.remarks.push({ path, effect: 'looser', reason, remedy })
  }
}

function inferredType(schema: JsonObject): string | undefined {
  if (schema['properties'] !== undefined) return 'object'
  return schema['items'] === undefined ? undefined : 'array'
}

function typeOfValue(value: Json, declared: readonly string[] = []): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  const isWhole = typeof value === 'number' && declared.includes('integer') && !declared.includes('number')
  return isWhole ? 'integer' : typeof value
}

const isOf = (type: string, value: Json): boolean =>
  type === 'integer' ? Number.isInteger(value) : type === typeOfValue(value)

/** Keywords that speak of one type, so that a node of several can be taken apart. */
const SPEAKS_OF: Readonly<Record<string, string>> = {
  pattern: 'string',
  format: 'string',
  minLength: 'string',
  maxLength: 'string',
  minItems: 'array',
  maxItems: 'array',
  uniqueItems: 'array',
  items: 'array',
  prefixItems: 'array',
  properties: 'object',
  required: 'object',
  additionalProperties: 'object',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'number',
}

function only(schema: JsonObject, type: string): JsonObject {
  const asked = type === 'integer' ? 'number' : type
  return Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => SPEAKS_OF[keyword] === undefined || SPEAKS_OF[keyword] === asked),
  )
}

function isTaken(keyword: string, value: Json | undefined): boolean {
  if (value === undefined) return false
  if (keyword === 'format') return FORMATS.some((format) => format === value)
  return keyword !== 'pattern' || !looksAround(value)
}

/** Whether a strict node takes null. */
function acceptsNull(root: JsonObject, node: JsonObject): boolean {
  const { anyOf, $ref, const: value, enum: values } = node
  if (Array.isArray(anyOf)) return (anyOf as readonly JsonObject[]).some((one) => acceptsNull(root, one))
  if ($ref !== undefined) return admitsNull(root, referred(root, $ref), new Set())
  if (values !== undefined) return (values as readonly Json[]).includes(null)
  return value === undefined ? typesOf(node).includes('null') : value === null
}

/** The same of a schema as it was given, where references may lead in a circle. */
function admitsNull(root: JsonObject, schema: JsonObject | undefined, seen: Set<JsonObject>): boolean {
  if (schema === undefined || seen.has(schema)) return false
  seen.add(schema)
  const choices = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(choices))
    return (choices as readonly Json[]).some((one) => isJsonObject(one) && admitsNull(root, one, seen))
  if (schema['$ref'] !== undefined) return admitsNull(root, referred(root, schema['$ref']), seen)
  return acceptsNull(root, schema)
}
