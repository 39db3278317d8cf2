import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { Block, Media, Message, ModelRequest, ToolResultBlock } from '../../../contract/message.ts'
import type { ModelDefinition } from '../../../contract/model-catalogue.ts'
import { optionsOf } from '../check-request.ts'

/** The API demands a number; this one is within what every current model can write. */
export const DEFAULT_MAX_TOKENS = 8192

/** The body of `POST /messages`. */
export function messagesRequest(
  model: { readonly name: string; readonly definition: ModelDefinition | undefined },
  request: ModelRequest,
): JsonObject {
  const { system, tools = [], max_output_tokens: most, messages } = request
  return {
    model: model.name,
    max_tokens: most ?? model.definition?.max_output_tokens ?? DEFAULT_MAX_TOKENS,
    ...optionsOf(request),
    ...(system === undefined || system.trim() === '' ? {} : { system }),
    messages: conversation(messages),
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool) }),
    stream: true,
  }
}

const toTool = ({ name, description, input_schema }: NonNullable<ModelRequest['tools']>[number]): JsonObject => ({
  name,
  description,
  input_schema,
})

type Turn = { readonly role: 'user' | 'assistant'; readonly content: Json[] }

/** Its roles alternate, empty contents are refused, and a developer is one who speaks to the model. */
function conversation(messages: readonly Message[]): readonly Turn[] {
  const turns: Turn[] = []
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const content = contentOf(message)
    const last = turns.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  for (const { content } of turns) resultsFirst(content)
  return turns
}

/** Results must stand before anything else that a user says. */
function resultsFirst(content: Json[]): void {
  const isResult = (block: Json): boolean => isJsonObject(block) && block['type'] === 'tool_result'
  content.splice(0, content.length, ...content.filter(isResult), ...content.filter((block) => !isResult(block)))
}

const contentOf = ({ content }: Message): Json[] => content.flatMap(blocksOf)

function blocksOf(block: Block): readonly Json[] {
  switch (block.type) {
    case 'text':
      return block.text.trim() === '' ? [] : [{ type: 'text', text: block.text }]
    case 'image':
    case 'file':
      return [mediaBlock(block)]
    case 'native':
      return [block.data]
    case 'tool_use': {
      const input = isJsonObject(block.input) ? block.input : { input: block.input }
      return [{ type: 'tool_use', id: sendableId(block.id), name: sendableName(block.name), input }]
    }
    case 'tool_result':
      return [resultBlock(block)]
    default:
      return block satisfies never
  }
}

/** Ids and names of other wires, or that a model made up, may have characters that this API refuses. */
const sendableId = (id: string): string => id.replaceAll(/[^A-Za-z0-9_-]/g, '_') || '_'
const sendableName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 128) || '_'

function resultBlock({ tool_use_id: id, content, is_error: isError, media = [] }: ToolResultBlock): JsonObject {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  const words: readonly Json[] = text.trim() === '' ? [] : [{ type: 'text', text }]
  return {
    type: 'tool_result',
    tool_use_id: sendableId(id),
    content: [...words, ...media.map(mediaBlock)],
    ...(isError ? { is_error: true } : {}),
  }
}

const mediaBlock = (media: Media): JsonObject => ({
  type: media.type === 'image' ? 'image' : 'document',
  source: { type: 'url', url: media.url },
})
