import { z } from 'zod'
import { BrainError } from '../kernel/errors.ts'
import { parseJson } from '../kernel/json.ts'
import { listOf } from '../contract/list-of.ts'
import { identifierSchema } from '../contract/name-schemas.ts'
import { jsonObjectSchema, messageSchema } from '../contract/message-schema.ts'
import { nullAsAbsent } from '../contract/null-as-absent.ts'
import type { ModelRequest } from '../contract/message.ts'

/** What a tool or a loop asks of the model (contract 7.4). */
export const modelRequestSchema = z.strictObject({
  messages: listOf(messageSchema)
    .refine((all) => all.length > 0, 'must have a message')
    .meta({ minItems: 1 }),
  system: nullAsAbsent(z.string()),
  tools: nullAsAbsent(
    listOf(
      z.strictObject({
        name: identifierSchema,
        description: z.string(),
        input_schema: jsonObjectSchema,
        output_schema: nullAsAbsent(jsonObjectSchema),
      }),
    ),
  ),
  response_format: jsonObjectSchema.nullable().optional(),
  max_output_tokens: nullAsAbsent(z.int().positive()),
  options: nullAsAbsent(jsonObjectSchema),
})

/**
 * Reads what a tool or a loop asks of the model (contract 7.4).
 * @throws BrainError `invalid_request`
 */
export function parseModelRequest(text: string): ModelRequest {
  const parsed = modelRequestSchema.safeParse(parseJson(text, 'model request'))
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot read the model request: ${z.prettifyError(parsed.error)}`)
  return parsed.data as ModelRequest
}
