import { z } from 'zod'
import { isJsonObject, type Json } from '../kernel/json.ts'
import { listOf } from './list-of.ts'

/** Any JSON value, kept as it is. */
export const jsonSchema = z.custom<Json>((value) => value !== undefined, 'must be a JSON value')
/** Any JSON object, kept as it is. */
export const jsonObjectSchema = z
  .custom<{ readonly [key: string]: Json }>(isJsonObject, 'must be a JSON object')
  .meta({ type: 'object' })

const mediaUrl = z
  .url({ protocol: /^https$/ })
  .refine((text) => new URL(text).username === '' && new URL(text).password === '', 'must not hold user information')
  // The format `uri` of JSON Schema refuses what a URL may have, such as letters of any language.
  .meta({ format: undefined, pattern: String.raw`^\s*[Hh][Tt][Tt][Pp][Ss]:` })

export const mediaSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('image'), url: mediaUrl }),
  z.strictObject({ type: z.literal('file'), media_type: z.literal('application/pdf'), url: mediaUrl }),
])

const blockSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image'), url: mediaUrl }),
  z.strictObject({ type: z.literal('file'), media_type: z.literal('application/pdf'), url: mediaUrl }),
  z.strictObject({ type: z.literal('native'), format: z.string(), data: jsonSchema }),
  z.strictObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: jsonSchema }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string(),
    content: jsonSchema,
    is_error: z.boolean(),
    media: listOf(mediaSchema).exactOptional(),
  }),
])

/** One message of a transcript or a model request (contract 3.6). */
export const messageSchema = z.strictObject({
  role: z.enum(['user', 'assistant', 'developer']),
  content: listOf(blockSchema),
})
