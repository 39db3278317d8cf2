import { createHash } from 'node:crypto'
import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { Lock } from '../kernel/lock.ts'
import { setLongTimeout } from '../kernel/long-timeout.ts'
import type { Json } from '../kernel/json.ts'
import type { UserInput } from '../contract/message.ts'
import type { Append, Claim, Claimed } from '../journal/journal.ts'
import type { Failure, JournalRecord, NewRecord } from '../journal/record.ts'
import { MARKER_KEY } from '../journal/session-state.ts'
import { PAGE_BOUNDS } from '../journal/session-log.ts'
import { ModelFailure } from '../model/model-provider.ts'
import { Activation } from './activation.ts'
import { activationTools } from './activation-tools.ts'
import { AgentloopFailure, type TurnInput } from './agentloop.ts'
import type { TurnSession } from './turn-session.ts'
import { WakeWatcher } from './wake-watcher.ts'

/** Why a turn was stopped from outside. */
type Stop = { readonly code: 'cancelled' | 'timeout' | 'interrupted'; readonly message: string }

type Trigger = { readonly input: UserInput } | { readonly trigger: 'events' }

type Opened = { readonly sequence: number } | { readonly claimed: Claimed }

export type StartedTurn = { readonly sequence: number; readonly done: Promise<void> }

export type TurnHooks = {
  /** Records to write before `turn_started`, such as `session_resumed`. */
  readonly opening: () => readonly NewRecord[]
  /** Called after turns that nobody waits for: those that later records started. */
  readonly onRest: () => void
  /** Called when a turn has come to its end, well or badly. */
  readonly onTurnOver: (turn: number) => void
  /** Called when {@link TurnRunner.isBusy} may have changed, and after every record. */
  readonly onChange: () => void
}

/** Conducts the turns of one session, one activation at a time (contract 3.4). */
export class TurnRunner {
  readonly #session: TurnSession
  readonly #lock = new Lock()
  readonly #wakes: WakeWatcher
  readonly #hooks: TurnHooks
  #stop: AbortController | undefined
  /** Of the message that the running turn answers. */
  #traceparent: string | undefined
  #current: Promise<unknown> = Promise.resolve()

  constructor(session: TurnSession, hooks: TurnHooks) {
    this.#session = session
    this.#hooks = hooks
    this.#wakes = new WakeWatcher(session.state, () => void this.#wake())
    session.log.follow({
      records: (records) => {
        this.#wakes.records(records)
        hooks.onChange()
      },
      live: () => undefined,
    })
  }

  /** Whether a turn runs, waits, or is about to be started by noted records. */
  get isBusy(): boolean {
    return this.#lock.isBusy || this.#wakes.isPending
  }

  /** Whether a turn runs or waits for its turn. */
  get isRunning(): boolean {
    return this.#lock.isBusy
  }

