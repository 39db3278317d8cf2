import { z } from 'zod'
import type { EnvironmentGrant } from './session-request.ts'
import { listOf } from './list-of.ts'
import { jsonObjectSchema, jsonSchema } from './message-schema.ts'
import { identifierSchema as identifier } from './name-schemas.ts'
import { named } from './named.ts'
import { nullAsAbsent } from './null-as-absent.ts'
import {
  AVAILABILITIES,
  type EnvironmentControlRequest,
  type EnvironmentEvent,
  type Observation,
} from './environment.ts'

/** Methods that an environment may declare. */
const MOST_METHODS = 256
/** Environments that may be made from one. */
const MOST_INSTANCES = 1024

const message = z.string().max(4096)

export const methodsSchema = named(
  identifier,
  z.strictObject({
    description: z.string().max(65_536),
    input_schema: jsonObjectSchema,
    output_schema: nullAsAbsent(jsonObjectSchema),
    effect: nullAsAbsent(z.enum(['none', 'replace'])),
  }),
  MOST_METHODS,
)

export const templateSchema = z.strictObject({
  max_instances: z.int().min(1).max(MOST_INSTANCES),
  configuration_schema: jsonObjectSchema,
})

export const grantSchema: z.ZodType<EnvironmentGrant> = z.strictObject({
  environment: identifier,
  permissions: listOf(z.enum(['read', 'create', 'setup', 'update', 'delete', 'call']), 64),
  methods: nullAsAbsent(listOf(identifier, MOST_METHODS)),
}) as z.ZodType<EnvironmentGrant>

export const observationSchema: z.ZodType<Observation> = z.discriminatedUnion('scope', [
  z.strictObject({ scope: z.literal('environment'), availability: z.enum(AVAILABILITIES), message }),
  z.strictObject({ scope: z.literal('resource'), resource: z.string().max(1024), code: identifier, message }),
  z.strictObject({
    scope: z.literal('operation'),
    sequence: z.int().positive(),
    resolution: z.discriminatedUnion('status', [
      z.strictObject({ status: z.enum(['ready', 'deleted', 'detached']) }),
      z.strictObject({ status: z.literal('failed'), error: jsonObjectSchema }),
    ]),
  }),
])

/** What a controller says of its own accord; `result` is an observation (contract 5.2). */
export const observedSchema = z.strictObject({ observation: observationSchema, content: nullAsAbsent(z.string()) })
export const extensionEventSchema = z.strictObject({ event_type: z.string(), data: jsonSchema })

export const environmentEventSchema: z.ZodType<EnvironmentEvent> = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('event'), ...extensionEventSchema.shape }),
  z.strictObject({ type: z.literal('result'), output: observedSchema }),
]) as z.ZodType<EnvironmentEvent>

const reference = z.strictObject({ name: identifier, sequence: z.int().positive() })

export const controlRequestSchema: z.ZodType<EnvironmentControlRequest> = z.discriminatedUnion('operation', [
  z.strictObject({ operation: z.literal('list') }),
  z.strictObject({ operation: z.literal('get'), environment: reference }),
  z.strictObject({
    operation: z.literal('create'),
    template: identifier,
    name: identifier,
    configuration: jsonSchema,
  }),
  z.strictObject({ operation: z.literal('setup'), environment: reference }),
  z.strictObject({ operation: z.literal('update'), environment: reference, configuration: jsonSchema }),
  z.strictObject({ operation: z.literal('delete'), environment: reference }),
  z.strictObject({ operation: z.literal('call'), environment: reference, method: identifier, input: jsonSchema }),
])
