const ERRORS: ReadonlySet<string> = new Set([
  'Error',
  'EvalError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
])

/** HTML's structuredClone, without what is transferred: nothing here could be. */
export function structuredClone(value: unknown): unknown {
  return clone(value, new Map())
}

function clone(value: unknown, seen: Map<object, object>): unknown {
  if (typeof value === 'symbol' || typeof value === 'function') throw refused(value)
  if (typeof value !== 'object' || value === null) return value
  const known = seen.get(value)
  if (known !== undefined) return known
  const leaf = leafOf(value, seen)
  if (leaf !== undefined) {
    seen.set(value, leaf)
    return leaf
  }
  return branchOf(value, seen)
}

/** A copy of what holds no other values. */
function leafOf(value: object, seen: Map<object, object>): object | undefined {
  if (value instanceof Date) return new Date(value.getTime())
  if (value instanceof RegExp) return new RegExp(value.source, value.flags)
  if (value instanceof Boolean || value instanceof Number || value instanceof String || value instanceof BigInt)
    return Object((value as { valueOf(): unknown }).valueOf()) as object
  if (value instanceof ArrayBuffer) return value.slice(0)
  if (!ArrayBuffer.isView(value)) return undefined
  const buffer = clone(value.buffer, seen) as ArrayBuffer
  const length = value instanceof DataView ? value.byteLength : (value as Uint8Array).length
  const { constructor } = value as unknown as {
    constructor: new (buffer: ArrayBuffer, offset: number, length: number) => object
  }
  return new constructor(buffer, value.byteOffset, length)
}

function branchOf(value: object, seen: Map<object, object>): object {
  const inside = (one: unknown): unknown => clone(one, seen)
  const started = <Copy extends object>(copy: Copy): Copy => {
    seen.set(value, copy)
    return copy
  }
  if (value instanceof Map) {
    const copy = started(new Map<unknown, unknown>())
    for (const [key, one] of value) copy.set(inside(key), inside(one))
    return copy
  }
  if (value instanceof Set) {
    const copy = started(new Set<unknown>())
    for (const one of value) copy.add(inside(one))
    return copy
  }
  if (value instanceof Error) return errorOf(value, started, inside)
  // Members of a class's instance are copied, its prototype is not.
  if (value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef || value instanceof Promise)
    throw refused(value)
  const copy = started(Array.isArray(value) ? Array.from({ length: value.length }) : {}) as Record<string, unknown>
  for (const key of Object.keys(value)) copy[key] = inside((value as Record<string, unknown>)[key])
  return copy
}

function errorOf(
  error: Error,
  started: <Copy extends object>(copy: Copy) => Copy,
  inside: (one: unknown) => unknown,
): Error {
  const name = ERRORS.has(error.name) ? error.name : 'Error'
  const { [name]: constructor } = globalThis as unknown as Record<string, new (message: string) => Error>
  const copy = started(new (constructor ?? Error)(error.message))
  if (typeof error.stack === 'string') copy.stack = error.stack
  if ('cause' in error) Object.defineProperty(copy, 'cause', { value: inside(error.cause), configurable: true })
  return copy
}

const refused = (value: unknown): DOMException =>
  new DOMException(`${typeof value === 'symbol' ? 'a symbol' : 'what was given'} could not be cloned`, 'DataCloneError')