  /**
   * Starts a turn for a user message, after any that is running.
   * @returns as soon as `turn_started` is durable, or what holds the claimed key.
   * @throws BrainError `conflict`, `invalid_request`, `overloaded` when the session takes no messages; nothing was
   *   written then.
   */
  start(
    input: UserInput,
    claim: Claim | undefined,
    traceparent?: string,
  ): Promise<StartedTurn | { readonly claimed: Claimed }> {
    const started = Promise.withResolvers<StartedTurn | { readonly claimed: Claimed }>()
    const done = Promise.withResolvers<void>()
    done.promise.catch((error: unknown) => started.reject(error))
    const conducting = this.#lock.run(async () => {
      this.#traceparent = traceparent
      const turn = this.#turn({ input }, claim, (opened) =>
        started.resolve('claimed' in opened ? opened : { sequence: opened.sequence, done: done.promise }),
      )
      await turn.then(done.resolve, done.reject)
      this.#traceparent = undefined
      // Nobody waits for these. Also when no turn came of it: records that were noted meanwhile found the lock taken.
      if (await this.#drainWakes()) this.#hooks.onRest()
    })
    void conducting.finally(this.#hooks.onChange)
    return started.promise
  }

  /** Stops the turn that runs or is being opened, and drops noted wakes. Open calls are the caller's to interrupt. */
  interrupt(stop: Stop): void {
    this.#wakes.drop()
    this.#stop?.abort(stop)
    this.#hooks.onChange()
  }

  /** Resolves when the turn that runs now is over; turns that wait for it are not waited for. */
  async stopped(): Promise<void> {
    await this.#current
  }

  /** Resolves when no turn runs or waits. */
  settled(): Promise<void> {
    return this.#lock.run(async () => undefined).finally(this.#hooks.onChange)
  }

  /** Looks whether records that were noted before the session took any turns are to start one. */
  opened(): void {
    if (this.#wakes.isDue) void this.#wake()
  }

  async #wake(): Promise<void> {
    if (this.#lock.isBusy) return // looked at again by whoever holds it
    await this.#lock.run(() => this.#drainWakes())
    this.#hooks.onRest()
    this.#hooks.onChange()
  }

  /** @returns whether there was one */
  async #drainWakes(): Promise<boolean> {
    let isWoken = false
    const session = this.#session
    const { state, logger, log } = session
    while (state.status === 'idle' && session.closing === undefined && this.#wakes.isDue && !this.#lock.isAwaited) {
      isWoken = true
      try {
        await this.#turn({ trigger: 'events' }, undefined, () => undefined)
      } catch (error) {
        logger.error({ session: log.session, error: messageOf(error) }, 'cannot wake the session')
        if (error instanceof BrainError && error.retryable) this.#wakes.retry()
        else this.#wakes.drop()
        return isWoken
      }
    }
    return isWoken
  }

  /** One turn, which can be stopped from before its first record on. */
  async #turn(trigger: Trigger, claim: Claim | undefined, onOpened: (opened: Opened) => void): Promise<void> {
    const stop = (this.#stop = new AbortController())
    const over = Promise.withResolvers<void>()
    this.#current = over.promise
    try {
      const opened = await this.#open(trigger, claim)
      onOpened(opened)
      if (!('sequence' in opened)) return
      await this.#activate(trigger, opened.sequence, stop)
      this.#hooks.onTurnOver(opened.sequence)
    } finally {
      this.#stop = undefined
      over.resolve()
    }
  }

  async #open(data: Trigger, claim: Claim | undefined): Promise<Opened> {
    assertTakesMessages(this.#session)
    const append: Omit<Append, 'session'> = {
      records: [...this.#hooks.opening(), { kind: 'turn_started', data }],
      status: 'running',
      ...(claim === undefined ? {} : { claim }),
    }
    const appended = await this.#session.log.append(append)
    if (!appended.committed) return { claimed: appended.claimed }
    return { sequence: appended.records.at(-1)?.sequence ?? 0 }
  }

  async #activate(trigger: Trigger, turn: number, stop: AbortController): Promise<void> {
    const { log, limits } = this.#session
    const late: Stop = {
      code: 'timeout',
      message: `The turn took longer than ${limits.turnSecs} s (BRAIN_MAX_TURN_SECS)`,
    }
    const timer = limits.turnSecs === 0 ? undefined : setLongTimeout(() => stop.abort(late), limits.turnSecs * 1000)
    try {
      const { result, delivered } = await this.#runLoop(trigger, stop.signal)
      const ended: NewRecord[] = [
        { kind: 'activation_ended', data: {} },
        { kind: 'turn_ended', data: { result, events_through: delivered } },
      ]
      await log.commit({ records: ended, status: 'idle' })
    } catch (error) {
      await this.#fail(stop.signal.aborted ? (stop.signal.reason as Stop) : error, turn)
    } finally {
      timer?.clear()
    }
  }

  async #runLoop(trigger: Trigger, signal: AbortSignal): Promise<{ result: Json; delivered: number }> {
    const { tenant, log, state, loop } = this.#session
    const since = state.marker
    const batch = await log.page(since, PAGE_BOUNDS)
    const [started] = await log.commit({ records: [{ kind: 'activation_started', data: { since } }] })
    const delivered = batch.records.at(-1)?.sequence ?? since
    if (started === undefined) throw new Error('an append answered no record')
    const { sequence } = started
    const activation = new Activation(this.#session, { sequence, delivered, signal, traceparent: this.#traceparent })
    try {
      const stopped = rejectOnAbort(signal)
      const input = this.#turnInput(trigger, batch.records, started)
      const { operations } = this.#session.dispatcher.environments
      const running = loop.run(input, activation, {
        tenant,
        session: log.session,
        sequence,
        signal,
        controllerServices: (place) => operations.controllerServices(this.#session, place, sequence),
      })
      running.catch(() => undefined)
      const { result } = await Promise.race([running, stopped.promise]).finally(stopped.release)
      await this.#session.interrupting
      signal.throwIfAborted()
      return { result: result ?? null, delivered: activation.delivered }
    } finally {
      activation.close()
    }
  }

  #turnInput(trigger: Trigger, events: readonly JournalRecord[], started: JournalRecord): TurnInput {
    const { configuration, state, log } = this.#session
    return {
      ...('input' in trigger ? { input: trigger.input } : {}),
      transcript: state.transcript,
      kv: { ...Object.fromEntries(state.kv), [MARKER_KEY]: state.marker },
      events,
      configuration: configuration.agentloop.configuration,
      system: configuration.system,
      tools: activationTools(this.#session),
      runtime: {
        logical_time_ms: started.recorded_at_ms,
        deterministic_seed: [...createHash('sha256').update(`${log.session} ${started.sequence}`).digest()],
      },
    }
  }

  /** A failed activation interrupts every open call of the session and drops its wakes (contract 3.4). */
  async #fail(cause: unknown, turn: number): Promise<void> {
    const { log, state, logger } = this.#session
    const failure = toFailure(cause)
    if (failure.code === 'internal')
      logger.error({ session: log.session, turn, error: messageOf(cause) }, 'a turn failed')
    await this.#session.interruptCalls('cancelled')
    const records: NewRecord[] = [{ kind: 'turn_failed', data: failure }]
    if (state.activation !== undefined) records.unshift({ kind: 'activation_failed', data: failure })
    await log.insist({ records, status: 'idle' })
  }
}

