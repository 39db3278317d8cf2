import { z } from 'zod'
import { messageOf } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'

/** What stays of the schema of a place where anything is accepted: words for the model. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', '$comment', 'id'])

/** What a value is tested for after it was changed says nothing about the value that is sent. */
const CONSTRAINTS = `minLength maxLength pattern format contentEncoding allOf minItems maxItems
  minimum maximum exclusiveMinimum exclusiveMaximum multipleOf`.split(/\s+/)

type Side = 'input' | 'output'
/** What a schema is of; options are told as they are given, which is the side of the input. */
type Place = Side | 'options'
type Target = { [key: string]: unknown }
type Node = z.core.$ZodTypes
type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']>
type Step = string | number

/**
 * The JSON Schema of what a tool takes: what Zod accepts before it parses, never less (cases D-21, D-22).
 *
 * @param owner starts messages, for example `Cannot declare tool "lookup"`
 * @throws TypeError naming owner and path for what JSON Schema cannot say, and for a root that is no plain object
 */
export function inputSchemaOf(owner: string, schema: z.ZodType, place: 'input' | 'options' = 'input'): JsonObject {
  const converted = convert(owner, schema, place)
  if (place === 'options' || converted['type'] === 'object') return converted
  if (isOpenRoot(schema) && convert(owner, innermost(schema), 'input')['type'] === 'object')
    return { ...converted, type: 'object' }
  throw new TypeError(`${owner}: input must be an object schema such as z.object({ … }), since models send objects`)
}

/**
 * The JSON Schema of what Zod accepts before it parses, whatever its root: models are not asked for it.
 *
 * @throws TypeError naming owner and path for what JSON Schema cannot say
 */
export const acceptedSchemaOf = (owner: string, schema: z.ZodType): JsonObject => convert(owner, schema, 'input')

/**
 * The JSON Schema of what a tool gives: what Zod makes of it.
 *
 * @throws TypeError naming owner and path for what JSON Schema cannot say
 */
export const outputSchemaOf = (owner: string, schema: z.ZodType): JsonObject => convert(owner, schema, 'output')

function convert(owner: string, schema: z.ZodType, place: Place): JsonObject {
  const side = place === 'options' ? 'input' : place
  if (typeof schema !== 'object' || schema === null || !('_zod' in schema))
    throw new TypeError(`${owner}: ${place} must be a schema of Zod 4`)
  try {
    const { $schema: _, ...rest } = JSON.parse(JSON.stringify(toJsonSchema(schema, side))) as Record<string, Json>
    return rest
  } catch (cause) {
    const path = pathOfFault(schema, side)
    throw new TypeError(`${owner}: ${place}${path}: ${messageOf(cause)}`, { cause })
  }
}

function toJsonSchema(schema: z.ZodType, side: Side): unknown {
  let isLoosened = false
  const override: Override = ({ zodSchema, jsonSchema }) => {
    const node = zodSchema as Node
    if (node._zod.def.type === 'file') throw new TypeError('Files cannot be represented in JSON Schema')
    if (side === 'output') return
    const target = jsonSchema as Target
    isLoosened = loosen(node, target) || isLoosened
    // What accepts anything may be one of several branches that match.
    if (isLoosened && target['oneOf'] !== undefined) {
      target['anyOf'] = target['oneOf']
      delete target['oneOf']
    }
  }
  return z.toJSONSchema(schema, { io: side, override })
}

/** Takes away what Zod does not insist on. @returns whether the place accepts anything now */
function loosen(node: Node, target: Target): boolean {
  const { def } = node._zod
  if (acceptsAnything(node)) {
    for (const key of Object.keys(target)) if (!ANNOTATIONS.has(key)) delete target[key]
    return true
  }
  if (def.type === 'object') keepRequired(def.shape, target)
  const isChangedFirst = def.checks?.some((check) => check._zod.def.check === 'overwrite') === true
  if (isChangedFirst) for (const key of CONSTRAINTS) delete target[key]
  const { multipleOf } = target
  // Whether 0.3 is a multiple of 0.1 depends on who divides.
  if (typeof multipleOf === 'number' && !Number.isInteger(multipleOf)) delete target['multipleOf']
  if ([def, ...(def.checks ?? []).map((check) => check._zod.def)].some(hasOwnPattern)) {
    delete target['pattern']
    delete target['allOf']
  }
  return false
}

/** Whether a pattern means something else in JSON Schema, which has no flags and reads everything as Unicode. */
function hasOwnPattern(def: object): boolean {
  if (!('pattern' in def && def.pattern instanceof RegExp)) return false
  const { flags, source } = def.pattern
  return /[imsv]/.test(flags) || !isUnicode(source)
}

function isUnicode(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function acceptsAnything(node: Node): boolean {
  const { def } = node._zod
  if ('coerce' in def && def.coerce === true) return true
  return def.type === 'catch' || (def.type === 'pipe' && isTransform(def.in))
}

const isTransform = (schema: z.core.$ZodType): boolean => schema._zod.def.type === 'transform'

/** A member that may be missing is not required, also where it is missing through `catch` or `preprocess`. */
function keepRequired(shape: z.core.$ZodShape, target: Target): void {
  if (!Array.isArray(target['required'])) return
  const required = target['required'].filter((name) => shape[String(name)]?._zod.optin === undefined)
  if (required.length > 0) target['required'] = required
  else delete target['required']
}

const isOpenRoot = (schema: z.ZodType): boolean => acceptsAnything(schema as unknown as Node)

/** The schema that a root `preprocess` or `catch` ends in. */
function innermost(schema: z.ZodType): z.ZodType {
  const { def } = (schema as unknown as Node)._zod
  if (def.type === 'catch') return def.innerType as z.ZodType
  return def.type === 'pipe' ? (def.out as z.ZodType) : schema
}

/** Where the first schema stands that cannot be converted even alone, as `.items[].since`. */
function pathOfFault(schema: z.ZodType, side: Side): string {
  let deepest: readonly Step[] = []
  const override: Override = ({ zodSchema, path }) => {
    if (path.length > deepest.length && !isConvertible(zodSchema as unknown as z.ZodType, side)) deepest = [...path]
  }
  try {
    z.toJSONSchema(schema, { io: side, unrepresentable: 'any', override })
  } catch {
    // The message without a path is better than no message.
  }
  return pathText(deepest)
}

function isConvertible(schema: z.ZodType, side: Side): boolean {
  try {
    toJsonSchema(schema, side)
    return true
  } catch {
    return false
  }
}

function pathText(path: readonly Step[]): string {
  let text = ''
  for (let i = 0; i < path.length; i++) {
    const step = path[i]
    if (step === 'properties') text += `.${path[++i]}`
    else if (step === 'items') text += '[]'
    else if (step === 'prefixItems') text += `[${path[++i]}]`
    else if (step === 'additionalProperties') text += '.*'
    else if (step === 'propertyNames') text += ' (its keys)'
  }
  return text
}
