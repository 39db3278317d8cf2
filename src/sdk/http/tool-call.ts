import { z } from 'zod'
import { clip, MAX_MESSAGE_LENGTH } from '../../kernel/errors.ts'
import { isIdentifier } from '../../kernel/ids.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { ToolDefinition } from '../../contract/message.ts'

/** How long a call of an application over HTTP takes at most, whatever its deadline. */
export const LONGEST_CALL_MS = 300_000
export const USUAL_CALL_MS = 30_000

/** What an application's tool may say through the relay of a bridge. */
export const RELAYED = ['result', 'returned', 'finish'] as const

/** A tool as it is advertised over HTTP (contract 5.6). */
export type HttpToolDefinition = {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
}

/** A call as a bridge posts it to an application: version 2 has options, and a relay for results. */
export type HttpToolCall = {
  readonly sessionId: string
  readonly environment: string
  /** Of the `tool_call_started`: with session and environment it names the call. */
  readonly sequence: number
  readonly tool: HttpToolDefinition
  readonly input: Json
  /** Milliseconds since the epoch. */
  readonly deadlineAtMs: number
} & (
  | { readonly contract: 'http-tool/v1' }
  | {
      readonly contract: 'http-tool/v2'
      readonly options: Json
      readonly callback: { readonly url: string; readonly token: string; readonly methods: readonly string[] }
    }
)

/** What an application answers, with status 200. */
export type HttpToolAnswer =
  | { readonly type: 'success'; readonly value: Json }
  | { readonly type: 'completed' }
  | { readonly type: 'failure'; readonly code: string; readonly message: string }

const json = z.custom<Json>((value) => value !== undefined, 'must be there')
const jsonObject = z.record(z.string(), z.custom<Json>())

export const definitionSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  inputSchema: jsonObject,
  outputSchema: jsonObject.optional(),
})

const common = {
  sessionId: z.string(),
  environment: z.string(),
  sequence: z.int().positive(),
  tool: definitionSchema,
  input: json,
  deadlineAtMs: z.number(),
}

export const callSchema = z.discriminatedUnion('contract', [
  z.strictObject({ contract: z.literal('http-tool/v1'), ...common }),
  z.strictObject({
    contract: z.literal('http-tool/v2'),
    ...common,
    options: json,
    callback: z.strictObject({
      url: z.url({ protocol: /^https?$/ }),
      token: z.string().min(1),
      methods: z.array(z.enum(RELAYED)),
    }),
  }),
])

export const answerSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('success'), value: json }),
  z.strictObject({ type: z.literal('completed') }),
  z.strictObject({
    type: z.literal('failure'),
    code: z.string().refine(isIdentifier),
    message: z.string().max(MAX_MESSAGE_LENGTH),
  }),
])

/** The definition of a tool with the names that descriptors and calls have. */
export const httpDefinitionOf = ({
  name,
  description,
  input_schema,
  output_schema,
}: ToolDefinition): HttpToolDefinition => ({
  name,
  description,
  inputSchema: input_schema,
  ...(output_schema && { outputSchema: output_schema }),
})

export const failureAnswer = (code: string, message: string): HttpToolAnswer => ({
  type: 'failure',
  code,
  message: clip(message),
})
