import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { setLongTimeout, type LongTimeout } from '../kernel/long-timeout.ts'
import { within } from '../kernel/within.ts'
import { type Json, parseJson } from '../kernel/json.ts'
import { errorOutcome, looksLikeOutcome, type ToolOutput } from '../contract/outcome.ts'
import type { JournalRecord, NewRecord } from '../journal/record.ts'
import { activityIdOf, PROGRESS_FRAME } from './call-activity.ts'
import { CallRecords, cancelEnd } from './call-records.ts'
import { assertEventKind } from './event-kind.ts'
import type { ExecutionContext } from './execution-context.ts'
import { CallNotes } from './call-log.ts'
import { parseOutput, readOutput, shortOf } from './tool-output.ts'
import type { CallNote, CallServices, OnFault, Receipt, RunningCall } from './tool-binding.ts'

const alreadyReturned = (): BrainError =>
  new BrainError('invalid_request', 'Cannot return: this call has already returned')

/** How long an executor may take to acknowledge a cancellation (contract 3.3). */
const CANCEL_MS = 5000

/**
 * One tool call between its start record and its end record (contract 3.3).
 *
 * E1  Exactly one end record is written, for the first terminal cause; whatever comes later is refused.
 * E2  A terminal cause is decided when it arrives, before its append is durable, so two cannot be accepted.
 * E3  What a tool is answered names a record that is durable.
 * E4  If the storage refuses an end that the tool asked for, the call is open again, and an interruption that came
 *     meanwhile takes its place; an end that Brain decided is tried again until it is written.
 */
export class Execution implements CallServices {
  readonly sequence: number
  readonly callId: string
  /** The environment's name. */
  readonly environment: string
  readonly #context: ExecutionContext
  readonly #records: CallRecords
  readonly #notes = new CallNotes()
  readonly #events: JournalRecord[] = []
  /** Made with the first model call: most tools make none, and aborting costs a stack trace. */
  #modelCalls: AbortController | undefined
  readonly #released = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  #state: 'open' | 'closing' | 'ended' = 'open'
  #returned = false
  #isReleased = false
  #running: RunningCall | undefined
  #logged: Promise<void> = Promise.resolve()
  #timer: LongTimeout | undefined
  #interruption: Promise<void> | undefined
  /** The end that the tool asked for, while it is written. */
  #asked: Promise<readonly JournalRecord[]> | undefined

  constructor(context: ExecutionContext) {
    this.#context = context
    this.sequence = context.sequence
    this.callId = context.callId
    this.environment = context.environment
    this.#records = new CallRecords(context.sequence, context.callId)
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }
  get hasEnded(): boolean {
    return this.#state === 'ended'
  }
  /** Resolves at the first of return, finish and interruption (contract 3.3). */
  get released(): Promise<void> {
    return this.#released.promise
  }
  get ended(): Promise<void> {
    return this.#ended.promise
  }
  /** Resolves when the executor is done with a call that was sent, which may be after its end, and its log is kept. */
  get logged(): Promise<void> {
    return this.#logged
  }
  /** The call's own records so far: results, extension events, return and end (contract 7.3). */
  get events(): readonly JournalRecord[] {
    return this.#events
  }

  /** Goes on with a call that was sent: follows its receipt and its deadline. */
  run(running: RunningCall, deadlineInMs: number | undefined): void {
    this.#running = running
    this.#logged = running.receipt.then((receipt) => this.#received(receipt))
    this.#follow('a receipt', this.#logged)
    if (deadlineInMs === undefined || this.#state !== 'open') return
    this.#timer = setLongTimeout(() => this.#follow('a deadline', this.#expire()), deadlineInMs)
  }

  #expire(): Promise<unknown> {
    const receipt = this.#state === 'open' ? this.#running?.unsent?.() : undefined
    return receipt === undefined ? this.interrupt('timeout') : this.#takeReceipt(receipt)
  }

