import type { JsonObject } from '../../kernel/json.ts'
import type { PlacedTool } from '../declare/tool.ts'
import { NotStrict } from '../../contract/provider-schema/not-strict.ts'
import { portableSchema } from '../../contract/provider-schema/portable-schema.ts'
import type { PathRemark, SchemaRemark } from '../../contract/provider-schema/schema-remark.ts'
import { strictSchema } from '../../contract/provider-schema/strict-schema.ts'
import { withoutNulls } from '../../contract/provider-schema/without-nulls.ts'
import type { CallableTool } from './tool-caller.ts'

/** A tool as OpenAI is told of it, in either of its APIs. */
export type OpenAiTool = CallableTool & {
  readonly parameters: JsonObject
  readonly strict: boolean
  readonly remarks: readonly SchemaRemark[]
}

const MOST_TOOLS = 128
/** Gone at OpenAI itself since 2025, and still there in servers that imitate it. */
const SURE_DESCRIPTION = 1024

/** @throws TypeError for more tools than one request may have */
export function openAiTools(tools: readonly PlacedTool[], strict: boolean): readonly OpenAiTool[] {
  if (tools.length > MOST_TOOLS)
    throw new TypeError(
      `Cannot offer tools: there are ${tools.length}, and OpenAI takes at most ${MOST_TOOLS}: give fewer`,
    )
  return tools.map((placed) => openAiTool(placed, strict))
}

function openAiTool(placed: PlacedTool, strict: boolean): OpenAiTool {
  const named = (remarks: readonly PathRemark[]): SchemaRemark[] => [
    ...remarks.map((remark) => ({ tool: placed.name, ...remark })),
    ...descriptionRemarks(placed),
  ]
  const { input_schema: original } = placed.definition
  const refused: PathRemark[] = []
  if (strict)
    try {
      const made = strictSchema(original)
      return {
        placed,
        strict: true,
        parameters: made.schema,
        toOwnInput: (input) => withoutNulls(made, input),
        remarks: named(made.remarks),
      }
    } catch (error) {
      if (!(error instanceof NotStrict)) throw error
      const { path, message: reason, remedy } = error
      refused.push({ path, effect: 'not_strict', reason, remedy })
    }
  const { schema, remarks } = portableSchema(original)
  return {
    placed,
    strict: false,
    parameters: schema,
    toOwnInput: (input) => input,
    remarks: named([...refused, ...remarks]),
  }
}

const descriptionRemarks = ({ name, definition }: PlacedTool): readonly SchemaRemark[] =>
  definition.description.length <= SURE_DESCRIPTION
    ? []
    : [
        {
          tool: name,
          path: '#',
          effect: 'advice',
          reason: `its description has ${definition.description.length} characters`,
          remedy: `some servers refuse more than ${SURE_DESCRIPTION}: it is sent whole, so shorten it for them`,
        },
      ]
