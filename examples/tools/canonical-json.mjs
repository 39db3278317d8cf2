import { createHash } from 'node:crypto'

/** JSON with its members in one order and no white space, so that equal values have equal text (RFC 8785). */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`)
  return `{${members.join(',')}}`
}

/** SHA-256 of the canonical JSON, 64 hexadecimal digits. */
export const digestOf = (value) => createHash('sha256').update(canonicalJson(value)).digest('hex')
