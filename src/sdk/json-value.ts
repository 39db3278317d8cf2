import { MAX_JSON_DEPTH, type Json } from '../kernel/json.ts'
import { isPlainObject } from './strict-members.ts'

/** Levels of what carries a value: a value may have 64 by itself, as Brain takes it. */
export const MOST_CARRIER_DEPTH = MAX_JSON_DEPTH + 16

/**
 * Copies a value that is JSON as it stands: nothing is left out or converted in silence.
 *
 * @param what names the value in the message, for example `output`
 * @throws TypeError for undefined, numbers that are not finite, BigInt, functions, symbols, instances of classes,
 * cycles and more than 64 levels, with the path of the offender
 */
export const jsonOf = (value: unknown, what: string): Json => copy(value, what, 0)

function copy(value: unknown, path: string, depth: number): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (Array.isArray(value)) {
    checkDepth(path, depth)
    return Array.from(value, (item, index) => copy(item, `${path}[${index}]`, depth + 1))
  }
  if (!isPlainObject(value)) throw new TypeError(`${path} is ${nameOf(value)}, which is not JSON`)
  checkDepth(path, depth)
  return Object.fromEntries(
    Object.keys(value).map((member) => [member, copy(value[member], `${path}.${member}`, depth + 1)]),
  )
}

function checkDepth(path: string, depth: number): void {
  if (depth >= MAX_JSON_DEPTH)
    throw new TypeError(`${path.slice(0, 80)}… is nested deeper than ${MAX_JSON_DEPTH} levels`)
}

function nameOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return value === undefined ? 'undefined' : `a ${typeof value}`
  return `an instance of ${value.constructor.name || 'a class'}`
}

/** A spelling that is the same for equal JSON values, whatever the order of their members. */
export function canonicalText(value: Json): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isPlainObject(part)
      ? Object.fromEntries(Object.entries(part).sort(([left], [right]) => (left < right ? -1 : 1)))
      : part,
  )
}
