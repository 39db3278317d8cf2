import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import type { Json } from '../../../kernel/json.ts'
import type { Block, ModelResult, StopReason, Usage } from '../../../contract/message.ts'
import type { FailedResponse } from '../../model-provider.ts'
import { cutShort } from '../wire/exchange.ts'
import { objectOf } from '../wire/fields.ts'
import { unusable } from '../wire/limit-failure.ts'
import type { LiveOutput } from '../wire/live-output.ts'
import { tokensOf } from '../wire/token-usage.ts'
import { parseArguments, refuseTooManyCalls, withDistinctIds } from '../wire/tool-arguments.ts'
import { CHAT_NATIVE } from './chat-prompt.ts'

type Streamed = Awaited<ReturnType<ReturnType<OpenAICompatibleProvider['chatModel']>['doStream']>>['stream']
export type ChatPart = Streamed extends ReadableStream<infer Part> ? Part : never
type Finish = Extract<ChatPart, { type: 'finish' }>
type Call = Extract<ChatPart, { type: 'tool-call' }>

type Piece =
  | { readonly type: 'text'; readonly id: string; text: string }
  | { readonly type: 'reasoning'; readonly id: string; text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; call: Call | undefined }

const STOPS: Readonly<Record<Finish['finishReason']['unified'], StopReason>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'content-filter': 'refusal',
  'tool-calls': 'tool_use',
  error: 'unknown',
  interrupted: 'unknown',
  other: 'unknown',
}

/** Puts an answer together from what the AI SDK read. */
export class ChatAnswer {
  readonly #provider: string
  readonly #live: LiveOutput
  readonly #pieces: Piece[] = []
  #finish: Finish | undefined

  constructor(provider: string, live: LiveOutput) {
    this.#provider = provider
    this.#live = live
  }

  take(part: ChatPart): void {
    switch (part.type) {
      case 'text-delta':
        this.#live.text('assistant_delta', this.#append('text', part.id, part.delta), part.delta)
        return
      case 'reasoning-delta':
        this.#append('reasoning', part.id, part.delta)
        this.#live.charge(part.delta)
        return
      case 'tool-input-start':
        this.#pieces.push({ type: 'call', id: part.id, name: part.toolName, call: undefined })
        this.#live.toolCall(this.#pieces.length - 1, part.id, part.toolName)
        return
      case 'tool-input-delta':
        this.#live.toolArguments(this.#indexOf('call', part.id), part.delta)
        return
      case 'tool-call':
        this.#complete(part)
        return
      case 'finish':
        this.#finish = part
        this.#live.usage(this.#usage)
        return
      case 'error':
        throw unusable(this.#provider, 'its stream is not one of chat completions')
      default:
    }
  }

  #indexOf(type: Piece['type'], id: string): number {
    return this.#pieces.findLastIndex((piece) => piece.type === type && piece.id === id)
  }

  #append(type: 'text' | 'reasoning', id: string, text: string): number {
    const index = this.#indexOf(type, id)
    const piece = this.#pieces[index]
    if (piece === undefined || piece.type === 'call') return this.#pieces.push({ type, id, text }) - 1
    piece.text += text
    return index
  }

  /** Calls with the same id follow each other: the one that is not complete yet is meant. */
  #complete(call: Call): void {
    const open = this.#pieces.find(
      (piece) => piece.type === 'call' && piece.id === call.toolCallId && piece.call === undefined,
    )
    if (open?.type === 'call') open.call = call
    else this.#pieces.push({ type: 'call', id: call.toolCallId, name: call.toolName, call })
  }

  /** The SDK fills in zeros for what it was not told; the provider's own numbers say what is not known. */
  get #usage(): Usage {
    const raw = objectOf(this.#finish?.usage.raw as Json | undefined)
    return tokensOf(raw, 'prompt', 'completion')
  }

  get known(): FailedResponse | undefined {
    if (this.#finish === undefined) return undefined
    const { unified } = this.#finish.finishReason
    return { stop_reason: STOPS[unified], usage: this.#usage, usage_complete: unified !== 'interrupted' }
  }

  /** @throws ModelFailure when there is no usable answer */
  result(): ModelResult {
    const reason = this.#finish?.finishReason.unified
    if (reason === undefined || reason === 'interrupted') throw cutShort(this.#provider)
    const isCut = reason === 'length'
    const last = this.#pieces.at(-1)
    const content = withDistinctIds(this.#pieces.flatMap((piece) => this.#blocksOf(piece, isCut && piece === last)))
    refuseTooManyCalls(this.#provider, content)
    const isCalling = content.some(({ type }) => type === 'tool_use')
    const result: ModelResult = {
      message: { role: 'assistant', content },
      stop_reason: isCalling && reason !== 'length' ? 'tool_use' : STOPS[reason],
      usage: this.#usage,
    }
    this.#live.end(result)
    return result
  }

  #blocksOf(piece: Piece, isCut: boolean): readonly Block[] {
    if (piece.type === 'text') return piece.text === '' ? [] : [{ type: 'text', text: piece.text }]
    if (piece.type === 'reasoning') return [{ type: 'native', format: CHAT_NATIVE, data: { reasoning: piece.text } }]
    const { id, name, call } = piece
    const input = parseArguments(this.#provider, { name, text: call?.input ?? '' }, isCut)
    return [{ type: 'tool_use', id, name, input }, ...signatureOf(call)]
  }
}

/** What some models demand back with the call that it belongs to; it stands behind that call. */
function signatureOf(call: Call | undefined): readonly Block[] {
  const told = Object.values(call?.providerMetadata ?? {}).map(({ thoughtSignature }) => thoughtSignature)
  const signature = told.find((value) => typeof value === 'string')
  return signature === undefined
    ? []
    : [{ type: 'native', format: CHAT_NATIVE, data: { thought_signature: signature } }]
}
