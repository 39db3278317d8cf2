import type { Json, JsonObject } from '../../kernel/json.ts'

/** Enough to recognise a name that a message may have cut. */
const SHOWN_LENGTH = 8

/**
 * Whether a message about a value names a member that its schema does not: a word of whoever made the value, where words
 * of the schema are its author's.
 */
export function repeatsForeignName(message: string, value: Json, schema: JsonObject): boolean {
  const known = new Set(wordsOf(schema))
  return namesOf(value).some((name) => !known.has(name) && isNamedIn(message, name))
}

/** As a step of a JSON pointer, or quoted. */
const isNamedIn = (message: string, name: string): boolean =>
  [`/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, JSON.stringify(name)].some((form) =>
    message.includes(form.slice(0, SHOWN_LENGTH + 1)),
  )

function* namesOf(value: Json): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield* Object.keys(value)
  for (const member of Object.values(value)) yield* namesOf(member)
}

/** Names stand in lists too, such as that of `required`. */
function* wordsOf(schema: Json): Generator<string> {
  if (typeof schema === 'string') yield schema
  if (typeof schema !== 'object' || schema === null) return
  if (!Array.isArray(schema)) yield* Object.keys(schema)
  for (const member of Object.values(schema)) yield* wordsOf(member)
}
