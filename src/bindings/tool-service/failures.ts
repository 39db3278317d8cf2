import { clip } from '../../kernel/errors.ts'
import { errorOutcome } from '../../contract/outcome.ts'
import type { Receipt } from '../../dispatch/tool-binding.ts'

/** How far a call is: nothing has left, all was sent, the head of the answer is there and its body or events come. */
export type Phase = 'connecting' | 'waiting' | 'body' | 'events'

/**
 * What ends a call before its result: a deadline, an interruption, a connection that breaks or ends in order, a refusal
 * of the service or of a proxy, an answer that cannot be used.
 */
export type Cause = 'deadline' | 'cancel' | 'reset' | 'close' | 'refusal' | 'fault'

/** What such a call comes to. */
export type Verdict = 'tool_unreachable' | 'tool_http_status' | 'timeout' | 'cancelled' | 'unknown'

/** Whatever was sent may have been done, unless the service says that it was not. */
const SENT = { deadline: 'timeout', cancel: 'cancelled', reset: 'unknown', close: 'unknown', fault: 'unknown' } as const

/** What each failure of a distributed call comes to (contract A15). */
export const VERDICTS: Readonly<Record<Phase, Readonly<Record<Cause, Verdict>>>> = {
  connecting: {
    deadline: 'tool_unreachable',
    cancel: 'cancelled',
    reset: 'tool_unreachable',
    close: 'tool_unreachable',
    refusal: 'tool_unreachable',
    fault: 'tool_unreachable',
  },
  waiting: { ...SENT, refusal: 'tool_http_status' },
  // The head said 200, so there is nothing left that could refuse.
  body: { ...SENT, refusal: 'unknown' },
  events: { ...SENT, refusal: 'unknown' },
}

/** Why a call has no result. `message` is the reason alone: it holds neither address nor anything that the service wrote. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure'
  readonly failure: Cause

  constructor(failure: Cause, reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.failure = failure
  }
}

/** A call that could not even be tried, as its receipt. */
export const unavailable = (tool: string, reason: string): Receipt =>
  failed('tool_unavailable', `Cannot call tool "${tool}": ${reason}`)

/** How a call of `tool` ends for a failure in a phase. */
export function receiptOf(tool: string, phase: Phase, { failure, message }: CallFailure): Receipt {
  const verdict = VERDICTS[phase][failure]
  switch (verdict) {
    case 'tool_unreachable':
      return failed(verdict, `Cannot reach tool "${tool}": ${message}; nothing was sent`)
    case 'tool_http_status':
      return failed(verdict, `Cannot call tool "${tool}": ${message}`)
    case 'timeout':
    case 'cancelled':
      return { type: 'stopped', reason: verdict }
    case 'unknown':
      return { type: 'unknown', message: clip(`Cannot use the answer of tool "${tool}": ${message}`) }
    default:
      return verdict satisfies never
  }
}

/** A refusal of the result by us: what it is the result of was done all the same. */
export const refusedResult = (code: string, message: string): Receipt =>
  failed(code, message, { unknown_outcome: true })

function failed(code: string, message: string, details?: { readonly unknown_outcome: true }): Receipt {
  const outcome = errorOutcome(code, clip(message), details)
  if (outcome.status !== 'error') throw new Error('an error outcome has another status')
  return { type: 'failure', error: outcome.error }
}
