import { HOP_HEADERS } from '../../wire/egress.ts'

/**
 * The fields of an answer that are meant for the guest: without those between the server and us, which are the known ones
 * and whatever `Connection` names (RFC 9110, 7.6.1).
 *
 * @param raw names and values in turn
 */
export function endToEndFields(raw: readonly string[]): readonly string[] {
  const hops = new Set(HOP_HEADERS)
  for (const [name, value] of pairsOf(raw))
    if (name.toLowerCase() === 'connection')
      for (const option of value.split(',')) hops.add(option.trim().toLowerCase())
  return pairsOf(raw)
    .filter(([name]) => !hops.has(name.toLowerCase()))
    .flat()
}

function pairsOf(raw: readonly string[]): (readonly [name: string, value: string])[] {
  const pairs: (readonly [string, string])[] = []
  for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at] ?? '', raw[at + 1] ?? ''])
  return pairs
}
