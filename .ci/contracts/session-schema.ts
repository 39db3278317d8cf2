import { z } from 'zod'
import { RECORD_SHAPES } from '../../src/archive/record-shapes.ts'
import { controlRequestSchema, environmentEventSchema, grantSchema } from '../../src/contract/environment-schema.ts'
import { listElements } from '../../src/contract/list-of.ts'
import type { Message, ModelResult, ToolDefinition, UserInput } from '../../src/contract/message.ts'
import { jsonObjectSchema, jsonSchema, mediaSchema, messageSchema } from '../../src/contract/message-schema.ts'
import { identifierSchema } from '../../src/contract/name-schemas.ts'
import type { Outcome, ToolOutput, ToolResult } from '../../src/contract/outcome.ts'
import { SESSION_STATUSES, type SessionSummary } from '../../src/contract/session-request.ts'
import { MAX_MESSAGE_LENGTH } from '../../src/kernel/errors.ts'
import type { Json } from '../../src/kernel/json.ts'
import type { JournalRecord, ToolInvocation } from '../../src/journal/record.ts'
import { createRequestSchema } from '../../src/session/create-request.ts'
import type { ActivationTool, EventPage, ToolReturn, TurnInput } from '../../src/turn/agentloop.ts'
import { modelRequestSchema } from '../../src/turn/model-request.ts'

/** A schema of which the type is one of the server's own, so that neither changes alone. */
type Of<Value> = z.ZodType<Value, Value>
type Exact<Value> = { readonly [Member in keyof Value]: Value[Member] }

const text = z.string()
const sequence = z.int().positive()
const count = z.int().nonnegative()

const error = z.strictObject({
  code: identifierSchema,
  message: text.max(MAX_MESSAGE_LENGTH),
  retryable: z.boolean().exactOptional(),
  details: jsonSchema.exactOptional(),
})
const outcomeOf = <Extra extends z.ZodRawShape>(extra: Extra) =>
  z.union([
    z.strictObject({ status: z.literal('ok'), value: jsonSchema, ...extra }),
    z.strictObject({ status: z.literal('error'), error, ...extra }),
    z.strictObject({ status: z.literal('timeout'), ...extra }),
    z.strictObject({ status: z.literal('cancelled'), ...extra }),
    z.strictObject({ status: z.literal('unknown'), message: text, ...extra }),
  ])
const outcome = outcomeOf({}) satisfies Of<Outcome>
const toolOutput = outcomeOf({ content: text.exactOptional() }) satisfies Of<ToolOutput>

const toolDefinition = z.object({
  name: text,
  description: text,
  input_schema: jsonObjectSchema,
  output_schema: jsonObjectSchema.exactOptional(),
})

const origin = z.union([
  z.object({ kind: z.literal('agentloop'), sequence }),
  z.object({ kind: z.literal('tool'), sequence }),
  z.object({ kind: z.literal('environment'), environment: z.object({ name: identifierSchema, sequence }) }),
  z.object({ kind: z.literal('environment'), environment: z.object({ name: text, sequence }) }),
  z.object({ kind: z.literal('application') }),
])
const event = z.object({
  sequence,
  recorded_at_ms: count,
  event_type: identifierSchema,
  data: jsonSchema,
  origin: origin.exactOptional(),
}) satisfies Of<Exact<JournalRecord>>

const invocation = z.object({
  call_id: text,
  name: text,
  environment: text,
  environment_sequence: sequence.exactOptional(),
  input: jsonSchema,
})
const toolReturn = z.object({ call_id: text, sequence, events: z.array(event), finished: z.boolean() })
const activationTool = toolDefinition.extend({ environments: z.array(text) })
const usage = z.object({
  ...Object.fromEntries(
    ['total_input', 'input', 'output', 'cache_read_input', 'cache_creation_input', 'reasoning'].map((kind) => [
      `${kind}_tokens`,
      count.exactOptional(),
    ]),
  ),
  provider_cost_usd: text.exactOptional(),
})
const userInput = z.strictObject({ message: text.min(1), media: z.array(mediaSchema).max(64).exactOptional() })
const stopReason = z.enum(['end_turn', 'tool_use', 'max_tokens', 'stop_sequence', 'refusal', 'unknown'])

