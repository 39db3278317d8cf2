import { BrainError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Message, ModelRequest } from '../../contract/message.ts'
import type { ProviderDefinition } from '../../contract/model-catalogue.ts'
import type { DialectRules } from './dialect.ts'

const refuse = (provider: string, reason: string): never => {
  throw new BrainError('invalid_request', `Cannot send the request to provider "${provider}": ${reason}`)
}

/**
 * Refuses before sending what the provider's API would refuse, or misread (contract 7.4, A22).
 * @throws BrainError `invalid_request`
 */
export function checkRequest(
  { name, supportsResponseFormat }: ProviderDefinition,
  rules: DialectRules,
  request: ModelRequest,
): void {
  const { options = {}, tools = [], response_format: format } = request
  const unknown = Object.keys(options).find((option) => !rules.options.includes(option))
  if (unknown !== undefined)
    refuse(name, `there is no option "${unknown.slice(0, 128)}"; it takes ${rules.options.join(', ')}`)
  const misnamed = tools.find((tool) => !rules.toolName.test(tool.name))
  if (misnamed !== undefined)
    refuse(name, `its API refuses the tool name "${misnamed.name}", which must match ${rules.toolName.source}`)
  if (format !== undefined && format !== null && !supportsResponseFormat) refuse(name, 'it has no response_format')
  checkMessages(name, rules, request.messages)
}

/** @throws BrainError `invalid_request` for blocks that have no place in the provider's wire */
export function checkMessages(provider: string, rules: DialectRules, messages: readonly Message[]): void {
  for (const [index, { role, content }] of messages.entries())
    for (const block of content) {
      if (block.type === 'native' && block.format !== rules.nativeFormat)
        refuse(
          provider,
          `message ${index} holds a native block of format "${block.format.slice(0, 128)}", and it takes "${rules.nativeFormat}": leave the block out`,
        )
      const isOfModel = block.type === 'native' || block.type === 'tool_use'
      if (isOfModel && role !== 'assistant') refuse(provider, `message ${index} has role "${role}" and a ${block.type}`)
      if (!isOfModel && block.type !== 'text' && role === 'assistant')
        refuse(provider, `message ${index} has role "assistant" and holds a block of type "${block.type}"`)
      const media = block.type === 'tool_result' ? (block.media ?? []) : isMedia(block) ? [block] : []
      if (!rules.mediaInputs.includes('application/pdf') && media.some(({ type }) => type === 'file'))
        refuse(provider, `message ${index} shows application/pdf, which it does not take by URL`)
    }
}

const isMedia = (block: Message['content'][number]): block is Extract<typeof block, { type: 'image' | 'file' }> =>
  block.type === 'image' || block.type === 'file'

/** How many pictures and documents a request shows. */
export const countMedia = (messages: readonly Message[]): number =>
  messages
    .flatMap(({ content }) => content)
    .reduce((sum, block) => {
      if (block.type === 'tool_result') return sum + (block.media?.length ?? 0)
      return isMedia(block) ? sum + 1 : sum
    }, 0)

/** The options of a request, known to be allowed. */
export const optionsOf = ({ options }: ModelRequest): JsonObject => options ?? {}
