import type { Dialect } from '../../../src/contract/model-catalogue.ts'
import { messagesAnswer, responsesAnswer, textBlock, toolBlock } from '../../support/model-server.ts'

type Call = { readonly id?: string; readonly name?: string; readonly arguments?: string }

/** One wire, as far as tests of all wires need it. */
export type Wire = {
  readonly dialect: Dialect
  /** The events of a whole answer. */
  answer(text: string, calls?: readonly Call[]): readonly unknown[]
  /** The events of an answer that its limit of tokens ended. */
  cut(text: string, calls?: readonly Call[]): readonly unknown[]
  /** An event inside the stream by which the provider gives up. */
  error(message: string): unknown
}

const responses: Wire = {
  dialect: 'openai_responses',
  answer: (text, calls = []) =>
    responsesAnswer(
      text,
      calls.map(({ name = 'look', ...call }) => ({ ...call, name })),
    ),
  cut: (text, calls = []) => [
    ...responses.answer(text, calls).slice(0, -1),
    { type: 'response.incomplete', response: { incomplete_details: { reason: 'max_output_tokens' } } },
  ],
  error: (message) => ({ type: 'error', code: 'broken', message }),
}

const messagesEvents = (text: string, calls: readonly Call[], stop: string): readonly unknown[] =>
  messagesAnswer(
    [
      ...(text === '' ? [] : [textBlock(text)]),
      ...calls.map(({ id = '', name = 'look', arguments: written }) =>
        written === undefined ? toolBlock(id, name) : toolBlock(id, name, written),
      ),
    ],
    stop,
  )

const messages: Wire = {
  dialect: 'anthropic_messages',
  answer: (text, calls = []) => messagesEvents(text, calls, calls.length > 0 ? 'tool_use' : 'end_turn'),
  cut: (text, calls = []) => messagesEvents(text, calls, 'max_tokens'),
  error: (message) => ({ type: 'error', error: { type: 'broken', message } }),
}

const chatDelta = (part: object, finish: string | null = null): unknown => ({
  choices: [{ index: 0, delta: part, finish_reason: finish }],
})

const chatEvents = (text: string, calls: readonly Call[], finish: string): readonly unknown[] => [
  ...(text === '' ? [] : [chatDelta({ content: text })]),
  ...calls.map(({ id, name = 'look', arguments: written }, index) =>
    chatDelta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: written } }] }),
  ),
  chatDelta({}, finish),
  '[DONE]',
]

const chat: Wire = {
  dialect: 'openai_chat',
  answer: (text, calls = []) => chatEvents(text, calls, calls.length > 0 ? 'tool_calls' : 'stop'),
  cut: (text, calls = []) => chatEvents(text, calls, 'length'),
  error: (message) => ({ error: { message, code: 'broken' } }),
}

export const WIRES: readonly Wire[] = [responses, messages, chat]
