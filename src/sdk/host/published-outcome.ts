import type { z } from 'zod'
import { clip, messageOf } from '../../kernel/errors.ts'
import { isJsonObject } from '../../kernel/json.ts'
import {
  asToolOutput,
  errorOutcome,
  faultOfEnvelope,
  looksLikeOutcome,
  type ToolOutput,
} from '../../contract/outcome.ts'
import { BrainError } from '../brain-error.ts'
import { jsonOf } from '../json-value.ts'
import { isPlainObject } from '../strict-members.ts'
import { faultsOf } from '../zod-faults.ts'
import type { Presentation } from './tool-context.ts'

/**
 * What a value of a tool is published as: an outcome as it is, anything else as the value of an ok one. Only values of ok
 * outcomes are checked against the output schema, and none is looked at for another outcome.
 *
 * @throws BrainError `invalid_output`
 */
export async function publishedOutcome(
  value: unknown,
  output: z.ZodType | undefined,
  presentation: Presentation | undefined,
): Promise<ToolOutput> {
  const content = contentOf(presentation)
  if (!claimsToBeOutcome(value)) return { status: 'ok', value: await producedBy(output, value), ...content }
  const isOk = value['status'] === 'ok' && value['value'] !== undefined
  const envelope = readJson(isOk ? { ...value, value: null } : value, 'outcome')
  const fault = faultOfEnvelope(envelope)
  if (fault !== undefined) throw invalid(`the outcome is malformed: ${fault}`)
  const given = { ...asToolOutput(envelope), ...content }
  return given.status === 'ok' ? { ...given, value: await producedBy(output, value['value']) } : given
}

/** The outcome that a failed {@link publishedOutcome} ends a call with. */
export const invalidOutput = (error: unknown): ToolOutput => errorOutcome('invalid_output', messageOf(error))

const claimsToBeOutcome = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isPlainObject(value) && isJsonObject(value as never) && looksLikeOutcome(value as never)

async function producedBy(output: z.ZodType | undefined, value: unknown) {
  if (output === undefined) return readJson(value, 'output')
  const parsed = await output.safeParseAsync(value)
  if (!parsed.success) throw invalid(`the output does not match its schema: ${faultsOf(parsed.error)}`, parsed.error)
  return readJson(parsed.data, 'output')
}

function readJson(value: unknown, name: string) {
  try {
    return jsonOf(value, name)
  } catch (cause) {
    throw invalid(messageOf(cause), cause)
  }
}

function contentOf(presentation: Presentation | undefined): Presentation {
  const content = presentation?.content
  if (content === undefined) return {}
  if (typeof content !== 'string') throw invalid('content must be text')
  return { content }
}

const invalid = (reason: string, cause?: unknown): BrainError =>
  new BrainError(0, 'invalid_output', clip(`Cannot publish the result: ${reason}`), { cause })
