import { z } from 'zod'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { parseJson } from '../../kernel/json.ts'
import { readBounded } from '../tool/json-argument.ts'
import { casesSchema, type ToolCase } from './case-schema.ts'

const MOST_BYTES = 8 * 1024 * 1024

/**
 * The cases of a JSON or YAML file, told apart by their ending.
 * @throws BrainError `invalid_request` with the first faults and their places
 */
export async function readCases(file: string): Promise<readonly ToolCase[]> {
  const text = (await readBounded(file, 'the cases', MOST_BYTES)).toString('utf8')
  const parsed = casesSchema.safeParse(await parse(file, text))
  if (parsed.success) return parsed.data
  throw cannotUse(file, z.prettifyError(parsed.error))
}

async function parse(file: string, text: string): Promise<unknown> {
  if (!/\.ya?ml$/.test(file)) return parseJson(text, `the cases ${JSON.stringify(file)}`)
  const yaml = await import('yaml')
  try {
    // Few aliases: a small file must not unfold into a large one.
    return yaml.parse(text, { maxAliasCount: 100 })
  } catch (cause) {
    throw cannotUse(file, messageOf(cause), cause)
  }
}

const cannotUse = (file: string, reason: string, cause?: unknown): BrainError =>
  new BrainError('invalid_request', `Cannot use the cases ${JSON.stringify(file)}: ${reason}`, { cause })
