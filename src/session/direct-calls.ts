import { createHash } from 'node:crypto'
import { BrainError } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { Limits } from '../contract/limits.ts'
import { toolsOf } from '../contract/tool-service.ts'
import type { ToolOutput, ToolResult } from '../contract/outcome.ts'
import type { ClaimKey, StoredAnswer } from '../journal/journal.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import { readAll } from '../journal/session-log.ts'
import type { Journal } from '../journal/journal.ts'
import { Budget } from '../dispatch/budget.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { onlyPlacement } from '../dispatch/dispatcher.ts'
import type { Execution } from '../dispatch/execution.ts'
import type { LiveSession } from './live-session.ts'
import { KeyTaken, type Answer, type ClaimInHand, type Worked } from './requests.ts'
import type { Sessions } from './sessions.ts'

/** What `POST …/tools/{name}/calls` asks for (contract A11). */
export type DirectCall = {
  readonly tool: string
  readonly input: Json
  readonly environment?: string
  readonly deadlineMs?: number
  /** The W3C trace that the call belongs to. */
  readonly traceparent?: string | undefined
  /** When to answer: at the release, at the end, or at once with the sequence. */
  readonly wait: 'released' | 'finished' | 'started'
}

/** What a direct call answers. */
export type CallAnswer = {
  readonly sequence: number
  readonly finished: boolean
  readonly outcome?: ToolOutput
  readonly results: readonly ToolResult[]
  readonly events: readonly JournalRecord[]
}

export type DirectCallsParts = {
  readonly sessions: Sessions
  readonly dispatcher: Dispatcher
  readonly journal: Journal
  readonly limits: Limits
  readonly assertTakesWork: () => void
}

/** Calls of a session's tools by the application itself, without a model (contract A11). */
export class DirectCalls {
  readonly #parts: DirectCallsParts

  constructor(parts: DirectCallsParts) {
    this.#parts = parts
  }

  async call(tenant: TenantId, id: SessionId, call: DirectCall, inHand: ClaimInHand): Promise<Worked> {
    this.#parts.assertTakesWork()
    const execution = await this.#parts.sessions.use(tenant, id, (session) => this.#start(session, call, inHand))
    return this.#answer(execution, call.wait)
  }

  async #start(session: LiveSession, call: DirectCall, inHand: ClaimInHand): Promise<Execution> {
    const id = session.log.session
    const { status } = session.state
    if ((status !== 'idle' && status !== 'running') || session.closing === 'ending')
      throw new BrainError(
        'invalid_request',
        `Cannot call tools of session "${id}": it is ${session.closing ?? status}`,
      )
    const tool = toolsOf(session.configuration).find((candidate) => candidate.name === call.tool)
    if (tool === undefined) throw new BrainError('not_found', `Cannot find tool "${call.tool}" in session "${id}"`)
    const environment = call.environment ?? onlyPlacement(tool)
    const dispatched = await this.#parts.dispatcher.start(session, [
      {
        invocation: {
          call_id: callIdOf(inHand.claim),
          name: call.tool,
          environment,
          ...referring(session.state.environments.get(environment)?.reference.sequence),
          input: call.input,
        },
        ...(call.deadlineMs === undefined ? {} : { deadlineMs: call.deadlineMs }),
        origin: { kind: 'application' },
        budget: new Budget(this.#parts.limits),
        traceparent: call.traceparent,
        claim: inHand.claim,
        answerStatus: statusOf(call.wait),
      },
    ])
    if ('claimed' in dispatched) throw new KeyTaken(dispatched.claimed)
    inHand.made()
    const [execution] = dispatched.executions
    if (execution === undefined) throw new Error('a dispatch of one call answered none')
    return execution
  }

  async #answer(execution: Execution, wait: DirectCall['wait']): Promise<Worked> {
    if (wait === 'started') return { answer: { status: 202, body: String(execution.sequence) } }
    await (wait === 'finished' ? execution.ended : execution.released)
    const answer = answerOf(execution.sequence, execution.events, wait)
    return { answer: { status: 200, body: JSON.stringify(answer) }, settled: true }
  }

  /** The answer of a call that was answered before, from its records (design 3). */
  async rebuild(stored: StoredAnswer & { type: 'call' }, wait: DirectCall['wait']): Promise<Answer> {
    if (wait === 'started') return { status: 202, body: String(stored.sequence) }
    const events: JournalRecord[] = []
    for await (const records of readAll(this.#parts.journal, stored.session, stored.sequence)) {
      events.push(...records.filter((record) => isOfCall(record, stored.sequence)))
      if (events.some((record) => ENDS.includes(record.event_type))) break
    }
    if (events.length === 0)
      throw new BrainError('not_found', `Cannot repeat the answer: session "${stored.session}" was deleted`)
    return { status: 200, body: JSON.stringify(answerOf(stored.sequence, events, wait)) }
  }
}

/** A key is used for one call only, so that what is made of it names the call, whoever asks again. */
const callIdOf = ({ scope, key }: ClaimKey): string =>
  `direct_${createHash('sha256').update(`${scope}\0${key}`).digest('hex').slice(0, 24)}`

const statusOf = (wait: DirectCall['wait']): number => (wait === 'started' ? 202 : 200)

function isOfCall(record: JournalRecord, sequence: number): boolean {
  const { origin, event_type: type } = record
  if (dataOf(record, 'tool_call_failed')?.sequence === sequence) return true
  if (origin?.kind !== 'tool' || origin.sequence !== sequence) return false
  return !isReservedKind(type) || type.startsWith('tool_')
}

const ENDS = ['tool_call_ended', 'tool_call_failed']

/** What a caller is told of a call's records: those up to its release, or up to its end. */
export function answerOf(
  sequence: number,
  events: readonly JournalRecord[],
  wait: 'released' | 'finished',
): CallAnswer {
  const closing = wait === 'finished' ? ENDS : ['tool_call_returned', ...ENDS]
  const last = events.findIndex((record) => closing.includes(record.event_type))
  const shown = last < 0 ? events : events.slice(0, last + 1)
  const results = shown.flatMap((record) => dataOf(record, 'tool_result_emitted')?.result ?? [])
  const outcome = outcomeOf(shown)
  return {
    sequence,
    finished: outcome !== undefined,
    ...(outcome === undefined ? {} : { outcome }),
    results,
    events: shown,
  }
}

/** How the call ended; a call that a crash cut off reads as `unknown` (contract 3.7). */
function outcomeOf(events: readonly JournalRecord[]): ToolOutput | undefined {
  const last = events.at(-1)
  if (last === undefined) return undefined
  const failed = dataOf(last, 'tool_call_failed')
  if (failed !== undefined) return { status: 'unknown', message: failed.message }
  return dataOf(last, 'tool_call_ended')?.outcome
}

/** An environment that was made or replaced is named with its sequence (contract 7.3). */
const referring = (sequence = 1): { environment_sequence?: number } =>
  sequence === 1 ? {} : { environment_sequence: sequence }
