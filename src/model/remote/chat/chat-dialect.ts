import { isJsonObject } from '../../../kernel/json.ts'
import type { ModelResult } from '../../../contract/message.ts'
import { ModelFailure } from '../../model-provider.ts'
import type { Dialect, RemoteCall } from '../dialect.ts'
import { showRequest } from '../question.ts'
import { eventsOf, refuseUnlessOk, toFailure, withResponse, type Question } from '../wire/ask.ts'
import { cutShort, exchange, type Answer } from '../wire/exchange.ts'
import { listOf, objectOf, textOf } from '../wire/fields.ts'
import { unusable } from '../wire/limit-failure.ts'
import { LiveOutput } from '../wire/live-output.ts'
import { isTransient, messageIn } from '../wire/refusal.ts'
import { ChatAnswer } from './chat-answer.ts'
import { CHAT_NATIVE, chatExtras, chatOptions } from './chat-prompt.ts'

/**
 * Chat completions, which many servers speak, each in its own way. The AI SDK knows those ways; what goes out and comes
 * in passes through our own exchange, with its limits (decision 0013).
 */
export const chatDialect: Dialect = {
  mediaInputs: ['image'],
  options: ['temperature', 'top_p', 'stop', 'reasoning_effort'],
  toolName: /^[A-Za-z0-9_-]{1,64}$/,
  nativeFormat: CHAT_NATIVE,
  ask: askChat,
}

async function askChat(call: RemoteCall): Promise<ModelResult> {
  const { provider, request, model, limits, signal, onFrame } = call
  // Loaded with the first call: servers that use no such provider do not pay for it.
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  const wire = new GuardedWire(call)
  const sdk = createOpenAICompatible({
    name: 'provider',
    baseURL: provider.baseUrl,
    includeUsage: true,
    fetch: (_url, init) => wire.fetch(init),
    transformRequestBody: (body) => ({ ...body, ...chatExtras(request) }),
  })
  const answer = new ChatAnswer(provider.name, new LiveOutput(provider.name, limits, onFrame))
  try {
    const { stream } = await sdk.chatModel(model).doStream(chatOptions(request, signal))
    for await (const part of stream) answer.take(part)
    return answer.result()
  } catch (error) {
    throw withResponse(wire.failure ?? asFailure(provider.name, error), answer.known)
  } finally {
    wire.close()
  }
}

/** What the SDK itself refuses says less than our own checks, and may quote what it was given. */
const asFailure = (provider: string, error: unknown): unknown =>
  error instanceof ModelFailure ? error : unusable(provider, 'the AI SDK cannot read it', error)

/** The `fetch` of the SDK: one exchange, whose failures are kept as they are. */
class GuardedWire {
  readonly #call: RemoteCall
  #answer: Answer | undefined
  #isUsed = false
  failure: unknown

  constructor(call: RemoteCall) {
    this.#call = call
  }

  async fetch(init: RequestInit | undefined): Promise<Response> {
    if (this.#isUsed) throw new Error('the AI SDK sent a request again') // a request is sent at most once (M1)
    this.#isUsed = true
    try {
      const { provider, apiKey, limits, signal, redact } = this.#call
      const body = typeof init?.body === 'string' ? init.body : ''
      const url = `${provider.baseUrl}/chat/completions`
      const headers = { authorization: `Bearer ${apiKey}` }
      const question: Question = { provider: provider.name, url, headers, body, limits, signal, redact }
      showRequest(this.#call, body)
      this.#answer = await exchange(question)
      await refuseUnlessOk(question, this.#answer)
      return new Response(ReadableStream.from(this.#frames(question, this.#answer)), {
        headers: { 'content-type': 'text/event-stream' },
      })
    } catch (error) {
      this.failure ??= error
      throw error
    }
  }

  async *#frames(question: Question, answer: Answer): AsyncGenerator<Uint8Array> {
    const utf8 = new TextEncoder()
    let isFinished = false
    try {
      for await (const event of eventsOf(question, answer)) {
        if (isJsonObject(event['error']) || typeof event['error'] === 'string') throw failed(question.provider, event)
        isFinished ||= listOf(event['choices']).some((choice) => textOf(objectOf(choice)['finish_reason']) !== '')
        yield utf8.encode(`data: ${JSON.stringify(event)}\n\n`)
      }
      if (!isFinished) throw cutShort(question.provider)
    } catch (error) {
      this.failure ??= toFailure(question, error)
      throw error
    }
  }

  close(): void {
    this.#answer?.close()
  }
}

function failed(provider: string, event: Readonly<Record<string, unknown>>): ModelFailure {
  const error = event['error'] as Parameters<typeof messageIn>[0]
  const code = isJsonObject(error) ? Number(error['code'] ?? error['status']) : Number.NaN
  return new ModelFailure(
    'model_provider_failed',
    `Provider "${provider}" failed while it answered: ${messageIn(error) ?? 'it gave no reason'}`,
    { retryable: isTransient(code) },
  )
}
