import { createHash, randomBytes } from 'node:crypto'
import { BrainError } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { Limits } from '../contract/limits.ts'
import { toolsOf } from '../contract/tool-service.ts'
import type { ToolOutput, ToolResult } from '../contract/outcome.ts'
import type { Claim, ClaimKey, StoredAnswer } from '../journal/journal.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import { readAll } from '../journal/session-log.ts'
import type { Journal } from '../journal/journal.ts'
import { Budget } from '../dispatch/budget.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { onlyPlacement } from '../dispatch/dispatcher.ts'
import type { Execution } from '../dispatch/execution.ts'
import type { ActivationTool } from '../turn/agentloop.ts'
import { activationTools } from '../turn/activation-tools.ts'
import { CallWatcher, type Happening } from './call-watcher.ts'
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

/** A direct call whose caller stays with it, instead of a key to ask for its answer again. */
export type AttendedCall = {
  readonly sequence: number
  /** What has come of it as soon as that is something to tell: at its release, if it has a result by then, or at its end. */
  readonly answer: Promise<CallAnswer>
  /** Resolves when its log is kept. */
  readonly logged: Promise<void>
  /** Ends this call and no other, as cancelled; harmless when it has ended. */
  interrupt(): Promise<void>
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
    const { claim } = inHand
    const started = { callId: callIdOf(claim), claim, answerStatus: statusOf(call.wait) }
    const execution = await this.#parts.sessions.use(tenant, id, async (session) => {
      const sent = await this.#start(session, call, started)
      inHand.made()
      return sent
    })
    return this.#answer(execution, call.wait)
  }

  /**
   * Makes a call and tells `onHappening` what the tool shows of it, until there is an answer.
   * @throws BrainError as {@link call}, before anything was sent
   */
  async attend(
    tenant: TenantId,
    id: SessionId,
    call: Omit<DirectCall, 'wait'>,
    onHappening: (happening: Happening) => void,
  ): Promise<AttendedCall> {
    this.#parts.assertTakesWork()
    const callId = `direct_${randomBytes(12).toString('hex')}`
    return this.#parts.sessions.use(tenant, id, async (session) => {
      // Before the call is sent: what is shown live only is shown once.
      const unfollow = session.log.follow(new CallWatcher(session.log.session, callId, onHappening))
      try {
        const execution = await this.#start(session, call, { callId })
        const answer = attended(execution).finally(unfollow)
        const interrupt = (): Promise<void> => execution.interrupt('cancelled')
        return { sequence: execution.sequence, answer, logged: execution.logged, interrupt }
      } catch (error) {
        unfollow()
        throw error
      }
    })
  }

  /**
   * The tools that can be called now, each with the environments where that is possible.
   * @throws BrainError `not_found`, `invalid_request` for a session that takes no calls
   */
  tools(tenant: TenantId, id: SessionId): Promise<readonly ActivationTool[]> {
    return this.#parts.sessions.use(tenant, id, async (session) => {
      assertTakesCalls(session)
      return activationTools(session)
    })
  }

  async #start(session: LiveSession, call: Omit<DirectCall, 'wait'>, started: Started): Promise<Execution> {
    const id = session.log.session
    assertTakesCalls(session)
    const tool = toolsOf(session.configuration).find((candidate) => candidate.name === call.tool)
    if (tool === undefined) throw new BrainError('not_found', `Cannot find tool "${call.tool}" in session "${id}"`)
    const environment = call.environment ?? onlyPlacement(tool)
    const dispatched = await this.#parts.dispatcher.start(session, [
      {
        invocation: {
          call_id: started.callId,
          name: call.tool,
          environment,
          ...referring(session.state.environments.get(environment)?.reference.sequence),
          input: call.input,
        },
        ...(call.deadlineMs === undefined ? {} : { deadlineMs: call.deadlineMs }),
        origin: { kind: 'application' },
        budget: new Budget(this.#parts.limits),
        traceparent: call.traceparent,
        ...(started.claim === undefined ? {} : { claim: started.claim }),
        ...(started.answerStatus === undefined ? {} : { answerStatus: started.answerStatus }),
      },
    ])
    if ('claimed' in dispatched) throw new KeyTaken(dispatched.claimed)
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

/** What names a call that is started, and the key that it claims if it has one. */
type Started = { readonly callId: string; readonly claim?: Claim; readonly answerStatus?: number }

function assertTakesCalls({ log, state: { status }, closing }: LiveSession): void {
  const isOpen = status === 'idle' || status === 'running'
  if (isOpen && closing !== 'ending') return
  const is = isOpen ? 'ending' : status
  throw new BrainError('invalid_request', `Cannot call tools of session "${log.session}": it is ${is}`)
}

/** A call that goes on without having said anything is waited for: nobody asks again. */
async function attended(execution: Execution): Promise<CallAnswer> {
  await execution.released
  const released = answerOf(execution.sequence, execution.events, 'released')
  if (released.finished || released.results.length > 0) return released
  await execution.ended
  return answerOf(execution.sequence, execution.events, 'finished')
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
