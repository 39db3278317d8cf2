import { isPlainObject } from './strict-members.ts'

/**
 * A frozen copy of plain objects and arrays, all the way down. Instances of classes and functions stay what they are:
 * nobody can freeze a connection.
 */
export function deepFrozen<Value>(value: Value): Value {
  return copy(value, new Map()) as Value
}

function copy(value: unknown, made: Map<unknown, unknown>): unknown {
  const isList = Array.isArray(value)
  if (!isList && !isPlainObject(value)) return value
  const before = made.get(value)
  if (before !== undefined) return before
  const result: object = isList ? [] : {}
  made.set(value, result)
  for (const [key, part] of Object.entries(value))
    Object.defineProperty(result, key, { value: copy(part, made), enumerable: true })
  return Object.freeze(result)
}
