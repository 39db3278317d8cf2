import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import { isJsonObject, type JsonObject } from '../../../kernel/json.ts'
import type { Block, Media, Message, ModelRequest, ToolResultBlock } from '../../../contract/message.ts'
import { objectOf, textOf } from '../wire/fields.ts'

type ChatModel = ReturnType<OpenAICompatibleProvider['chatModel']>
export type ChatOptions = Parameters<ChatModel['doStream']>[0]
type Prompt = ChatOptions['prompt']
type UserPart = Extract<Prompt[number], { role: 'user' }>['content'][number]
type AssistantPart = Extract<Prompt[number], { role: 'assistant' }>['content'][number]
type ResultPart = Extract<Extract<Prompt[number], { role: 'tool' }>['content'][number], { type: 'tool-result' }>

/** Marks blocks that only this wire has: what a model thought, and signatures that its next call must bring along. */
export const CHAT_NATIVE = 'openai_chat/1'

/** A request as the AI SDK takes it. */
export function chatOptions(request: ModelRequest, signal: AbortSignal): ChatOptions {
  const { tools = [], max_output_tokens: most, system } = request
  return {
    prompt: [
      ...(system === undefined || system === '' ? [] : [{ role: 'system' as const, content: system }]),
      ...request.messages.flatMap((message) => promptOf(message, request.messages)),
    ],
    abortSignal: signal,
    ...(most === undefined ? {} : { maxOutputTokens: most }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, input_schema: schema }) => ({
            type: 'function' as const,
            name,
            description,
            inputSchema: schema as never,
          })),
        }),
  }
}

/** Members of the body that are ours to write: the SDK would drop or change some. */
export function chatExtras({ options = {}, response_format: format }: ModelRequest): JsonObject {
  return { ...options, ...(format === undefined || format === null ? {} : { response_format: nested(format) }) }
}

/** Responses and chat completions have the same schema at different depths; both are taken. */
function nested(format: JsonObject): JsonObject {
  if (format['type'] !== 'json_schema' || isJsonObject(format['json_schema'])) return format
  const { type, ...schema } = format
  return { type, json_schema: schema }
}

function promptOf({ role, content }: Message, all: readonly Message[]): Prompt {
  if (role === 'assistant') {
    const parts = content.flatMap((block, index) => assistantPart(block, content[index + 1]))
    return parts.length === 0 ? [] : [{ role, content: parts }]
  }
  const results = content.filter((block) => block.type === 'tool_result')
  const shown: readonly Block[] = [...results.flatMap(({ media = [] }) => media), ...content]
  const said = shown.flatMap(userPart)
  return [
    ...(results.length === 0
      ? []
      : [{ role: 'tool' as const, content: results.map((block) => resultPart(block, all)) }]),
    ...(said.length === 0 ? [] : [role === 'user' ? { role, content: said } : developer(said)]),
  ]
}

const developer = (parts: readonly UserPart[]): Prompt[number] => ({
  role: 'system',
  content: parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n'),
})

function userPart(block: Block): readonly UserPart[] {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text }]
  return block.type === 'image' ? [imagePart(block)] : []
}

const imagePart = ({ url }: Media): UserPart => ({
  type: 'file',
  mediaType: 'image/*',
  data: { type: 'url', url: new URL(url) },
})

function assistantPart(block: Block, next: Block | undefined): readonly AssistantPart[] {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text }]
  if (block.type === 'tool_use') {
    const signature = next?.type === 'native' ? textOf(objectOf(next.data)['thought_signature']) : ''
    const options = signature === '' ? {} : { providerOptions: { google: { thoughtSignature: signature } } }
    return [{ type: 'tool-call', toolCallId: block.id, toolName: sendable(block.name), input: block.input, ...options }]
  }
  if (block.type !== 'native') return []
  const reasoning = textOf(objectOf(block.data)['reasoning'])
  return reasoning === '' ? [] : [{ type: 'reasoning', text: reasoning }]
}

const sendable = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || '_'

function resultPart({ tool_use_id: id, content }: ToolResultBlock, all: readonly Message[]): ResultPart {
  const value = typeof content === 'string' ? content : JSON.stringify(content)
  const use = all.flatMap((message) => message.content).find((block) => block.type === 'tool_use' && block.id === id)
  const toolName = use?.type === 'tool_use' ? sendable(use.name) : '_'
  return { type: 'tool-result', toolCallId: id, toolName, output: { type: 'text', value } }
}
