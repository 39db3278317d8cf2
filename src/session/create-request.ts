import { z } from 'zod'
import { BEARER_TOKEN } from '../kernel/bearer-token.ts'
import { BrainError } from '../kernel/errors.ts'
import { IDENTIFIER, isIdentifier } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { grantSchema, methodsSchema, templateSchema } from '../contract/environment-schema.ts'
import { listOf } from '../contract/list-of.ts'
import { named } from '../contract/named.ts'
import { nullAsAbsent } from '../contract/null-as-absent.ts'
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
  description: nullAsAbsent(z.string().max(65_536)),
  input_schema: nullAsAbsent(jsonObject),
  output_schema: nullAsAbsent(jsonObject),
  placements: named(z.string(), placementSchema)
    .refine((all) => Object.keys(all).length > 0, 'needs a placement')
    .meta({ minProperties: 1 }),
  environments: nullAsAbsent(listOf(grantSchema, MOST_GRANTS)),
})

const MOST_SECRET_BYTES = 16_384
const secret = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MOST_SECRET_BYTES, `must be at most ${MOST_SECRET_BYTES} bytes`)
  .meta({ maxLength: MOST_SECRET_BYTES })

const environmentSchema = z.strictObject({
  name: identifier,
  driver: z.enum(['brain', 'host', 'http']),
  lifecycle: z.enum(['automatic', 'manual']),
  configuration: json.optional(),
  environments: nullAsAbsent(listOf(grantSchema, MOST_GRANTS)),
  methods: nullAsAbsent(methodsSchema),
  template: nullAsAbsent(templateSchema),
  host_id: nullAsAbsent(z.string()),
  url: nullAsAbsent(z.string()),
  credential: nullAsAbsent(
    z
      .string()
      .min(1)
      .max(MOST_SECRET_BYTES)
      .regex(BEARER_TOKEN, 'must be printable ASCII without blanks, as a bearer token is'),
  ),
})

const labels = named(identifier, labelValueSchema)
  .refine((all) => Object.keys(all).length <= MOST_LABELS, `must be at most ${MOST_LABELS} labels`)
  .meta({ maxProperties: MOST_LABELS })

/** The body of `POST /v1/sessions` (contract 2.1). */
export const createRequestSchema = z.strictObject({
  agentloop: nullAsAbsent(
    z.strictObject({
      implementation: json,
      configuration: json.optional(),
      environment: nullAsAbsent(identifier),
      environments: nullAsAbsent(listOf(grantSchema, MOST_GRANTS)),
    }),
  ),
  model: z.strictObject({
    provider: identifier,
    name: z.string().min(1).max(256).regex(/^\S+$/, 'must not hold white space'),
    api_key: secret,
    script: json.optional(),
  }),
  system: z.string().default(''),
  response_format: nullAsAbsent(jsonObject),
  tools: listOf(toolSchema, 1024).default([]),
  environments: listOf(environmentSchema, 256).default([]),
  config: nullAsAbsent(z.strictObject({ tools: listOf(identifier) })),
  transcript: nullAsAbsent(listOf(messageSchema)),
  idle_ttl_ms: nullAsAbsent(z.int().nonnegative()),
  labels: nullAsAbsent(labels),
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
  if (parsed.success) return parsed.data
  const message = `Cannot create the session: ${z.prettifyError(parsed.error)}`
  throw new BrainError('invalid_request', message, lacksLifecycle(parsed.error, body) ? {} : { body: 'shape' })
}

/** Older clients send none: that is told apart from a body of the wrong shape (contract 2.4). */
const lacksLifecycle = ({ issues }: z.ZodError, body: Json): boolean =>
  issues.every(({ path }) => path[0] === 'environments' && path[2] === 'lifecycle' && at(body, path) === undefined)

const at = (body: Json, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<PropertyKey, unknown> | undefined)?.[name], body)
