import type { ModelResult } from '../../../contract/message.ts'
import { ALL_MEDIA } from '../../model-provider.ts'
import type { Dialect, RemoteCall } from '../dialect.ts'
import { questionOf } from '../question.ts'
import { ask } from '../wire/ask.ts'
import { LiveOutput } from '../wire/live-output.ts'
import { MESSAGES_NATIVE, MessagesAnswer } from './messages-answer.ts'
import { messagesRequest } from './messages-request.ts'

const VERSION = '2023-06-01'

/** Anthropic Messages (contract 7.4). */
export const messagesDialect: Dialect = {
  mediaInputs: ALL_MEDIA,
  options: ['thinking', 'output_config', 'temperature', 'top_p', 'top_k', 'stop_sequences'],
  toolName: /^[A-Za-z0-9_-]{1,128}$/,
  nativeFormat: MESSAGES_NATIVE,
  ask: askMessages,
}

async function askMessages(call: RemoteCall): Promise<ModelResult> {
  const { provider, request, model, apiKey, limits, onFrame } = call
  const definition = provider.models.find(({ id }) => id === model)
  const question = questionOf(call, {
    path: '/messages',
    headers: { 'x-api-key': apiKey, 'anthropic-version': VERSION },
    body: messagesRequest({ name: model, definition }, request),
  })
  return ask(question, new MessagesAnswer(provider.name, new LiveOutput(provider.name, limits, onFrame)))
}