function assertTakesMessages({ state, log, closing }: TurnSession): void {
  if (closing === 'draining') throw new BrainError('overloaded', 'Cannot take new work: the server is stopping')
  const cannot = `Cannot send to session "${log.session}"`
  if (closing === 'ending') throw new BrainError('invalid_request', `${cannot}: it is ending`)
  if (state.status === 'idle') return
  const code = state.status === 'running' || state.status === 'creating' ? 'conflict' : 'invalid_request'
  throw new BrainError(code, `${cannot}: it is ${state.status}`)
}

function rejectOnAbort(signal: AbortSignal): { promise: Promise<never>; release: () => void } {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => undefined)
  const onAbort = (): void => reject(signal.reason as Error)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return { promise, release: () => signal.removeEventListener('abort', onAbort) }
}

function isStop(cause: unknown): cause is Stop {
  return (
    typeof cause === 'object' && cause !== null && !(cause instanceof Error) && 'code' in cause && 'message' in cause
  )
}

function toFailure(cause: unknown): Failure {
  if (isStop(cause)) return { ...cause, retryable: false, ambiguous: false }
  if (cause instanceof ModelFailure || cause instanceof AgentloopFailure) {
    const { code, retryable, ambiguous } = cause
    return { code, message: clip(cause.message), retryable, ambiguous }
  }
  if (cause instanceof BrainError)
    return { code: cause.code, message: clip(cause.message), retryable: cause.retryable, ambiguous: false }
  return { code: 'agentloop_failed', message: clip(messageOf(cause)), retryable: false, ambiguous: false }
}
