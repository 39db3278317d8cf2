import { readFileSync } from 'node:fs'

const MAPS_PATH_COLUMN = 73

/** The shared objects that this Node runs on: exactly what a second one needs, on any distribution. */
export function ownLibraries(): readonly string[] {
  const found = new Set<string>()
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const file = line.slice(MAPS_PATH_COLUMN).trim()
    if (/\.so(?:\.|$)/.test(file)) found.add(file)
  }
  return [...found]
}
