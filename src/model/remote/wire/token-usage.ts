import type { JsonObject } from '../../../kernel/json.ts'
import type { Usage } from '../../../contract/message.ts'
import { countOf, known, objectOf } from './fields.ts'

/**
 * What both wires of OpenAI tell of tokens, each in words of its own. They count cached tokens among those of the input;
 * `input_tokens` are the others (contract 7.4).
 */
export function tokensOf(usage: JsonObject, asked: 'prompt' | 'input', answered: 'completion' | 'output'): Usage {
  const total = countOf(usage[`${asked}_tokens`])
  const cached = countOf(objectOf(usage[`${asked}_tokens_details`])['cached_tokens'])
  return known({
    total_input_tokens: total,
    input_tokens: total === undefined ? undefined : Math.max(0, total - (cached ?? 0)),
    output_tokens: countOf(usage[`${answered}_tokens`]),
    cache_read_input_tokens: cached,
    reasoning_tokens: countOf(objectOf(usage[`${answered}_tokens_details`])['reasoning_tokens']),
  })
}
