import { z } from 'zod'
import { BrainError } from '../kernel/errors.ts'
import { IDENTIFIER, isIdentifier } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { grantSchema, methodsSchema, templateSchema } from '../contract/environment-schema.ts'
import { listOf } from '../contract/list-of.ts'
import { named } from '../contract/named.ts'
import { labelValueSchema, MOST_LABELS } from '../contract/name-schemas.ts'
import { jsonObjectSchema as jsonObject, jsonSchema as json, messageSchema } from '../contract/message-schema.ts'

const identifier = z
  .string()
  .refine(isIdentifier, 'must be an identifier: letters, digits and . _ : - (at most 128)')
  .meta({ pattern: IDENTIFIER.source })
// Foreign clients use more names than our own declarations accept (contract A22).
const toolName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$/, 'must be letters, digits and . _ : - (at most 128)')

/** Of one tool, loop or environment: as many as there are environments. */
const MOST_GRANTS = 256

const placementSchema = z.strictObject({ implementation: json })

const toolSchema = z.strictObject({
  name: toolName,
  description: z.string().max(65_536).optional(),
  input_schema: jsonObject.optional(),
  output_schema: jsonObject.optional(),
  placements: named(z.string(), placementSchema)
    .refine((all) => Object.keys(all).length > 0, 'needs a placement')
    .meta({ minProperties: 1 }),
  environments: listOf(grantSchema, MOST_GRANTS).optional(),
})

const environmentSchema = z.strictObject({
  name: identifier,
  driver: z.enum(['brain', 'host', 'http']),
  lifecycle: z.enum(['automatic', 'manual']),
  configuration: json.optional(),
  environments: listOf(grantSchema, MOST_GRANTS).optional(),
  methods: methodsSchema.optional(),
  template: templateSchema.optional(),
  host_id: z.string().optional(),
  url: z.string().optional(),
  credential: z
    .string()
    .min(1)
    .max(16_384)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks, as a bearer token is')
    .optional(),
})

const labels = named(identifier, labelValueSchema)
  .refine((all) => Object.keys(all).length <= MOST_LABELS, `must be at most ${MOST_LABELS} labels`)
  .meta({ maxProperties: MOST_LABELS })

/** The body of `POST /v1/sessions` (contract 2.1). */
export const createRequestSchema = z.strictObject({
  agentloop: z
    .strictObject({
      implementation: json,
      configuration: json.optional(),
      environment: identifier.optional(),
      environments: listOf(grantSchema, MOST_GRANTS).optional(),
    })
    .optional(),
  model: z.strictObject({
    provider: identifier,
    name: z.string().min(1).max(256).regex(/^\S+$/, 'must not hold white space'),
    api_key: z.string().min(1).max(16_384),
    script: json.optional(),
  }),
  system: z.string().default(''),
  response_format: jsonObject.optional(),
  tools: listOf(toolSchema, 1024).default([]),
  environments: listOf(environmentSchema, 256).default([]),
  config: z.strictObject({ tools: listOf(identifier) }).optional(),
  transcript: listOf(messageSchema).optional(),
  idle_ttl_ms: z.int().nonnegative().optional(),
  labels: labels.optional(),
})

export type CreateRequest = z.output<typeof createRequestSchema>
export type RequestedTool = CreateRequest['tools'][number]
export type RequestedEnvironment = CreateRequest['environments'][number]

/**
 * Reads the body of `POST /v1/sessions` (contract 2.1); unknown members are refused.
 * @throws BrainError `invalid_request`
 */
export function parseCreateRequest(body: Json): CreateRequest {
  const parsed = createRequestSchema.safeParse(body)
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot create the session: ${z.prettifyError(parsed.error)}`, {
      body: 'shape',
    })
  return parsed.data
}
