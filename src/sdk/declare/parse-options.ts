import { deepFrozen } from '../deep-frozen.ts'
import { faultsOf } from '../zod-faults.ts'
import type { OptionsSchema } from './placement.ts'

/** @throws TypeError for options that the schema refuses or that there is no schema for */
export function parseOptions(
  given: Readonly<Record<string, unknown>>,
  schema: OptionsSchema | undefined,
  what: string,
): unknown {
  if (schema === undefined) {
    const [unknown] = Object.keys(given)
    if (unknown !== undefined)
      throw new TypeError(`${what}: it takes no options, so there is no member ${JSON.stringify(unknown)}`)
    return Object.freeze({})
  }
  try {
    return deepFrozen(schema.parse(given))
  } catch (cause) {
    throw new TypeError(`${what}: options: ${faultsOf(cause)}`, { cause })
  }
}
