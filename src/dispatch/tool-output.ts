import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { parseJson, type Json, type JsonObject } from '../kernel/json.ts'
import { asToolOutput, faultOfEnvelope, type Outcome, type ToolOutput } from '../contract/outcome.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'

export type OutputRules = {
  readonly tool: string
  readonly outputSchema: JsonObject | undefined
  readonly schemas: SchemaChecker
}

/** @throws BrainError `invalid_output` for text that is no usable JSON */
export function parseOutput(text: string, { tool }: OutputRules): Json {
  try {
    return parseJson(text, `the output of tool "${tool}"`)
  } catch (error) {
    throw new BrainError('invalid_output', messageOf(error), { cause: error })
  }
}

/**
 * Reads an envelope strictly, and checks an ok value against the tool's output schema (contract 3.3, A17).
 * @throws BrainError `invalid_output`
 */
export async function readOutput(value: Json, { tool, outputSchema, schemas }: OutputRules): Promise<ToolOutput> {
  const fault = faultOfEnvelope(value)
  if (fault !== undefined)
    throw new BrainError('invalid_output', `Cannot take this outcome of tool "${tool}": ${fault}`)
  const output = asToolOutput(value)
  if (output.status !== 'ok' || outputSchema === undefined) return output
  const verdict = await schemas.checkValue(outputSchema, JSON.stringify(output.value))
  if (!verdict.valid)
    throw new BrainError('invalid_output', `Cannot take this output of tool "${tool}": ${verdict.message}`)
  return output
}

/** What a failure ends its call with when there is no budget left for the rest of it: nobody would end it otherwise. */
export function shortOf(failure: Exclude<ToolOutput, { status: 'ok' }>): Outcome {
  if (failure.status === 'unknown') return { status: 'unknown', message: clip(failure.message) }
  if (failure.status !== 'error') return { status: failure.status }
  const { code, message, retryable } = failure.error
  return { status: 'error', error: { code, message, ...(retryable === undefined ? {} : { retryable }) } }
}
