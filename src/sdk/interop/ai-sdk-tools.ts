import type { Json, JsonObject } from '../../kernel/json.ts'
import type { PlacedTool } from '../declare/tool.ts'
import { membersOf } from '../strict-members.ts'
import type { CallReport } from './call-report.ts'
import { portableSchema } from '../../contract/provider-schema/portable-schema.ts'
import { checkTools, ToolCaller, type CallTerms, type ToolSession } from './tool-caller.ts'

/** By this mark the AI SDK knows a schema, whichever copy of it made or reads it. */
const SCHEMA: unique symbol = Symbol.for('vercel.ai.schema')

/** A schema as `jsonSchema()` of the AI SDK makes it. */
type AiSdkSchema = {
  readonly [SCHEMA]: true
  readonly _type: unknown
  readonly jsonSchema: JsonObject
  readonly validate: undefined
}

/** One tool, as `tool()` of the AI SDK makes it. */
export type AiSdkTool = {
  readonly description: string
  /** A schema, by their mark. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the type of the mark is known to their package only
  readonly inputSchema: any
  /** Makes the call. @throws BrainError when the server does not take it, and the reason of the signal */
  readonly execute: (input: unknown, options: { readonly abortSignal?: AbortSignal | undefined }) => Promise<CallReport>
  /** What of the report the model is told; version 5 gives the report itself. */
  readonly toModelOutput: (options: { readonly output: CallReport } | CallReport) => AiSdkOutput
}

/** What the AI SDK sends to its model for a result. */
export type AiSdkOutput = { readonly type: 'text' | 'error-text'; readonly value: string }

/**
 * Offers tools of a session to `generateText`, `streamText` and agents of the AI SDK, from version 5 on: for `tools`. The
 * result of a call in their steps is a {@link CallReport}, also of one that failed.
 *
 * @param tools placed tools that the session has
 * @throws TypeError for two tools of one name or an option that is not known. The tools reject with a BrainError when the
 * server does not take a call, which the AI SDK tells the model
 */
export function aiSdkTools(
  session: ToolSession,
  tools: readonly PlacedTool[],
  options: CallTerms = {},
): Record<string, AiSdkTool> {
  membersOf(options, ['deadlineMs', 'wait'], 'Cannot offer tools')
  checkTools(tools)
  const own = tools.map((placed) => ({ placed, toOwnInput: (input: Json) => input }))
  const caller = new ToolCaller(session, own, options)
  const offered = tools.map(({ name, definition }): [string, AiSdkTool] => [
    name,
    {
      description: definition.description,
      inputSchema: schemaOf(definition.input_schema),
      execute: (input, { abortSignal }) =>
        caller.run(name, typeof input === 'string' ? [input] : (input as Json), abortSignal && { signal: abortSignal }),
      toModelOutput: (options) => {
        const { text, isError } = 'output' in options ? options.output : options
        return { type: isError ? 'error-text' : 'text', value: text }
      },
    },
  ])
  return Object.fromEntries(offered)
}

/** Without `validate`: Brain checks inputs itself, and tells the model what is wrong with one. */
function schemaOf(original: JsonObject): AiSdkSchema {
  return { [SCHEMA]: true, _type: undefined, jsonSchema: portableSchema(original).schema, validate: undefined }
}
