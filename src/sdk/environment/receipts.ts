import { clip, messageOf } from '../../kernel/errors.ts'
import { isIdentifier } from '../../kernel/ids.ts'
import type { EnvironmentReceipt } from '../../contract/environment-protocol.ts'
import { isBrainError } from '../brain-error.ts'
import { detailsOf } from '../error-details.ts'

const IN_DOUBT = new Set(['ambiguous', 'unknown'])

/**
 * The receipt of an operation whose handler threw (contract 5.5).
 *
 * @param reason why the handler was told to stop, if it was: `timeout` or `cancelled` when that is what it threw
 */
export function receiptOfFailure(error: unknown, reason?: unknown): EnvironmentReceipt {
  if (reason !== undefined && isBecauseOf(error, reason))
    return failure(nameOf(reason) === 'TimeoutError' ? 'timeout' : 'cancelled', clip(messageOf(reason)))
  const message = clip(messageOf(error)) || 'The environment failed without a message'
  if (!isBrainError(error)) return failure('environment_error', message)
  if (IN_DOUBT.has(error.code)) return { type: 'unknown', message }
  const code = isIdentifier(error.code) ? error.code : 'environment_error'
  return { type: 'failure', code, message, retryable: error.retryable, ...detailsOf(error) }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : '')

/** Whether it is the reason of a signal, or the AbortError that Node makes of one. */
const isBecauseOf = (error: unknown, reason: unknown): boolean =>
  error === reason || (error instanceof Error && nameOf(error) === 'AbortError' && error.cause === reason)

const failure = (code: string, message: string): EnvironmentReceipt => ({
  type: 'failure',
  code,
  message,
  retryable: false,
})
