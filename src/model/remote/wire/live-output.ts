import type { Limits } from '../../../contract/limits.ts'
import type { Usage } from '../../../contract/message.ts'
import type { ModelFrame } from '../../model-provider.ts'
import { exceeded } from './limit-failure.ts'

/** UTF-8 needs at most three bytes for one UTF-16 unit. */
const MAX_BYTES_OF_UNIT = 3

/** Shows an answer while it is being written, and ends one that is larger than this server takes. */
export class LiveOutput {
  readonly #provider: string
  readonly #limits: Limits
  readonly #onFrame: (frame: ModelFrame) => void
  #bytes = 0

  constructor(provider: string, limits: Limits, onFrame: (frame: ModelFrame) => void) {
    this.#provider = provider
    this.#limits = limits
    this.#onFrame = onFrame
  }

  text(type: 'assistant_delta' | 'refusal_delta', index: number, text: string): void {
    this.charge(text)
    for (const piece of this.#pieces(text)) this.#onFrame({ type, index, text: piece })
  }

  toolCall(index: number, id: string, name: string): void {
    this.charge(id + name)
    this.#onFrame({ type: 'tool_call_delta', index, id, name })
  }

  toolArguments(index: number, text: string): void {
    this.charge(text)
    for (const piece of this.#pieces(text)) this.#onFrame({ type: 'tool_call_delta', index, partial_json: piece })
  }

  usage(usage: Usage): void {
    if (Object.keys(usage).length > 0) this.#onFrame({ type: 'model_usage', usage })
  }

  /** Counts what will be part of the answer. @throws ModelFailure when that is too much */
  charge(text: string): void {
    this.#bytes += Buffer.byteLength(text)
    this.#check(this.#bytes)
  }

  /** @throws ModelFailure when the whole answer is too large */
  end(result: unknown): void {
    const bytes = Buffer.byteLength(JSON.stringify(result))
    this.#check(bytes)
    this.#onFrame({ type: 'model_output', output_bytes: bytes })
  }

  #check(bytes: number): void {
    const most = this.#limits.modelOutputBytes
    if (most > 0 && bytes > most) throw exceeded(this.#provider, 'modelOutputBytes', this.#limits)
  }

  *#pieces(text: string): Generator<string> {
    const most = this.#limits.modelDeltaBytes
    const units = most === 0 ? text.length : Math.max(2, Math.floor(most / MAX_BYTES_OF_UNIT))
    for (let from = 0; from < text.length;) {
      const end = from + units
      // The two halves of a surrogate pair stay together.
      const to = end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end
      yield text.slice(from, to)
      from = to
    }
  }
}
