import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { Block, ModelResult, StopReason, Usage } from '../../../contract/message.ts'
import { ModelFailure, type FailedResponse } from '../../model-provider.ts'
import type { AnswerFold } from '../wire/ask.ts'
import { countOf, known, listOf, objectOf, textOf } from '../wire/fields.ts'
import type { LiveOutput } from '../wire/live-output.ts'
import { messageIn } from '../wire/refusal.ts'
import { tokensOf } from '../wire/token-usage.ts'
import { parseArguments, refuseTooManyCalls, stopReasonOf, withDistinctIds } from '../wire/tool-arguments.ts'

export const RESPONSES_NATIVE = 'openai_responses/1'

/** One item of the output, as far as it was heard. */
type Slot = {
  /** As it was announced, then as it was completed. */
  item: JsonObject
  isDone: boolean
  text: string
  refusal: string
  arguments: string
  isShown: boolean
}

const newSlot = (): Slot => ({ item: {}, isDone: false, text: '', refusal: '', arguments: '', isShown: false })

/**
 * Reads the stream of `POST /responses`. Items count as they are when they are done; where a server leaves that event,
 * an id or the announcement out, the pieces do.
 */
export class ResponsesAnswer implements AnswerFold {
  readonly #provider: string
  readonly #live: LiveOutput
  readonly #slots = new Map<number, Slot>()
  /** The response of the last event. */
  #response: JsonObject | undefined
  #usage: Usage = {}
  readonly isWhole = false

  constructor(provider: string, live: LiveOutput) {
    this.#provider = provider
    this.#live = live
  }

  take(event: JsonObject): boolean {
    switch (event['type']) {
      case 'response.output_item.added':
        this.#add(event)
        return false
      case 'response.output_text.delta':
        this.#write('text', event)
        return false
      case 'response.refusal.delta':
        this.#write('refusal', event)
        return false
      case 'response.function_call_arguments.delta':
        this.#writeArguments(event)
        return false
      case 'response.output_item.done':
        this.#finish(event)
        return false
      case 'response.completed':
      case 'response.incomplete':
        this.#end(objectOf(event['response']))
        return true
      case 'response.failed':
        this.#noteUsage(objectOf(event['response']))
        throw this.#failed(objectOf(event['response'])['error'])
      case 'error':
        throw this.#failed(isJsonObject(event['error']) ? event['error'] : event)
      default:
        return false
    }
  }

  takeWhole(answer: JsonObject): void {
    if (isJsonObject(answer['error'])) throw this.#failed(answer['error'])
    this.#end(answer)
  }

