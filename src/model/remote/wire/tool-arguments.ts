import { messageOf } from '../../../kernel/errors.ts'
import { parseJson, type Json } from '../../../kernel/json.ts'
import type { Block, StopReason } from '../../../contract/message.ts'
import { ModelFailure } from '../../model-provider.ts'
import { unusable } from './limit-failure.ts'

/** More calls than this in one answer are no answer of a model. */
export const MAX_TOOL_CALLS = 1024

type Written = { readonly name: string; readonly text: string }

/**
 * The input that a model wrote for a call. Models leave it out, or write nothing, for a tool without parameters
 * (cases D-29).
 *
 * @throws ModelFailure `model_output_incomplete` when the answer ended in the middle of it, `model_output_invalid` when it
 *   is not JSON, or holds a number that would become another one (cases D-17)
 */
export function parseArguments(provider: string, { name, text }: Written, isCut: boolean): Json {
  if (text.trim() === '' && !isCut) return {}
  try {
    return parseJson(text, `the arguments of the call of "${name.slice(0, 128)}"`)
  } catch (cause) {
    if (isCut) throw incomplete(provider, name)
    throw unusable(provider, messageOf(cause), cause)
  }
}

function incomplete(provider: string, name: string): ModelFailure {
  return new ModelFailure(
    'model_output_incomplete',
    `Cannot use the answer of provider "${provider}": it reached its limit of output tokens inside the call of "${name.slice(0, 128)}"; raise max_output_tokens`,
  )
}

/** Models repeat ids or leave them out; each call of an answer gets one of its own (contract 7.3). */
export function withDistinctIds(content: readonly Block[]): readonly Block[] {
  const taken = new Set<string>()
  return content.map((block, index) => {
    if (block.type !== 'tool_use') return block
    let id = block.id === '' ? `call_${index}` : block.id
    while (taken.has(id)) id = `${id}_${index}`
    taken.add(id)
    return id === block.id ? block : { ...block, id }
  })
}

/** @throws ModelFailure when there are more calls than anybody means */
export function refuseTooManyCalls(provider: string, content: readonly Block[]): void {
  const calls = content.filter(({ type }) => type === 'tool_use').length
  if (calls > MAX_TOOL_CALLS) throw unusable(provider, `it holds ${calls} tool calls, more than ${MAX_TOOL_CALLS}`)
}

/** Why an answer ended, where its wire has no word of its own for calls and refusals. */
export function stopReasonOf(content: readonly Block[], isRefused: boolean): StopReason {
  if (content.some(({ type }) => type === 'tool_use')) return 'tool_use'
  return isRefused ? 'refusal' : 'end_turn'
}
