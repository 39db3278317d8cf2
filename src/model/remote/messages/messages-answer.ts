import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { Block, ModelResult, StopReason, Usage } from '../../../contract/message.ts'
import { ModelFailure, type FailedResponse } from '../../model-provider.ts'
import type { AnswerFold } from '../wire/ask.ts'
import { countOf, known, listOf, objectOf, textOf } from '../wire/fields.ts'
import type { LiveOutput } from '../wire/live-output.ts'
import { messageIn } from '../wire/refusal.ts'
import { parseArguments, refuseTooManyCalls, stopReasonOf, withDistinctIds } from '../wire/tool-arguments.ts'

export const MESSAGES_NATIVE = 'anthropic_messages/1'

/** A content block, with what its deltas add to it. */
type Slot = {
  readonly block: JsonObject
  readonly added: Record<string, string>
  readonly citations: Json[]
  /** The input of a call, as JSON text. */
  arguments: string
  /** A delta came that this version does not know: what is heard of the block is not all of it. */
  isPartial: boolean
}

const STOPS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end_turn',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  model_context_window_exceeded: 'max_tokens',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
}

/** Kinds of errors after which the same request may succeed. */
const TRANSIENT = new Set(['overloaded_error', 'rate_limit_error', 'api_error', 'timeout_error'])

/** Members that a delta appends to, by its type. */
const APPENDS: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
}

/** Reads the stream of `POST /messages`. Blocks that are neither text nor calls are kept as they came. */
export class MessagesAnswer implements AnswerFold {
  readonly #provider: string
  readonly #live: LiveOutput
  readonly #slots = new Map<number, Slot>()
  #usage: JsonObject = {}
  #stop: string | undefined

  constructor(provider: string, live: LiveOutput) {
    this.#provider = provider
    this.#live = live
  }

  /** Some servers end their stream after the reason, without the last event. */
  get isWhole(): boolean {
    return this.#stop !== undefined
  }

  take(event: JsonObject): boolean {
    const index = countOf(event['index']) ?? Math.max(0, this.#slots.size - 1)
    switch (event['type']) {
      case 'message_start':
        this.#noteUsage(objectOf(event['message'])['usage'])
        return false
      case 'content_block_start':
        this.#start(countOf(event['index']) ?? this.#slots.size, objectOf(event['content_block']))
        return false
      case 'content_block_delta':
        this.#add(index, objectOf(event['delta']))
        return false
      case 'message_delta':
        this.#stop = textOf(objectOf(event['delta'])['stop_reason']) || this.#stop
        this.#noteUsage(event['usage'])
        return false
      case 'message_stop':
        return true
      case 'error':
        throw this.#failed(event['error'])
      default:
        return false
    }
  }

  takeWhole(answer: JsonObject): void {
    if (answer['type'] === 'error') throw this.#failed(answer['error'])
    for (const [index, block] of listOf(answer['content']).entries()) this.#start(index, objectOf(block))
    this.#stop = textOf(answer['stop_reason']) || undefined
    this.#noteUsage(answer['usage'])
  }

  #start(index: number, block: JsonObject): void {
    this.#slots.set(index, { block, added: {}, citations: [], arguments: '', isPartial: false })
    const { type, id, name, text } = block
    if (type === 'tool_use') this.#live.toolCall(index, textOf(id), textOf(name))
    if (type === 'text' && textOf(text) !== '') this.#live.text('assistant_delta', index, textOf(text))
    if (type !== 'text' && type !== 'tool_use') this.#live.charge(JSON.stringify(block))
  }

