import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { Block, Media, Message, ModelRequest, ToolResultBlock } from '../../../contract/message.ts'
import type { ModelDefinition } from '../../../contract/model-catalogue.ts'
import { optionsOf } from '../check-request.ts'
import { known, textOf } from '../wire/fields.ts'

/** The body of `POST /responses`. Nothing of the conversation is left with the provider. */
export function responsesRequest(
  model: { readonly name: string; readonly definition: ModelDefinition | undefined },
  request: ModelRequest,
): JsonObject {
  const { operation: _, ...options } = optionsOf(request)
  const { system, tools = [], response_format: format, max_output_tokens: most } = request
  const isReasoning = model.definition?.reasoning ?? (options['reasoning'] !== undefined || reasons(model.name))
  return {
    model: model.name,
    input: inputOf(request.messages),
    stream: true,
    store: false,
    ...options,
    ...known({ max_output_tokens: most }),
    ...(system === undefined || system === '' ? {} : { instructions: system }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool) }),
    ...(format === undefined || format === null ? {} : { text: { format: flat(format) } }),
    // Without a store the next request must bring the reasoning along; other models refuse to be asked for it.
    ...(isReasoning ? { include: ['reasoning.encrypted_content'] } : {}),
  }
}

/** Chat completions have the schema one level deeper; that form is taken too. */
function flat(format: JsonObject): JsonObject {
  const { json_schema: nested, ...rest } = format
  return isJsonObject(nested) ? { ...rest, ...nested } : format
}

/** The body of `POST /responses/compact`, which takes neither tools nor a stream. */
export function compactRequest(model: string, { messages, system }: ModelRequest): JsonObject {
  return {
    model,
    input: inputOf(messages),
    ...(system === undefined || system === '' ? {} : { instructions: system }),
  }
}

/** OpenAI's families of models that reason, with or without the vendor before the name. */
const reasons = (model: string): boolean => /^(?:openai\/)?(?:o\d|gpt-[5-9](?!.*-chat))/.test(model)

const toTool = ({ name, description, input_schema }: NonNullable<ModelRequest['tools']>[number]): JsonObject => ({
  type: 'function',
  name,
  description,
  parameters: input_schema,
  strict: false,
})

const inputOf = (messages: readonly Message[]): readonly Json[] => messages.flatMap(itemsOf)

/** Calls, results and native blocks are items of their own, in their order; what is between them is a message. */
function itemsOf({ role, content }: Message): readonly Json[] {
  const items: Json[] = []
  let parts: Json[] = []
  const endMessage = (): void => {
    // Some servers tell items by their type; OpenAI's wants it left out where the assistant's own words are given back.
    if (parts.length > 0) items.push({ ...(role === 'assistant' ? {} : { type: 'message' }), role, content: parts })
    parts = []
  }
  for (const block of content) {
    const item = itemOf(block)
    if (item === undefined) parts.push(...partsOf(block, role))
    else {
      endMessage()
      items.push(...item)
    }
  }
  endMessage()
  return items
}

function itemOf(block: Block): readonly Json[] | undefined {
  switch (block.type) {
    case 'tool_use': {
      const { id, name, input } = block
      return [{ type: 'function_call', call_id: id, name: sendableName(name), arguments: JSON.stringify(input) }]
    }
    case 'tool_result':
      return [{ type: 'function_call_output', call_id: block.tool_use_id, output: outputOf(block) }]
    case 'native':
      return isReplayable(block.data) ? [block.data] : []
    default:
      return undefined
  }
}

/** A name that a model made up is answered as unknown; the API must still take it back. */
export const sendableName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || '_'

/** Reasoning that the provider keeps for itself cannot be given back to it: nothing was stored. */
function isReplayable(item: Json): boolean {
  const { type, encrypted_content: sealed } = item as JsonObject
  return type !== 'reasoning' || textOf(sealed) !== ''
}

function outputOf({ content, media = [] }: ToolResultBlock): Json {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  return media.length === 0 ? text : [{ type: 'input_text', text }, ...media.map(mediaPart)]
}

function partsOf(block: Block, role: Message['role']): readonly Json[] {
  if (block.type === 'text')
    return block.text === '' ? [] : [{ type: role === 'assistant' ? 'output_text' : 'input_text', text: block.text }]
  return block.type === 'image' || block.type === 'file' ? [mediaPart(block)] : []
}

const mediaPart = (media: Media): JsonObject =>
  media.type === 'image'
    ? { type: 'input_image', image_url: media.url, detail: 'auto' }
    : { type: 'input_file', file_url: media.url }
