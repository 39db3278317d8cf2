import { BrainError } from '../kernel/errors.ts'
import { isIdentifier } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { Lock } from '../kernel/lock.ts'
import { toolsOf } from '../contract/tool-service.ts'
import type { Message, ModelRequest, ModelResult } from '../contract/message.ts'
import type { NewRecord, Origin, ToolInvocation } from '../journal/record.ts'
import { MARKER_KEY } from '../journal/session-state.ts'
import { PAGE_BOUNDS } from '../journal/session-log.ts'
import { Budget } from '../dispatch/budget.ts'
import { assertEventKind } from '../dispatch/event-kind.ts'
import type { Execution } from '../dispatch/execution.ts'
import type { EventPage, LoopHost, ToolReturn } from './agentloop.ts'
import { toolDefinitions } from './model-caller.ts'
import type { TurnSession } from './turn-session.ts'

/** What a record takes beside its data, about. */
const RECORD_BYTES = 256
/** Whatever comes of a call, its start and its end are recorded. */
const RECORDS_OF_CALL = 2

/** The services of one activation (contract 7.2, 7.3). Rejects everything once its signal is aborted or it was closed. */
export class Activation implements LoopHost {
  readonly #session: TurnSession
  readonly #over = new AbortController()
  readonly #signal: AbortSignal
  readonly #budget: Budget
  readonly #sequence: number
  readonly #transcripts = new Lock()
  readonly #traceparent: string | undefined
  #delivered: number

  /** @param sequence of `activation_started`. @param delivered last sequence of the batch that was handed over. */
  constructor(
    session: TurnSession,
    at: { sequence: number; delivered: number; signal: AbortSignal; traceparent?: string | undefined },
  ) {
    this.#session = session
    this.#signal = AbortSignal.any([at.signal, this.#over.signal])
    this.#budget = new Budget(session.limits)
    this.#sequence = at.sequence
    this.#delivered = at.delivered
    this.#traceparent = at.traceparent
  }

  /** Sequence up to which a successful end completes (contract 3.4). */
  get delivered(): number {
    return this.#delivered
  }

  /** A loop that is lost may have left a request behind: what that has begun is stopped. */
  close(): void {
    this.#over.abort(isOver())
  }

  #assertOpen(): void {
    if (this.#signal.aborted) throw isOver()
  }

  get #origin(): Origin {
    return { kind: 'agentloop', sequence: this.#sequence }
  }