  /** Work that nobody waits for: what goes wrong with it must neither be lost nor end the server. */
  #follow(what: string, work: Promise<unknown>): void {
    const { logger, log, tool } = this.#context
    const facts = { session: log.session, sequence: this.sequence, tool }
    work.catch((error: unknown) =>
      logger.error({ ...facts, error: messageOf(error) }, `cannot handle ${what} of a call`),
    )
  }

  #assertOpen(): void {
    if (this.#state !== 'open')
      throw new BrainError('invalid_request', 'Cannot use this call any more: the execution is finished')
  }

  async #append(
    records: readonly NewRecord[],
    releases: boolean,
    how: 'commit' | 'insist' = 'commit',
  ): Promise<JournalRecord[]> {
    const settle = releases && !this.#isReleased ? this.#context.settle : undefined
    const committed = await this.#context.log[how]({ records, ...(settle === undefined ? {} : { settle }) })
    this.#events.push(...committed.filter((record) => record.event_type !== 'tool_cancel_started'))
    if (releases) {
      this.#isReleased = true
      this.#released.resolve()
    }
    return [...committed]
  }

  async emit(eventType: string, payloadText: string): Promise<number> {
    this.#assertOpen()
    assertEventKind(eventType)
    const data = parseJson(payloadText, 'event payload')
    const record: NewRecord = { kind: 'event', event_type: eventType, data, origin: this.#records.origin }
    return this.#emit(Buffer.byteLength(eventType) + Buffer.byteLength(payloadText), record)
  }

  async emitResult(outcomeText: string): Promise<number> {
    this.#assertOpen()
    const output = await readOutput(parseJson(outcomeText, 'outcome'), this.#context)
    this.#assertOpen()
    return this.#emit(Buffer.byteLength(outcomeText), this.#records.result(output))
  }

  async #emit(bytes: number, record: NewRecord): Promise<number> {
    const [committed] = await this.#context.budget.emit(bytes, () => this.#append([record], false))
    return committed?.sequence ?? 0
  }

  async returned(outcomeText: string | undefined, onFault: OnFault = 'end'): Promise<number> {
    this.#assertOpen()
    if (this.#returned) throw alreadyReturned()
    if (outcomeText === undefined) return this.#return([])
    const output = await this.#readLastOutput(outcomeText, onFault)
    try {
      return await this.#context.budget.emit(Buffer.byteLength(outcomeText), () =>
        output.status === 'ok'
          ? this.#return([this.#records.result(output)])
          : this.#closeAsAsked(this.#records.closing(output)),
      )
    } catch (error) {
      throw error instanceof BrainError && error.code === 'emit_limit' ? await this.#closeFor(error) : error
    }
  }

  async finish(outcomeText: string | undefined, onFault: OnFault = 'end'): Promise<number> {
    this.#assertOpen()
    if (outcomeText === undefined) return this.#closeAsAsked([this.#records.end({ status: 'ok', value: null })])
    const output = await this.#readLastOutput(outcomeText, onFault)
    const close = (): Promise<number> => this.#closeAsAsked(this.#records.closing(output))
    if (output.status === 'ok') return this.#context.budget.emit(Buffer.byteLength(outcomeText), close)
    const closeShortly = (): Promise<number> => this.#closeAsAsked([this.#records.end(shortOf(output))])
    return this.#context.budget.emit(Buffer.byteLength(outcomeText), close, closeShortly)
  }

  async model(requestText: string): Promise<string> {
    this.#assertOpen()
    const { sequence, budget } = this.#context
    this.#modelCalls ??= new AbortController()
    return this.#context.model.call(requestText, { sequence, budget, signal: this.#modelCalls.signal })
  }

  async environments(requestText: string): Promise<string> {
    this.#assertOpen()
    return this.#context.environments(requestText)
  }

  progress(data: Json): void {
    const { log } = this.#context
    log.publish({ type: PROGRESS_FRAME, data: { call_id: activityIdOf(log.session, this.sequence), data } })
  }

  note(note: CallNote): void {
    this.#notes.add(note)
    const { logger, log, tool } = this.#context
    const facts = { session: log.session, sequence: this.sequence, tool }
    if (note.type === 'warning') logger.warn({ ...facts, warning: note.message }, 'a tool warns')
    else if (note.type === 'telemetry') logger.info({ ...facts, telemetry: clip(note.record) }, 'telemetry of a tool')
  }

  async #return(records: readonly NewRecord[], how: 'commit' | 'insist' = 'commit'): Promise<number> {
    this.#assertOpen()
    if (this.#returned) throw alreadyReturned()
    this.#returned = true
    try {
      const committed = await this.#append([...records, this.#records.returned()], true, how)
      return committed.at(-1)?.sequence ?? 0
    } catch (error) {
      this.#returned = false
      throw error
    }
  }

  /** Like {@link readOutput} for what a tool returns or finishes with: a fault ends the call (contract A17). */
  async #readLastOutput(outcomeText: string, onFault: OnFault): Promise<ToolOutput> {
    try {
      const output = await readOutput(parseOutput(outcomeText, this.#context), this.#context)
      this.#assertOpen()
      return output
    } catch (error) {
      if (onFault === 'refuse' || !(error instanceof BrainError) || error.code !== 'invalid_output') throw error
      throw await this.#closeFor(error)
    }
  }

  /** Ends the call for a refusal that is final, and gives the refusal back for whoever asked. */
  async #closeFor(error: unknown): Promise<unknown> {
    if (error instanceof BrainError && this.#state === 'open')
      await this.#close([this.#records.end(errorOutcome(error.code, clip(error.message)))])
    return error
  }

  /** Writes an end that the tool asked for. */
  async #closeAsAsked(records: readonly NewRecord[]): Promise<number> {
    this.#assertOpen()
    this.#state = 'closing'
    this.#modelCalls?.abort()
    this.#asked = this.#append(records, true)
    try {
      const committed = await this.#asked
      this.#markEnded()
      return committed.at(-1)?.sequence ?? 0
    } catch (error) {
      this.#state = 'open'
      this.#modelCalls = undefined // those were aborted; the open call may make others
      throw error
    }
  }

  /** Writes an end that Brain decided; the storage's trouble must not leave a call without one (E4). */
  async #close(records: readonly NewRecord[]): Promise<readonly JournalRecord[]> {
    this.#state = 'closing'
    this.#modelCalls?.abort()
    const committed = await this.#append(records, true, 'insist')
    this.#markEnded()
    return committed
  }

  #markEnded(): void {
    this.#state = 'ended'
    this.#timer?.clear()
    this.#ended.resolve()
    if (this.#interruption === undefined) this.#context.onEnded()
  }

  /** Ends a call that is not to be sent, or that could not be. */
  refuse(code: string, message: string, details?: Json): void {
    if (this.#state === 'open')
      this.#follow('a refusal', this.#close([this.#records.end(errorOutcome(code, clip(message), details))]))
  }

  /** Deadline or cancellation. @returns when the executor was told and that is on record. */
  interrupt(reason: 'timeout' | 'cancelled'): Promise<void> {
    if (this.#state === 'open') {
      this.#interruption = this.#interrupt(reason)
      this.#follow('an interruption', this.#interruption)
    } else if (this.#state === 'closing' && this.#interruption === undefined && this.#asked !== undefined)
      return this.#asked.then(
        () => undefined,
        () => this.interrupt(reason),
      )
    return this.#interruption ?? Promise.resolve()
  }

  /** The end first, then the executor is told (contract 3.3). */
  async #interrupt(reason: 'timeout' | 'cancelled'): Promise<void> {
    const { tool, environment, log } = this.#context
    const started = { target_sequence: this.sequence, tool, environment }
    const committed = await this.#close([
      { kind: 'tool_cancel_started', data: started },
      this.#records.end({ status: reason }),
    ])
    const sequence = committed[0]?.sequence ?? 0
    let told = this.#running === undefined
    await within(this.#running?.cancel(reason, sequence).then(() => (told = true)) ?? Promise.resolve(), CANCEL_MS)
    const doubt = `The executor was not told: it is gone, or took nothing for ${CANCEL_MS} ms`
    await log.insist({ records: [cancelEnd(sequence, told ? undefined : doubt)] })
    this.#context.onEnded()
  }

  async #received(receipt: Receipt): Promise<void> {
    const message = 'run has returned, but the call is open: call `finish` before returning'
    if (this.#state === 'open') await this.#takeReceipt(receipt)
    if (this.#state === 'open') this.note({ type: 'warning', message: `Tool "${this.#context.tool}": ${message}` })
    const { log } = this.#notes
    if (log !== undefined) await this.#context.callLogs.write(this.#context.log.session, this.sequence, log)
  }

  #takeReceipt(receipt: Receipt): Promise<unknown> {
    switch (receipt.type) {
      case 'result':
        return this.#takeResult(receipt.text)
      case 'failure':
        return this.#closePaid({ status: 'error', error: receipt.error })
      case 'stopped':
        return this.interrupt(receipt.reason)
      case 'unknown':
        return this.#close([this.#records.end({ status: 'unknown', message: clip(receipt.message) })])
      default:
        return receipt satisfies never
    }
  }

  /** What a failure says besides may be as large as an answer: it is paid for, or left out. */
  #closePaid(failure: Exclude<ToolOutput, { status: 'ok' }>): Promise<unknown> {
    const closing = (outcome: ToolOutput) => () => this.#close([this.#records.end(outcome)])
    const bytes = Buffer.byteLength(JSON.stringify(failure))
    return this.#context.budget.emit(bytes, closing(failure), closing(shortOf(failure)))
  }

  /** A value that was given back: the return, or one more result when the tool has returned before (contract 3.3). */
  async #takeResult(text: string): Promise<unknown> {
    if (text === '') return this.#returned ? undefined : this.#return([], 'insist')
    try {
      const value = parseOutput(text, this.#context)
      const output = await readOutput(looksLikeOutcome(value) ? value : { status: 'ok', value }, this.#context)
      if (this.#state !== 'open') return undefined
      return await this.#context.budget.emit(Buffer.byteLength(text), () => this.#writeResult(output))
    } catch (error) {
      return this.#closeFor(error)
    }
  }

  #writeResult(output: ToolOutput): Promise<unknown> {
    if (output.status !== 'ok') return this.#close(this.#records.closing(output))
    const records = [this.#records.result(output)]
    return this.#returned ? this.#append(records, false, 'insist') : this.#return(records, 'insist')
  }
}
