import { BrainError, clip } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { ToolError } from '../../contract/outcome.ts'
import { ToolFailure } from '../../contract/tool-failure.ts'
import type { EnvironmentOperation as OperationKind, NewRecord } from '../../journal/record.ts'
import type { OperationReceipt } from './environment-operation.ts'

/** What came back is against the method's output schema: the work may have been done all the same. */
export type Invalid = { readonly type: 'invalid'; readonly message: string }

const AMBIGUOUS = { retryable: false, ambiguous: true }

/** The record that closes an operation. */
export function endOf(kind: OperationKind, sequence: number, receipt: OperationReceipt | Invalid): NewRecord {
  switch (receipt.type) {
    case 'accepted': {
      const { type, onTurnEnd } = receipt
      const result: JsonObject = { type, ...(onTurnEnd === undefined ? {} : { on_turn_end: onTurnEnd }) }
      return { kind: `environment_${kind}_ended`, data: { sequence, result } }
    }
    case 'result': {
      const { type, output } = receipt
      return { kind: `environment_${kind}_ended`, data: { sequence, result: { type, output } } }
    }
    case 'failure': {
      const { code, message, retryable = false, details } = receipt.error
      const failure = { code, message, retryable, ambiguous: false, ...(details === undefined ? {} : { details }) }
      return { kind: `environment_${kind}_failed`, data: { sequence, ...failure, domain: 'environment' } }
    }
    case 'invalid': {
      const failure = { code: 'environment_output_invalid', message: clip(receipt.message), ...AMBIGUOUS }
      return { kind: `environment_${kind}_failed`, data: { sequence, ...failure, domain: 'environment' } }
    }
    case 'unknown': {
      const failure = { code: 'unknown', message: clip(receipt.message), ...AMBIGUOUS }
      return { kind: `environment_${kind}_failed`, data: { sequence, ...failure, domain: 'transport' } }
    }
    default:
      return receipt satisfies never
  }
}

type Failed = Exclude<OperationReceipt | Invalid, { type: 'accepted' | 'result' }>

/** What the caller of a failed operation is told. */
export function toError(name: string, receipt: Failed): Error {
  switch (receipt.type) {
    case 'failure':
      return failureOf(receipt.error)
    case 'invalid':
      return new BrainError(
        'environment_output_invalid',
        `Cannot use what environment "${name}" gave: ${clip(receipt.message, 2000)}; it may have done its work`,
      )
    case 'unknown':
      return new BrainError('ambiguous', `Cannot tell what environment "${name}" has done: ${receipt.message}`)
    default:
      return receipt satisfies never
  }
}

const failureOf = ({ code, message, retryable, details }: ToolError): ToolFailure =>
  new ToolFailure(code, message, { retryable: retryable ?? false, details })
