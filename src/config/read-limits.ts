import { LIMITS, type LimitName, type Limits } from '../contract/limits.ts'

const WHOLE = /^\d+$/

/**
 * Every limit, as its variable or the default says.
 * @param problems is told of variables that are no such numbers
 */
export function readLimits(env: Readonly<Record<string, string | undefined>>, problems: string[]): Limits {
  const names = Object.keys(LIMITS) as LimitName[]
  const entries = names.map((name) => {
    const { variable, default: fallback, least } = LIMITS[name]
    const text = env[variable]
    if (text === undefined) return [name, fallback]
    const value = Number(text)
    if (!WHOLE.test(text) || !Number.isSafeInteger(value) || value < least)
      problems.push(
        `${variable}: must be a whole number of at least ${least}, not ${JSON.stringify(text.slice(0, 40))}`,
      )
    return [name, value]
  })
  return Object.fromEntries(entries) as Limits
}
