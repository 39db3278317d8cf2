import { z } from 'zod'
import { faultOfEnvelope } from '../contract/outcome.ts'
import { identifierSchema as identifier } from '../contract/name-schemas.ts'
import { grantSchema, methodsSchema, observationSchema, templateSchema } from '../contract/environment-schema.ts'
import { jsonObjectSchema, jsonSchema, mediaSchema, messageSchema } from '../contract/message-schema.ts'
import type { Json } from '../kernel/json.ts'
import type { KernelKind } from '../journal/record.ts'

const sequence = z.int().positive()
const text = z.string()
const object = z.looseObject
const failure = { code: text, message: text, retryable: z.boolean(), ambiguous: z.boolean() }
const delta = { keep: z.int().nonnegative(), append: z.array(messageSchema) }
const names = z.array(text).optional()
const access = z.enum(['read', 'write']).optional()

const tool = {
  name: text,
  description: text,
  input_schema: jsonObjectSchema,
  output_schema: jsonObjectSchema.optional(),
}

const grants = z.array(grantSchema).optional()
const environment = { name: identifier, lifecycle: z.enum(['automatic', 'manual']), environments: grants }

const configuration = object({
  agentloop: object({
    // What runs elsewhere is described as it is understood there.
    implementation: jsonObjectSchema,
    configuration: jsonSchema,
    environment: identifier.optional(),
    environments: grants,
  }),
  model: object({
    provider: text,
    name: text,
    api_key: z.undefined('is a credential, which no record holds').optional(),
  }),
  system: text,
  response_format: jsonObjectSchema.optional(),
  tools: z.array(
    object({ ...tool, placements: z.record(text, object({ implementation: jsonSchema })), environments: grants }),
  ),
  environments: z.array(
    z.discriminatedUnion('driver', [
      object({
        ...environment,
        driver: z.literal('brain'),
        configuration: object({
          secrets: names,
          network: names,
          filesystem: object({ workspace: access, scratch: access }).optional(),
        }),
      }),
      object({ ...environment, driver: z.literal('host'), host_id: text, configuration: jsonSchema }),
      object({
        ...environment,
        driver: z.literal('http'),
        url: text,
        credential: z.undefined('is a credential, which no record holds').optional(),
        configuration: jsonSchema,
        methods: methodsSchema.optional(),
        template: templateSchema.optional(),
      }),
    ]),
  ),
  config: object({ tools: z.array(text) }).optional(),
  catalog: z.array(object(tool)).optional(),
  transcript: z.array(messageSchema).optional(),
  idle_ttl_ms: z.int().nonnegative().optional(),
})

const outcome = z.custom<Json>(
  (value) => value !== undefined && faultOfEnvelope(value as Json) === undefined,
  'must be an outcome',
)
const reference = { name: identifier, sequence }
const operation = { environment: identifier, environment_sequence: z.int().nonnegative(), request: jsonObjectSchema }
const operationEnd = object({ sequence, result: jsonObjectSchema })
const operationFailure = object({ sequence, ...failure, domain: z.enum(['transport', 'environment']) })

/** What the server reads again of each kind of record; other members are kept as they are. */
export const RECORD_SHAPES = {
  session_creation_started: configuration,
  session_creation_ended: object({ configuration }),
  session_creation_failed: object(failure),
  session_suspended: object({}),
  session_resumed: object({}),
  session_interrupted: object({}),
  session_end_started: object({}),
  session_end_failed: object(failure),
  session_ended: object({}),
  turn_started: z.union([
    object({ input: object({ message: text, media: z.array(mediaSchema).optional() }) }),
    object({ trigger: z.literal('events') }),
  ]),
  activation_started: object({ since: z.int().nonnegative() }),
  activation_ended: object({}),
  activation_failed: object(failure),
  turn_ended: object({ result: jsonSchema, events_through: z.int().nonnegative() }),
  turn_failed: object(failure),
  transcript_delta: object(delta),
  kv_set: object({ key: identifier, value: jsonSchema }),
  kv_delete: object({ key: identifier }),
  model_call_started: object({
    system: text,
    tools: z.array(object(tool)),
    messages: z.int().nonnegative(),
    context: object({ through_sequence: z.int().nonnegative(), delta: object(delta) }),
  }),
  model_call_ended: object({
    sequence,
    result: object({ message: messageSchema, stop_reason: text, usage: jsonObjectSchema }),
  }),
  model_call_failed: object({ sequence, ...failure }),
  tool_call_started: object({
    tool: text,
    environment: text,
    environment_sequence: z.int().nonnegative(),
    invocation: object({ call_id: text, name: text, environment: text, input: jsonSchema }),
    deadline_ms: z.number().nullable(),
  }),
  tool_result_emitted: object({
    sequence,
    result: object({ call_id: text, output: jsonSchema, is_error: z.boolean(), content: text.optional() }),
  }),
  tool_call_returned: object({ sequence }),
  tool_call_ended: object({ sequence, outcome }),
  tool_call_failed: object({ sequence, ...failure }),
  tool_cancel_started: object({ target_sequence: sequence, tool: text, environment: text }),
  tool_cancel_ended: object({ sequence }),
  tool_cancel_failed: object({ sequence, code: text, ambiguous: z.boolean(), message: text }),
  environment_declared: object({
    reference: object(reference),
    template: identifier,
    lifecycle: z.enum(['automatic', 'manual']),
    configuration: jsonSchema,
  }),
  environment_updated: object({ environment: object(reference), configuration: jsonSchema }),
  environment_closed: object({ environment: identifier }),
  environment_observation: object({ observation: observationSchema, content: text.optional() }),
  environment_setup_started: object(operation),
  environment_setup_ended: operationEnd,
  environment_setup_failed: operationFailure,
  environment_call_started: object(operation),
  environment_call_ended: operationEnd,
  environment_call_failed: operationFailure,
  environment_detach_started: object(operation),
  environment_detach_ended: operationEnd,
  environment_detach_failed: operationFailure,
  environment_teardown_started: object(operation),
  environment_teardown_ended: operationEnd,
  environment_teardown_failed: operationFailure,
  environment_replace_started: object(operation),
  environment_replace_ended: operationEnd,
  environment_replace_failed: operationFailure,
} as const satisfies Record<KernelKind, z.ZodType>