/** What the wire says of sessions, by name; those that stand in others are referred to. */
const DEFINITIONS: Readonly<Record<string, z.ZodType>> = {
  CreateSessionRequest: createRequestSchema,
  SessionSummary: z.object({
    session_id: text.regex(/^ses_[0-9a-f]{32}$/),
    status: z.enum(SESSION_STATUSES),
    last_sequence: count,
  }) satisfies Of<Exact<SessionSummary>>,
  UserInput: userInput satisfies Of<UserInput>,
  Message: messageSchema satisfies z.ZodType<Message>,
  Transcript: z.object({ messages: z.array(messageSchema), through_sequence: count }),
  Event: event,
  EventPage: z.object({ events: z.array(event), next_cursor: count }) satisfies Of<Exact<EventPage>>,
  Outcome: outcome,
  ToolOutput: toolOutput,
  ToolResult: z.object({
    call_id: text,
    output: jsonSchema,
    is_error: z.boolean(),
    content: text.exactOptional(),
  }) satisfies Of<Exact<ToolResult>>,
  ToolDefinition: toolDefinition satisfies Of<ToolDefinition>,
  ModelRequest: modelRequestSchema,
  ModelResult: z.object({ message: messageSchema, stop_reason: stopReason, usage }) satisfies z.ZodType<ModelResult>,
  TurnInput: z.object({
    input: userInput.exactOptional(),
    transcript: z.array(messageSchema),
    kv: z.record(identifierSchema, jsonSchema),
    events: z.array(event).max(1000),
    configuration: jsonSchema,
    system: text,
    tools: z.array(activationTool),
    runtime: z.object({
      logical_time_ms: count,
      deterministic_seed: z.array(z.int().min(0).max(255)).length(32),
    }),
  }) satisfies z.ZodType<TurnInput>,
  ActivationTool: activationTool satisfies Of<ActivationTool>,
  ToolInvocation: invocation satisfies Of<ToolInvocation>,
  ToolReturn: toolReturn satisfies Of<ToolReturn>,
  EnvironmentGrant: grantSchema,
  EnvironmentControlRequest: controlRequestSchema,
  EnvironmentEvent: environmentEventSchema,
}

const RECORDS: Readonly<Record<string, z.ZodType>> = {
  ...RECORD_SHAPES,
  tool_call_ended: z.looseObject({ sequence, outcome: toolOutput }),
}

const NAMES = new Map<unknown, string>(Object.entries(DEFINITIONS).map(([name, schema]) => [schema, name]))

type Target = { [member: string]: unknown }
type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']>

/** Puts other members into a schema in the place of all of its own. */
function become(target: Target, schema: object): void {
  for (const member of Object.keys(target)) delete target[member]
  Object.assign(target, schema)
}

function schemaOf(root: z.ZodType): object {
  const override: Override = ({ zodSchema, jsonSchema }) => {
    const schema: unknown = zodSchema
    const name = NAMES.get(schema)
    if (name !== undefined && schema !== root) return become(jsonSchema, { $ref: `#/$defs/${name}` })
    const { def } = (zodSchema as z.core.$ZodTypes)._zod
    const list = def.type === 'pipe' ? listElements.get(def.in) : undefined
    if (list !== undefined) {
      const bound = Number.isFinite(list.most) ? { maxItems: list.most } : {}
      return become(jsonSchema, { type: 'array', items: partOf(list.element), ...bound, ...jsonSchema })
    }
    // What a member is looked at before it is parsed says nothing; what it is parsed as does.
    if (def.type === 'pipe' && def.in._zod.def.type === 'transform')
      become(jsonSchema, { ...partOf(def.out as z.ZodType), ...jsonSchema })
  }
  const { $schema: _, ...schema } = z.toJSONSchema(root, { io: 'input', unrepresentable: 'any', override })
  return schema
}

function partOf(schema: z.ZodType): object {
  const name = NAMES.get(schema)
  return name === undefined ? schemaOf(schema) : { $ref: `#/$defs/${name}` }
}

/** The JSON Schema of what clients and servers say of sessions (contract 2, 3, 7.2), as it is published. */
export function sessionSchema(): Json {
  const data = Object.entries(RECORDS).map(([kind, schema]) => [`${kind}.data`, partOf(schema)] as const)
  const definitions = Object.fromEntries(Object.entries(DEFINITIONS).map(([name, schema]) => [name, schemaOf(schema)]))
  const ofKind = Object.keys(RECORDS).map((kind) => ({
    if: { properties: { event_type: { const: kind } } },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { properties: { data: { $ref: `#/$defs/${kind}.data` } } },
  }))
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sessions of Brain, on the wire',
    description:
      'Use a definition of $defs. A request that CreateSessionRequest refuses is refused by the server; one that it takes may still name what is not there. Events of kinds that are not listed are those of tools and agentloops.',
    $defs: { ...definitions, Event: { ...definitions['Event'], allOf: ofKind }, ...Object.fromEntries(data) },
  }
  return JSON.parse(JSON.stringify(schema)) as Json
}
