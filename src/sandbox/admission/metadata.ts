import { BrainError, messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../kernel/json.ts'
import type { SchemaChecker } from '../../contract/schema-checker.ts'
import type { ToolMetadata } from '../../contract/session-request.ts'
import { printable, quoted, refusal } from './refusal.ts'

const MAX_BYTES = 64 * 1024
const MAX_DESCRIPTION = 8192
/** Names that every model API accepts (contract A22). */
const NAME = /^[A-Za-z0-9_-]{1,64}$/
const SCHEMAS = ['input_schema', 'output_schema', 'options_schema'] as const
const MEMBERS = new Set<string>(['name', 'description', ...SCHEMAS])

const utf8 = new TextDecoder('utf-8', { fatal: true })

const bad = (reason: string): BrainError =>
  refusal('bad_metadata', `its section brain:tool-metadata ${reason}. Correct it, or leave the section out`)

function parse(section: Uint8Array): JsonObject {
  if (section.length > MAX_BYTES) throw bad(`has ${section.length} bytes; ${MAX_BYTES} are allowed`)
  let value: Json
  try {
    value = parseJson(utf8.decode(section), 'the section')
  } catch (cause) {
    const reason = cause instanceof BrainError ? cause.message.replace(/^.*?: /, '') : 'it is not UTF-8'
    throw bad(`cannot be read: ${printable(reason)}`)
  }
  if (!isJsonObject(value)) throw bad('is not a JSON object')
  return value
}

function checkForm(value: JsonObject): ToolMetadata {
  const extra = Object.keys(value).find((key) => !MEMBERS.has(key))
  if (extra !== undefined) throw bad(`has the unknown member ${quoted(extra)}`)
  const { name, description } = value
  if (typeof name !== 'string' || !NAME.test(name)) throw bad('needs a "name" of 1 to 64 letters, digits, "_" or "-"')
  if (typeof description !== 'string' || description === '' || description.length > MAX_DESCRIPTION)
    throw bad(`needs a "description" of 1 to ${MAX_DESCRIPTION} characters`)
  if (value['input_schema'] === undefined) throw bad('needs an "input_schema"')
  const schemas: { -readonly [key in (typeof SCHEMAS)[number]]?: JsonObject } = {}
  for (const key of SCHEMAS) {
    const schema = value[key]
    if (schema === undefined) continue
    if (!isJsonObject(schema)) throw bad(`has an "${key}" that is not an object`)
    schemas[key] = schema
  }
  return { name, description, ...schemas } as ToolMetadata
}

/**
 * Reads what an author says about a component (contract A7). It is their word: bounded, strict in form, its schemas
 * compiled once, and nothing more.
 *
 * @throws BrainError `invalid_request`
 */
export async function readMetadata(section: Uint8Array, schemas: SchemaChecker): Promise<ToolMetadata> {
  const metadata = checkForm(parse(section))
  for (const key of SCHEMAS) {
    const schema = metadata[key]
    if (schema === undefined) continue
    const verdict = await schemas.checkSchema(schema)
    if (!verdict.valid) throw bad(`has an "${key}" that is not usable: ${printable(verdict.message)}`)
  }
  return metadata
}

/** Reads metadata that was stored after {@link readMetadata} accepted it. */
export function storedMetadata(value: Json): ToolMetadata {
  if (!isJsonObject(value)) throw new Error('its metadata is not an object')
  try {
    return checkForm(value)
  } catch (cause) {
    throw new Error(messageOf(cause), { cause })
  }
}