  /** A loop may be a stranger's: what it has written is bounded, whatever it writes. */
  #charge(data: unknown, records = 1): void {
    this.#budget.chargeRecord(records * RECORD_BYTES + Buffer.byteLength(JSON.stringify(data)))
  }

  async #append(record: NewRecord): Promise<number> {
    if (record.kind !== 'event') this.#charge(record.data)
    const [committed] = await this.#session.log.commit({ records: [record] })
    return committed?.sequence ?? 0
  }

  async model(request: ModelRequest): Promise<ModelResult> {
    this.#assertOpen()
    const { configuration, state } = this.#session
    const { response_format: inherited } = configuration
    const { response_format: asked, messages, ...rest } = request
    const format = asked === undefined ? inherited : asked
    for (const { name } of request.tools ?? []) {
      if (!toolsOf(configuration).some((tool) => tool.name === name))
        throw new BrainError(
          'invalid_request',
          `Cannot offer tool "${name.slice(0, 128)}" to the model: this session has no such tool`,
        )
    }
    const whole = {
      ...rest,
      messages,
      system: request.system ?? configuration.system,
      tools: request.tools ?? toolDefinitions(configuration),
      ...(format === undefined || format === null ? {} : { response_format: format }),
    }
    const keep = commonPrefix(state.transcript, messages)
    this.#charge([rest, asked ?? null, messages.slice(keep)])
    return this.#session.models.call(whole, {
      budget: this.#budget,
      signal: this.#signal,
      transcript: { throughSequence: state.transcriptSequence, keep },
    })
  }

  async dispatch(invocations: readonly ToolInvocation[]): Promise<readonly ToolReturn[]> {
    this.#assertOpen()
    this.#charge(invocations, RECORDS_OF_CALL * invocations.length)
    const traceparent = this.#traceparent
    const requests = invocations.map((invocation) => ({ invocation, budget: this.#budget, traceparent }))
    const dispatched = await this.#session.dispatcher.start(this.#session, requests)
    if (!('executions' in dispatched)) throw new Error('a dispatch without a claim found one')
    if (this.#signal.aborted)
      await Promise.all(dispatched.executions.map((execution) => execution.interrupt('cancelled')))
    await Promise.all(dispatched.executions.map((execution) => execution.released))
    this.#assertOpen()
    return dispatched.executions.map(toReturn)
  }

  async events(after: number): Promise<EventPage> {
    this.#assertOpen()
    const page = await this.#session.log.page(after, PAGE_BOUNDS)
    if (after <= this.#delivered && page.nextCursor > this.#delivered) this.#delivered = page.nextCursor
    return { events: page.records, next_cursor: page.nextCursor }
  }

  /** One after another: each says what it keeps of the one before, and a loop elsewhere may ask for several at once. */
  setTranscript(messages: readonly Message[]): Promise<number> {
    return this.#transcripts.run(() => this.#setTranscript(messages))
  }

  async #setTranscript(messages: readonly Message[]): Promise<number> {
    this.#assertOpen()
    const { transcript } = this.#session.state
    const keep = commonPrefix(transcript, messages)
    if (keep === transcript.length && keep === messages.length) return this.#session.log.lastSequence
    return this.#append({ kind: 'transcript_delta', data: { keep, append: messages.slice(keep) } })
  }

  kvRead(key: string): Promise<Json | undefined> {
    this.#assertOpen()
    assertKey(key)
    return Promise.resolve(this.#session.state.kv.get(key))
  }

  async kvPut(key: string, value: Json): Promise<number> {
    this.#assertOpen()
    assertKey(key)
    if (JSON.stringify(this.#session.state.kv.get(key)) === JSON.stringify(value)) return this.#session.log.lastSequence
    return this.#append({ kind: 'kv_set', data: { key, value } })
  }

  async kvDelete(key: string): Promise<number> {
    this.#assertOpen()
    assertKey(key)
    if (!this.#session.state.kv.has(key)) return this.#session.log.lastSequence
    return this.#append({ kind: 'kv_delete', data: { key } })
  }

  async emit(kind: string, data: Json): Promise<number> {
    this.#assertOpen()
    assertEventKind(kind)
    const bytes = Buffer.byteLength(kind) + Buffer.byteLength(JSON.stringify(data))
    const record: NewRecord = { kind: 'event', event_type: kind, data, origin: this.#origin }
    return this.#budget.emit(bytes, () => this.#append(record))
  }

  async environments(requestText: string): Promise<string> {
    this.#assertOpen()
    const { agentloop } = this.#session.configuration
    const { environments: grants = [], environment = '' } = agentloop
    const authority = { kind: 'granted', grants, within: environment } as const
    const asked = { text: requestText, budget: this.#budget }
    const answer = await this.#session.dispatcher.environments.control.handleText(this.#session, authority, asked)
    this.#assertOpen()
    return answer
  }

  telemetry(record: Json): void {
    this.#session.logger.debug({ telemetry: record, session: this.#session.log.session }, 'loop telemetry')
  }
}

const isOver = (): BrainError => new BrainError('cancelled', 'Cannot go on: this activation is over')

function assertKey(key: string): void {
  if (key === MARKER_KEY || !isIdentifier(key))
    throw new BrainError(
      'invalid_request',
      `Cannot use kv key ${JSON.stringify(key.slice(0, 128))}: a key is an identifier, and "${MARKER_KEY}" is reserved`,
    )
}

/** What a loop is told of a call that has released (contract 7.3). */
function toReturn(execution: Execution): ToolReturn {
  return {
    call_id: execution.callId,
    sequence: execution.sequence,
    events: [...execution.events],
    finished: execution.hasEnded,
  }
}

/** How many messages two transcripts share from the start. */
function commonPrefix(saved: readonly Message[], next: readonly Message[]): number {
  const most = Math.min(saved.length, next.length)
  for (let i = 0; i < most; i++)
    if (saved[i] !== next[i] && JSON.stringify(saved[i]) !== JSON.stringify(next[i])) return i
  return most
}