  #add(index: number, delta: JsonObject): void {
    const slot = this.#slots.get(index)
    if (slot === undefined) return
    const type = textOf(delta['type'])
    const member = APPENDS[type]
    if (type === 'input_json_delta') {
      const partial = textOf(delta['partial_json'])
      slot.arguments += partial
      if (slot.block['type'] === 'tool_use') this.#live.toolArguments(index, partial)
      else this.#live.charge(partial)
    } else if (type === 'citations_delta') {
      this.#live.charge(JSON.stringify(delta['citation'] ?? null))
      slot.citations.push(delta['citation'] ?? null)
    } else if (member === undefined) slot.isPartial = true
    else {
      const text = textOf(delta[member])
      slot.added[member] = (slot.added[member] ?? '') + text
      if (member === 'text') this.#live.text('assistant_delta', index, text)
      else this.#live.charge(text)
    }
  }

  /** Later numbers stand in the place of earlier ones: they are sums. */
  #noteUsage(usage: Json | undefined): void {
    if (!isJsonObject(usage)) return
    const told = Object.entries(usage).filter(([, value]) => value !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(told) }
    this.#live.usage(usageOf(this.#usage))
  }

  #failed(error: Json | undefined): ModelFailure {
    const kind = textOf(objectOf(error)['type'])
    const reason = [kind, messageIn(error) ?? ''].filter((text) => text !== '').join(': ')
    return new ModelFailure(
      'model_provider_failed',
      `Provider "${this.#provider}" failed while it answered${reason === '' ? '' : `: ${reason}`}`,
      { retryable: TRANSIENT.has(kind) },
    )
  }

  get known(): FailedResponse | undefined {
    const usage = usageOf(this.#usage)
    if (this.#stop === undefined && Object.keys(usage).length === 0) return undefined
    const isComplete = this.#stop !== undefined
    return { stop_reason: STOPS[this.#stop ?? ''] ?? 'unknown', usage, usage_complete: isComplete }
  }

  result(): ModelResult {
    const stop = this.#stop === undefined ? undefined : (STOPS[this.#stop] ?? 'unknown')
    const ordered = [...this.#slots].toSorted(([a], [b]) => a - b).map(([, slot]) => slot)
    const last = ordered.at(-1)
    const content = withDistinctIds(
      ordered.flatMap((slot) => this.#blocksOf(slot, slot === last && stop === 'max_tokens')),
    )
    refuseTooManyCalls(this.#provider, content)
    const result: ModelResult = {
      message: { role: 'assistant', content },
      stop_reason: stop ?? stopReasonOf(content, false),
      usage: usageOf(this.#usage),
    }
    this.#live.end(result)
    return result
  }

  #blocksOf(slot: Slot, isCut: boolean): readonly Block[] {
    const { block, added, citations } = slot
    const whole: JsonObject = { ...block, ...joined(block, added) }
    if (block['type'] === 'tool_use') {
      const name = textOf(block['name'])
      return [{ type: 'tool_use', id: textOf(block['id']), name, input: this.#inputOf(slot, name, isCut) }]
    }
    if (block['type'] === 'text') {
      const text = textOf(whole['text'])
      return text === '' ? [] : [{ type: 'text', text }]
    }
    if (slot.isPartial) return []
    const input = slot.arguments === '' ? {} : { input: this.#inputOf(slot, textOf(block['name']), isCut) }
    const cited = citations.length === 0 ? {} : { citations }
    return [{ type: 'native', format: MESSAGES_NATIVE, data: { ...whole, ...input, ...cited } }]
  }

  /** The input is written in pieces, or comes whole where there is nothing to write. */
  #inputOf({ block, arguments: text }: Slot, name: string, isCut: boolean): Json {
    const given = block['input']
    if (text === '' && isJsonObject(given) && Object.keys(given).length > 0) return given
    return parseArguments(this.#provider, { name, text }, isCut)
  }
}

function joined(block: JsonObject, added: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(added).map(([member, text]) => [member, textOf(block[member]) + text]))
}

/** Anthropic counts what was read from and written to its cache apart from the other input. */
function usageOf(usage: JsonObject): Usage {
  const input = countOf(usage['input_tokens'])
  const read = countOf(usage['cache_read_input_tokens'])
  const written = countOf(usage['cache_creation_input_tokens'])
  return known({
    total_input_tokens: input === undefined ? undefined : input + (read ?? 0) + (written ?? 0),
    input_tokens: input,
    output_tokens: countOf(usage['output_tokens']),
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
  })
}
