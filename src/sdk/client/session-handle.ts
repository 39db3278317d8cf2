import { BrainError } from '../brain-error.ts'
import { canonicalText } from '../json-value.ts'
import type { Json } from '../../kernel/json.ts'
import type { UserInput } from '../../contract/message.ts'
import { environmentServices, type EnvironmentServices } from '../host/environment-services.ts'
import type { Host } from '../host/host.ts'
import { membersOf } from '../strict-members.ts'
import { liveEvents, pagedEvents, turnOutcome } from './session-reader.ts'
import {
  sessionState,
  type LiveEvent,
  type SessionEvent,
  type SessionState,
  type SessionTranscript,
  type TurnOutcome,
} from './session-event.ts'
import { toolCallAnswer, type ToolCallAnswer } from './tool-call-answer.ts'
import type { Transport } from './transport.ts'

/** An operation that is done once, however often it is asked for with the same key. A new key when absent. */
export type KeyOptions = { readonly idempotencyKey?: string }

/** What `send` takes beside its message: the signal interrupts the turn (contract 9.1). */
export type SendOptions = KeyOptions & { readonly signal?: AbortSignal }

/** How {@link SessionHandle.call} calls a tool. */
export type CallOptions = KeyOptions & {
  /** Where the tool runs: needed only for one that is placed in several environments. */
  readonly environment?: string
  /** Milliseconds that the call may take, from 1; the server's own limit holds as well, and alone when absent. */
  readonly deadlineMs?: number
  /** Until when to wait: `released`, the default, until the tool has returned or finished; `finished`; or not at all. */
  readonly wait?: 'released' | 'finished' | 'started'
  /** Ends the waiting with its reason. The call goes on: {@link SessionHandle.interrupt} cancels it. */
  readonly signal?: AbortSignal
}

const CALL_OPTIONS = ['environment', 'deadlineMs', 'wait', 'signal', 'idempotencyKey']

const WAITS: readonly unknown[] = ['released', 'finished', 'started']

const FOLLOW_AGAIN_MS = 250

/**
 * One session on the server. Requests that fail reject with BrainError; after `brain.close()` with an AbortError.
 * A handle holds nothing open: drop it, and take the session up again with `sessions.get`.
 */
export class SessionHandle {
  readonly id: string
  /**
   * The environments of the session, over which the application has every right. Each call goes out once, with a key of its
   * own; rejects with BrainError as the server refuses it: `not_found` for a reference that is not current any more,
   * `conflict` while an environment is at work that would be replaced.
   */
  readonly environments: EnvironmentServices
  readonly #transport: Transport
  readonly #host: Host
  #state: SessionState

  constructor(transport: Transport, host: Host, state: SessionState) {
    this.id = state.id
    this.#transport = transport
    this.#host = host
    this.#state = state
    this.environments = environmentServices((request) =>
      host.ready(this.id, () =>
        transport.json('POST', `${this.#path}/environments`, { body: request, key: crypto.randomUUID() }),
      ),
    )
  }

  /** As the last answer to create, get, send or end had it. */
  get state(): SessionState {
    return this.#state
  }