  #add(event: JsonObject): void {
    const { index, slot } = this.#slot(event, true)
    slot.item = objectOf(event['item'])
    this.#showCall(index, slot)
  }

  #write(member: 'text' | 'refusal', event: JsonObject): void {
    const delta = textOf(event['delta'])
    const { index, slot } = this.#slot(event)
    slot[member] += delta
    this.#live.text(member === 'text' ? 'assistant_delta' : 'refusal_delta', index, delta)
  }

  #writeArguments(event: JsonObject): void {
    const delta = textOf(event['delta'])
    const { index, slot } = this.#slot(event)
    slot.arguments += delta
    this.#live.toolArguments(index, delta)
  }

  #finish(event: JsonObject): void {
    const { index, slot } = this.#slot(event)
    slot.item = objectOf(event['item'])
    slot.isDone = true
    if (slot.item['type'] !== 'function_call') return
    this.#showCall(index, slot)
    if (slot.arguments === '') this.#live.toolArguments(index, textOf(slot.item['arguments']))
  }

  #showCall(index: number, slot: Slot): void {
    if (slot.isShown || slot.item['type'] !== 'function_call') return
    slot.isShown = true
    this.#live.toolCall(index, idOf(slot.item), textOf(slot.item['name']))
  }

  #end(response: JsonObject): void {
    this.#response = response
    this.#noteUsage(response)
    // Some servers tell items only here.
    for (const [index, item] of listOf(response['output']).entries())
      if (this.#slots.get(index)?.isDone !== true) this.#finish({ output_index: index, item })
  }

  #noteUsage(response: JsonObject): void {
    this.#usage = usageOf(response)
    this.#live.usage(this.#usage)
  }

  /** Where an event belongs. Without a number an item is known by its id, or it is the one that is being written. */
  #slot(event: JsonObject, isNew = false): { readonly index: number; readonly slot: Slot } {
    const index = countOf(event['output_index']) ?? this.#guess(event, isNew)
    const slot = this.#slots.get(index) ?? newSlot()
    this.#slots.set(index, slot)
    return { index, slot }
  }

  #guess(event: JsonObject, isNew: boolean): number {
    const id = textOf(event['item_id']) || textOf(objectOf(event['item'])['id'])
    const slots = [...this.#slots]
    const same = slots.find(([, { item }]) => id !== '' && item['id'] === id)
    const open = isNew ? undefined : slots.findLast(([, { isDone }]) => !isDone)
    return same?.[0] ?? open?.[0] ?? this.#slots.size
  }

  #failed(error: Json | undefined): ModelFailure {
    const { code, type } = objectOf(error)
    const kind = [textOf(code), textOf(type)].find((text) => text !== '' && text !== 'error') ?? ''
    const reason = [kind, messageIn(error) ?? ''].filter((text) => text !== '').join(': ')
    return new ModelFailure(
      'model_provider_failed',
      `Provider "${this.#provider}" failed while it answered${reason === '' ? '' : `: ${reason}`}`,
      { retryable: /rate_limit|server_error|overloaded|timeout|unavailable/.test(kind) },
    )
  }

  get #stop(): StopReason | undefined {
    const { incomplete_details: details } = this.#response ?? {}
    const reason = textOf(objectOf(details)['reason'])
    if (reason === 'max_output_tokens' || reason === 'max_tokens') return 'max_tokens'
    if (reason === 'content_filter') return 'refusal'
    return reason === '' ? undefined : 'unknown'
  }

  get known(): FailedResponse | undefined {
    const isComplete = this.#response !== undefined
    if (!isComplete && Object.keys(this.#usage).length === 0) return undefined
    const calls = [...this.#slots.values()].some((slot) => kindOf(slot) === 'call')
    const stop = this.#stop ?? (isComplete ? (calls ? 'tool_use' : 'end_turn') : 'unknown')
    return { stop_reason: stop, usage: this.#usage, usage_complete: isComplete }
  }

  result(): ModelResult {
    const ordered = [...this.#slots].toSorted(([a], [b]) => a - b).map(([, slot]) => slot)
    const last = ordered.at(-1)
    const content = withDistinctIds(
      ordered.flatMap((slot) => this.#blocksOf(slot, slot === last && this.#stop === 'max_tokens')),
    )
    refuseTooManyCalls(this.#provider, content)
    const isRefused = ordered.some((slot) => refusalsOf(slot).length > 0)
    const result: ModelResult = {
      message: { role: 'assistant', content },
      stop_reason: this.#stop ?? stopReasonOf(content, isRefused),
      usage: this.#usage,
    }
    this.#live.end(result)
    return result
  }

  #blocksOf(slot: Slot, isLast: boolean): readonly Block[] {
    const { item } = slot
    switch (kindOf(slot)) {
      case 'words':
        return wordsOf(slot).map((text) => ({ type: 'text', text }))
      case 'call': {
        const name = textOf(item['name'])
        const isCut = item['status'] === 'incomplete' || isLast
        const text = textOf(item['arguments']) || slot.arguments
        return [
          { type: 'tool_use', id: idOf(item), name, input: parseArguments(this.#provider, { name, text }, isCut) },
        ]
      }
      case 'native':
        // What was announced and never done is no item.
        return slot.isDone ? [{ type: 'native', format: RESPONSES_NATIVE, data: item }] : []
    }
  }
}

/** What a slot becomes. A compaction also gives back what a user said, which is not the model's to say. */
function kindOf({ item, arguments: written }: Slot): 'words' | 'call' | 'native' {
  const { type, role } = item
  if (type === 'function_call' || (type === undefined && written !== '')) return 'call'
  return (type === undefined || type === 'message') && (role === undefined || role === 'assistant') ? 'words' : 'native'
}

const idOf = (item: JsonObject): string => textOf(item['call_id']) || textOf(item['id'])

const refusalsOf = ({ item, refusal }: Slot): readonly string[] =>
  [...listOf(item['content']).map((part) => textOf(objectOf(part)['refusal'])), refusal].filter((text) => text !== '')

/** What a message says, a refusal included: it is all that there is to show. */
function wordsOf({ item, text, refusal }: Slot): readonly string[] {
  const told = listOf(item['content']).flatMap((part) => {
    const { text: said, refusal: refused } = objectOf(part)
    return [textOf(said), textOf(refused)]
  })
  const words = told.filter((word) => word !== '')
  return words.length > 0 ? words : [text, refusal].filter((word) => word !== '')
}

function usageOf(response: JsonObject): Usage {
  const usage = objectOf(response['usage'])
  const gateway = objectOf(objectOf(response['provider_metadata'])['gateway'])
  const cost = usage['cost'] ?? gateway['cost']
  return known({
    ...tokensOf(usage, 'input', 'output'),
    provider_cost_usd: typeof cost === 'number' ? String(cost) : typeof cost === 'string' ? cost : undefined,
  })
}
