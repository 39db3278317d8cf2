import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import type { StrictSchema } from './strict-schema.ts'
import { referred, typesOf } from './subschemas.ts'

/** An input that a model wrote for a strict schema, as the original has it: members that it left out are not there. */
export const withoutNulls = (strict: StrictSchema, input: Json): Json =>
  new Restoring(strict).restored(strict.schema, input)

class Restoring {
  readonly #strict: StrictSchema
  /** What was found out before: recursive choices would be tried anew at every level, and twice as often at each. */
  readonly #known = new WeakMap<JsonObject, WeakMap<object, boolean>>()

  constructor(strict: StrictSchema) {
    this.#strict = strict
  }

  restored(node: JsonObject, value: Json): Json {
    const { anyOf, items, properties } = this.#resolved(node)
    if (Array.isArray(anyOf)) {
      const branch = (anyOf as readonly JsonObject[]).find((one) => this.#fits(one, value))
      return branch === undefined ? value : this.restored(branch, value)
    }
    if (Array.isArray(value)) return isJsonObject(items) ? value.map((one: Json) => this.restored(items, one)) : value
    if (!isJsonObject(value) || !isJsonObject(properties)) return value
    const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (!isJsonObject(inner)) return [[name, member]]
      return member === null && this.#strict.optional.has(inner) ? [] : [[name, this.restored(inner, member)]]
    })
    return Object.fromEntries(members)
  }

  #resolved(node: JsonObject): JsonObject {
    return node['$ref'] === undefined ? node : (referred(this.#strict.schema, node['$ref']) ?? {})
  }

  #fits(node: JsonObject, value: Json): boolean {
    if (typeof value !== 'object' || value === null) return this.#hasShape(node, value)
    const known = this.#known.get(node) ?? new WeakMap<object, boolean>()
    this.#known.set(node, known)
    const found = known.get(value) ?? this.#hasShape(node, value)
    known.set(value, found)
    return found
  }

  /** Whether a value has the shape of a node: strict objects have all their members and no other. */
  #hasShape(node: JsonObject, value: Json): boolean {
    const schema = this.#resolved(node)
    const { anyOf, enum: values, const: only, properties, items } = schema
    if (Array.isArray(anyOf)) return (anyOf as readonly JsonObject[]).some((one) => this.#fits(one, value))
    if (values !== undefined) return (values as readonly Json[]).includes(value)
    if (only !== undefined) return only === value
    if (!typesOf(schema).some((type) => hasType(type, value))) return false
    if (Array.isArray(value)) return isJsonObject(items) && value.every((one: Json) => this.#fits(items, one))
    if (!isJsonObject(value) || !isJsonObject(properties)) return true
    const names = Object.keys(value)
    return (
      names.length === Object.keys(properties).length &&
      names.every((name) => {
        const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
        return isJsonObject(inner) && this.#fits(inner, value[name] ?? null)
      })
    )
  }
}

function hasType(type: string, value: Json): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  return type === 'object' ? isJsonObject(value) : typeof value === type
}
