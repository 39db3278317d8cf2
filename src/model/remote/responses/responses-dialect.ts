import { BrainError } from '../../../kernel/errors.ts'
import type { ModelResult } from '../../../contract/message.ts'
import { ALL_MEDIA } from '../../model-provider.ts'
import { optionsOf } from '../check-request.ts'
import type { Dialect, RemoteCall } from '../dialect.ts'
import { questionOf } from '../question.ts'
import { ask } from '../wire/ask.ts'
import { LiveOutput } from '../wire/live-output.ts'
import { RESPONSES_NATIVE, ResponsesAnswer } from './responses-answer.ts'
import { compactRequest, responsesRequest } from './responses-request.ts'

/** OpenAI Responses (contract 7.4), spoken by OpenAI, by Vercel's AI Gateway and by others. */
export const responsesDialect: Dialect = {
  mediaInputs: ALL_MEDIA,
  options: ['operation', 'reasoning', 'temperature', 'top_p'],
  toolName: /^[A-Za-z0-9_-]{1,64}$/,
  nativeFormat: RESPONSES_NATIVE,
  ask: askResponses,
}

async function askResponses(call: RemoteCall): Promise<ModelResult> {
  const { provider, request, model, apiKey, limits, onFrame } = call
  const headers = { authorization: `Bearer ${apiKey}` }
  const definition = provider.models.find(({ id }) => id === model)
  const question = isCompaction(call)
    ? questionOf(call, { path: '/responses/compact', headers, body: compactRequest(model, request) })
    : questionOf(call, { path: '/responses', headers, body: responsesRequest({ name: model, definition }, request) })
  return ask(question, new ResponsesAnswer(provider.name, new LiveOutput(provider.name, limits, onFrame)))
}

function isCompaction({ provider, request }: RemoteCall): boolean {
  const { operation } = optionsOf(request)
  if (operation === undefined) return false
  if (operation === 'compact') return true
  throw new BrainError(
    'invalid_request',
    `Cannot send the request to provider "${provider.name}": its option "operation" must be "compact"`,
  )
}
