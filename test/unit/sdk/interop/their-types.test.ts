import type Anthropic from '@anthropic-ai/sdk'
import type { ToolSet } from 'ai'
import type OpenAI from 'openai'
import { expectTypeOf, it } from 'vitest'
import type { SessionHandle } from '../../../../src/sdk/client/session-handle.ts'
import type { AiSdkTool } from '../../../../src/sdk/interop/ai-sdk-tools.ts'
import type { AnthropicTools } from '../../../../src/sdk/interop/anthropic-tools.ts'
import type { OpenAiChatTools } from '../../../../src/sdk/interop/openai-chat-tools.ts'
import type { OpenAiResponsesTools } from '../../../../src/sdk/interop/openai-responses-tools.ts'
import type { ToolSession } from '../../../../src/sdk/interop/tool-caller.ts'

type Taken<Run extends (...args: never[]) => unknown> = Parameters<Run>[0]
type Given<Run extends (...args: never[]) => unknown> = Awaited<ReturnType<Run>>

it('what is offered, taken and given is what the three libraries type', () => {
  expectTypeOf<SessionHandle>().toExtend<ToolSession>()

  expectTypeOf<OpenAiChatTools['tools']>().toExtend<OpenAI.Chat.ChatCompletionTool[]>()
  expectTypeOf<OpenAI.Chat.ChatCompletionMessageToolCall>().toExtend<Taken<OpenAiChatTools['run']>>()
  expectTypeOf<Given<OpenAiChatTools['run']>>().toExtend<OpenAI.Chat.ChatCompletionMessageParam>()

  expectTypeOf<OpenAiResponsesTools['tools']>().toExtend<OpenAI.Responses.Tool[]>()
  expectTypeOf<OpenAI.Responses.ResponseFunctionToolCall>().toExtend<Taken<OpenAiResponsesTools['run']>>()
  expectTypeOf<Given<OpenAiResponsesTools['run']>>().toExtend<OpenAI.Responses.ResponseInputItem>()

  expectTypeOf<AnthropicTools['tools']>().toExtend<Anthropic.Messages.ToolUnion[]>()
  expectTypeOf<Anthropic.Messages.ToolUseBlock>().toExtend<Taken<AnthropicTools['run']>>()
  expectTypeOf<Given<AnthropicTools['run']>>().toExtend<Anthropic.Messages.ToolResultBlockParam>()

  expectTypeOf<Record<string, AiSdkTool>>().toExtend<ToolSet>()
})
