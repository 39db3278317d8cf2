import { toToolResult, type ToolOutput } from '../contract/outcome.ts'
import type { NewRecord, Origin } from '../journal/record.ts'

/** The records of one call, which all carry it as their origin (contract 3.1). */
export class CallRecords {
  readonly #sequence: number
  readonly #callId: string

  constructor(sequence: number, callId: string) {
    this.#sequence = sequence
    this.#callId = callId
  }

  get origin(): Origin {
    return { kind: 'tool', sequence: this.#sequence }
  }

  result(output: ToolOutput): NewRecord {
    const result = toToolResult(this.#callId, output)
    return { kind: 'tool_result_emitted', data: { sequence: this.#sequence, result }, origin: this.origin }
  }

  returned(): NewRecord {
    return { kind: 'tool_call_returned', data: { sequence: this.#sequence }, origin: this.origin }
  }

  end(outcome: ToolOutput): NewRecord {
    return { kind: 'tool_call_ended', data: { sequence: this.#sequence, outcome }, origin: this.origin }
  }

  /** Of a closing output: an ok value is a result of its own, a failure is told by the end (contract 3.3). */
  closing(output: ToolOutput): NewRecord[] {
    if (output.status === 'ok') return [this.result(output), this.end({ status: 'ok', value: null })]
    return output.content === undefined ? [this.end(output)] : [this.result(output), this.end(output)]
  }
}

/** The end of a cancellation; with `doubt`, of one that the executor may not know of. */
export const cancelEnd = (sequence: number, doubt: string | undefined): NewRecord =>
  doubt === undefined
    ? { kind: 'tool_cancel_ended', data: { sequence } }
    : { kind: 'tool_cancel_failed', data: { sequence, code: 'unknown', ambiguous: true, message: doubt } }
