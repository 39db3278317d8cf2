import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'

/**
 * The TypeScript type of the values that a JSON Schema describes, as far as types go: what a type cannot say, such as
 * patterns and bounds, is left out, and what is not understood is `unknown`.
 *
 * @returns `type`, which may name types of `definitions`; those are declarations, one for each definition of the schema
 * that is referred to, with names that begin with `prefix`
 */
export function typescriptOfSchema(
  schema: JsonObject,
  prefix: string,
): { readonly type: string; readonly definitions: readonly string[] } {
  const writer = new TypeWriter(schema, prefix)
  const type = writer.typeOf(schema)
  return { type, definitions: writer.definitions() }
}

class TypeWriter {
  readonly #root: JsonObject
  readonly #prefix: string
  readonly #names = new Map<string, string>()

  constructor(root: JsonObject, prefix: string) {
    this.#root = root
    this.#prefix = prefix
  }

  typeOf(schema: Json | undefined): string {
    if (schema === false) return 'never'
    if (!isJsonObject(schema)) return 'unknown'
    const { $ref, anyOf, oneOf, allOf, not, type } = schema
    if (typeof $ref === 'string') return this.#nameOf($ref)
    if ('const' in schema) return JSON.stringify(schema['const'])
    if (Array.isArray(schema['enum'])) return union(schema['enum'].map((value: Json) => JSON.stringify(value)))
    if (isJsonObject(not) && Object.keys(not).length === 0) return 'never'
    const branches = anyOf ?? oneOf
    if (Array.isArray(branches)) return union(branches.map((branch: Json) => this.typeOf(branch)))
    if (Array.isArray(allOf) && type === undefined)
      return allOf.map((part: Json) => `(${this.typeOf(part)})`).join(' & ') || 'unknown'
    if (Array.isArray(type)) return union(type.map((one: Json) => this.#basic(one, schema)))
    return this.#basic(type, schema)
  }

  /** Declarations of all that was referred to, and of what that refers to. */
  definitions(): string[] {
    const written: string[] = []
    for (let i = 0; i < this.#names.size; i++) {
      const [reference = '', name = ''] = [...this.#names][i] ?? []
      written.push(`type ${name} = ${this.typeOf(this.#at(reference))}`)
    }
    return written
  }

  #basic(type: Json | undefined, schema: JsonObject): string {
    switch (type) {
      case 'string':
      case 'boolean':
      case 'number':
      case 'null':
        return type
      case 'integer':
        return 'number'
      case 'array':
        return this.#list(schema)
      case 'object':
        return this.#object(schema)
      default:
        return 'unknown'
    }
  }

  #list({ prefixItems, items, minItems: least = 0 }: JsonObject): string {
    if (!Array.isArray(prefixItems)) return `readonly (${this.typeOf(items)})[]`
    const places = prefixItems.map((item: Json, index) =>
      index < Number(least) ? this.typeOf(item) : `(${this.typeOf(item)})?`,
    )
    const rest = items === undefined || items === false ? [] : [`...readonly (${this.typeOf(items)})[]`]
    return `readonly [${[...places, ...rest].join(', ')}]`
  }

  #object({ properties: described, required, additionalProperties: rest, propertyNames }: JsonObject): string {
    const needed = new Set(Array.isArray(required) ? required : [])
    const own = isJsonObject(described) ? described : {}
    const keys = Object.keys(own).length === 0 ? keysOf(propertyNames) : undefined
    if (keys !== undefined) {
      const properties = Object.fromEntries(keys.map((key) => [key, rest ?? {}]))
      return this.#object({ properties, required: [...needed], additionalProperties: false })
    }
    const members = Object.entries(own).map(
      ([name, schema]) => `readonly ${memberName(name)}${needed.has(name) ? '' : '?'}: ${this.typeOf(schema)}`,
    )
    const isOpen = isJsonObject(rest) || (members.length === 0 && rest !== false)
    // A type for every other member would have to hold for those that have one of their own.
    if (isOpen) members.push(`readonly [member: string]: ${members.length === 0 ? this.typeOf(rest) : 'unknown'}`)
    return members.length === 0 ? 'Readonly<Record<string, never>>' : `{ ${members.join('; ')} }`
  }

  #nameOf(reference: string): string {
    const name = this.#names.get(reference) ?? `${this.#prefix}${this.#names.size + 1}`
    this.#names.set(reference, name)
    return name
  }

  #at(reference: string): Json | undefined {
    const steps = reference.startsWith('#') ? reference.split('/').slice(1) : ['$defs', reference]
    let place: Json | undefined = this.#root
    for (const step of steps) {
      const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
      place = isJsonObject(place) && Object.hasOwn(place, name) ? place[name] : undefined
    }
    return place
  }
}

/** The only names that members may have; undefined when there are others. */
function keysOf(propertyNames: Json | undefined): readonly string[] | undefined {
  const names = isJsonObject(propertyNames) ? propertyNames['enum'] : undefined
  return Array.isArray(names) ? names.filter((name): name is string => typeof name === 'string') : undefined
}

const union = (types: readonly string[]): string => [...new Set(types)].join(' | ') || 'never'

const memberName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))