  get #path(): string {
    return `/v1/sessions/${encodeURIComponent(this.id)}`
  }

  /**
   * Sends a message and waits until its turn is over, also when it failed: the journal and `outcome` say which.
   *
   * @param options `signal`: aborted before, nothing is sent; aborted later, the turn is interrupted once it has started,
   * and the answer is awaited all the same
   */
  async send(input: string | UserInput, { signal, idempotencyKey }: SendOptions = {}): Promise<SessionState> {
    signal?.throwIfAborted()
    const body = { input: inputOf(input) }
    return this.#host.ready(this.id, async () => {
      const before = signal && sessionState(await this.#transport.json('GET', this.#path)).lastSequence
      signal?.throwIfAborted()
      const answered = new AbortController()
      const key = idempotencyKey ?? crypto.randomUUID()
      const sent = this.#transport.json('POST', `${this.#path}/messages`, { body, key })
      const abort = (): void => void this.#interruptTurn(body.input, before ?? 0, answered.signal).catch(() => {})
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return (this.#state = sessionState(await sent))
      } finally {
        answered.abort()
        signal?.removeEventListener('abort', abort)
      }
    })
  }

  /** Sends a message and does not wait. @returns the sequence of its `turn_started`, for {@link outcome} */
  async submit(input: string | UserInput, { idempotencyKey }: KeyOptions = {}): Promise<number> {
    const body = { input: inputOf(input) }
    const headers = { prefer: 'respond-async' }
    const key = idempotencyKey ?? crypto.randomUUID()
    const path = `${this.#path}/messages`
    return this.#host.ready(
      this.id,
      async () => (await this.#transport.json('POST', path, { body, key, headers })) as number,
    )
  }

  /**
   * Calls a tool of the session without a model: with the same checks, grants, deadline and records as a model's call, but
   * no record of it wakes the agentloop, and the model is not told. A call that ends badly resolves too: see its `outcome`.
   *
   * @param input what its input schema accepts; else the call ends with `invalid_input`
   * @throws TypeError for an option that is not known, or another `wait` than the three
   * @throws BrainError `not_found` for a tool that the session does not have; `invalid_request` when the session is over,
   * or when the tool is in several environments and none is named
   */
  async call(name: string, input: Json, options: CallOptions = {}): Promise<ToolCallAnswer> {
    membersOf(options, CALL_OPTIONS, `Cannot call tool ${JSON.stringify(name)}`)
    const { environment, deadlineMs, wait = 'released', signal, idempotencyKey: key = crypto.randomUUID() } = options
    if (!WAITS.includes(wait))
      throw new TypeError(`Cannot call tool ${JSON.stringify(name)}: wait must be one of ${WAITS.join(', ')}`)
    signal?.throwIfAborted()
    const body = {
      input,
      ...(environment && { environment }),
      ...(deadlineMs !== undefined && { deadline_ms: deadlineMs }),
    }
    const query = wait === 'finished' ? '?wait=finished' : ''
    const headers = wait === 'started' ? { prefer: 'respond-async' } : {}
    const path = `${this.#path}/tools/${encodeURIComponent(name)}/calls${query}`
    const call = () => this.#transport.json('POST', path, { body, key, headers, signal })
    return toolCallAnswer(await this.#host.ready(this.id, call))
  }

  /** How far the turn that started at `sequence` has come. @throws BrainError when none started there */
  outcome(sequence: number, signal?: AbortSignal): Promise<TurnOutcome> {
    return turnOutcome(this.events(sequence - 1, signal), sequence)
  }

  /** The journal after `after`, up to its end at this time. */
  events(after = 0, signal?: AbortSignal): AsyncGenerator<SessionEvent, void, undefined> {
    return pagedEvents(this.#transport, this.#path, after, signal)
  }

  /**
   * The journal after `after` and what is committed from then on, each record once, with live events between. Ends with
   * the session, and when the server ends it: go on from the last sequence.
   */
  stream(after = 0, signal?: AbortSignal): AsyncGenerator<LiveEvent, void, undefined> {
    return liveEvents(this.#transport, `${this.#path}/events?after=${after}`, signal)
  }

  /** The conversation as the model sees it now. */
  async transcript(): Promise<SessionTranscript> {
    return (await this.#transport.json('GET', `${this.#path}/transcript`)) as unknown as SessionTranscript
  }

  /** Cancels the turn and every open tool call. Harmless where there is nothing to cancel. */
  async interrupt({ idempotencyKey = crypto.randomUUID() }: KeyOptions = {}): Promise<void> {
    await this.#transport.json('POST', `${this.#path}/cancel`, { key: idempotencyKey })
  }

  /** Ends the session for good. Functions of this application are not called for it any more. */
  async end({ idempotencyKey = crypto.randomUUID() }: KeyOptions = {}): Promise<SessionState> {
    this.#state = sessionState(await this.#transport.json('POST', `${this.#path}/end`, { key: idempotencyKey }))
    this.#host.release(this.id)
    return this.#state
  }

  /** Removes a session that is over. A failed one needs another key to be tried again. */
  async delete({ idempotencyKey = crypto.randomUUID() }: KeyOptions = {}): Promise<void> {
    await this.#transport.json('DELETE', this.#path, { key: idempotencyKey })
    this.#host.release(this.id)
  }

  /** Cancels the turn of this very message; a stream that was cut is followed again, until the message is answered. */
  async #interruptTurn(input: UserInput, after: number, signal: AbortSignal): Promise<void> {
    const wanted = canonicalText({ input } as unknown as Json)
    const idempotencyKey = crypto.randomUUID()
    while (!signal.aborted) {
      try {
        if (await this.#hasStarted(wanted, after, signal)) return await this.interrupt({ idempotencyKey })
      } catch (error) {
        if (error instanceof BrainError && !error.retryable && error.code !== 'http_error') throw error
      }
      await new Promise((resolve) => setTimeout(resolve, FOLLOW_AGAIN_MS))
    }
  }

  /** Waits for a turn, which may stand in line behind others. @returns false when the stream ends before it */
  async #hasStarted(wanted: string, after: number, signal: AbortSignal): Promise<boolean> {
    for await (const { type, data } of this.stream(after, signal))
      if (type === 'turn_started' && canonicalText(data) === wanted) return true
    return false
  }
}

const inputOf = (input: string | UserInput): UserInput => (typeof input === 'string' ? { message: input } : input)
