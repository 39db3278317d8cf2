import { clip } from '../../kernel/errors.ts'
import { isJsonObject, type Json, MAX_JSON_DEPTH, parseJson } from '../../kernel/json.ts'
import { errorOutcome, type Outcome, type ToolOutput } from '../../contract/outcome.ts'
import type { ToolService } from '../../contract/tool-service.ts'
import { CallFailure } from './failures.ts'

const MEMBERS = new Set(['content', 'structured_content', 'is_error'])

export type ServiceResult = {
  readonly output: ToolOutput
  /** Whether it has what an `output_schema` describes. */
  readonly isStructured: boolean
}

/**
 * Reads the result object of a service (contract A14).
 * @throws CallFailure `fault` for what is none; it says where the fault is, and quotes nothing of it
 */
export function readServiceResult(text: string, { name }: ToolService): ServiceResult {
  const value = parsed(text, 'its result')
  if (!isJsonObject(value)) throw fault('its result is no JSON object')
  if (Object.keys(value).some((member) => !MEMBERS.has(member)))
    throw fault('its result has a member besides content, structured_content and is_error')
  const { structured_content: structured = null, is_error: isError = false } = value
  if (typeof isError !== 'boolean') throw fault('"is_error" of its result is no boolean')
  const texts = textsOf(value['content'])
  if (texts.length === 0 && structured === null) throw fault('its result has neither content nor structured_content')
  const content = texts.length === 0 ? {} : { content: texts.join('\n') }
  const outcome: Outcome = isError
    ? errorOf(name, texts.join('\n'), structured)
    : { status: 'ok', value: structured ?? { content: texts.map((text) => ({ type: 'text', text })) } }
  return { output: { ...outcome, ...content }, isStructured: structured !== null }
}

/** @throws CallFailure `fault` */
export function parsed(text: string, what: string): Json {
  try {
    return parseJson(text, what)
  } catch (cause) {
    // The parser quotes what it read, which may be anything, a token that was sent back among it.
    throw new CallFailure(
      'fault',
      `${what} is no JSON that can be carried exactly, or nests deeper than ${MAX_JSON_DEPTH} levels`,
      { cause },
    )
  }
}

const fault = (reason: string): CallFailure => new CallFailure('fault', reason)

function textsOf(content: Json | undefined): readonly string[] {
  if (content === undefined) return []
  if (!Array.isArray(content)) throw fault('"content" of its result is no list')
  return (content as readonly Json[]).map((part, index) => {
    const at = `"content[${index}]" of its result`
    if (!isJsonObject(part)) throw fault(`${at} is no object`)
    if (part['type'] !== 'text') throw fault(`${at} is of another type than "text"`)
    const { text } = part
    if (typeof text !== 'string' || Object.keys(part).length !== 2)
      throw fault(`${at} must have text in "text", and nothing else`)
    return text
  })
}

/** What a service says of a failure, for whoever looks at it; details of its own stand apart from ours. */
const errorOf = (tool: string, text: string, structured: Json): Outcome =>
  errorOutcome(
    'tool_error',
    text === '' ? `Tool "${tool}" answered with an error` : clip(text),
    structured === null ? undefined : { structured_content: structured },
  )
