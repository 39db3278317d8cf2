/** Whether a value is an object that literals and JSON make: no array, no instance of a class. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // The second test is for objects of another realm, such as a frame or a worker.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * Takes an object that has no other members than `known`.
 *
 * @param what starts the message, for example `Cannot declare tool "lookup"`
 * @throws TypeError
 */
export function membersOf(value: unknown, known: readonly string[], what: string): Readonly<Record<string, unknown>> {
  if (!isPlainObject(value)) throw new TypeError(`${what}: it must be an object with ${known.join(', ')}`)
  const unknown = Object.keys(value).find((member) => !known.includes(member))
  if (unknown !== undefined)
    throw new TypeError(`${what}: it has no member ${JSON.stringify(unknown)}, only ${known.join(', ')}`)
  return value
}
