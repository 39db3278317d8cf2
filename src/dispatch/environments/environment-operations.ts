import { BrainError, clip, messageOf } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/ids.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { SchemaChecker } from '../../contract/schema-checker.ts'
import type { SessionEnvironment, SessionStatus } from '../../contract/session-request.ts'
import type { EnvironmentEntry } from '../../journal/environment-state.ts'
import type { EnvironmentOperation as OperationKind } from '../../journal/record.ts'
import type { SessionLog } from '../../journal/session-log.ts'
import { bindingFor, type Bindings } from '../binding-for.ts'
import type { ToolBinding } from '../tool-binding.ts'
import type { Callbacks, Serve } from './callbacks.ts'
import type { ControllerServices, EnvironmentOperation, OperationReceipt, Place } from './environment-operation.ts'
import type { EnvironmentWork } from './environment-work.ts'
import { endOf, type Invalid, toError } from './operation-ends.ts'
import { assertUsable, placeOf, type Placing } from './places.ts'
import type { Reporters } from './reporters.ts'

/** The session whose environments are operated on. */
export type OperatedSession = Placing & {
  readonly tenant: TenantId
  readonly log: SessionLog
  readonly openCalls: ReadonlyMap<
    number,
    { readonly environment: string; interrupt(reason: 'cancelled'): Promise<void> }
  >
  readonly environmentWork: EnvironmentWork
  readonly state: { readonly status: SessionStatus }
  /** Why nothing new is taken: set the moment that an end or a drain was asked for. */
  readonly closing: 'ending' | 'draining' | undefined
}

export type EnvironmentOperationsParts = {
  readonly bindings: Bindings
  readonly schemas: SchemaChecker
  readonly callbacks: Callbacks
  readonly reporters: Reporters
  readonly logger: Logger
  /** Services for the controller of a place, while an operation goes on. */
  readonly services: (
    session: OperatedSession,
    place: Place,
  ) => { readonly methods: readonly string[]; readonly serve: Serve }
}

type MethodCall = { readonly name: string; readonly input: Json; readonly outputSchema: JsonObject | undefined }

type Asked = {
  readonly kind: OperationKind
  readonly request: EnvironmentOperation['request']
  readonly outputSchema?: JsonObject | undefined
  readonly signal: AbortSignal
  /** How the start is written: an end of the session must come to its end, whatever the storage says at first. */
  readonly how?: 'commit' | 'insist'
}

/** The end of the session's environments is not given up. */
const NEVER = new AbortController().signal

type Closing = {
  readonly kind: 'detach' | 'teardown'
  readonly concerns: (entry: EnvironmentEntry, session: OperatedSession) => boolean
  /** Whether a failure keeps what follows from being done. */
  readonly onFailure: 'log' | 'throw'
}

const mayHold = (entry: EnvironmentEntry): boolean => entry.mayHold

/** The application may have put files into a workspace that no tool has used yet (contract A12). */
const mayHaveFiles = (entry: EnvironmentEntry, session: OperatedSession): boolean =>
  placeOf(session, entry)?.environment.driver === 'brain'

const NOT_FOLLOWED: OperationReceipt = { type: 'unknown', message: 'The operation could not be followed to its end' }

/** When all environments of a session are given up, and how (contract 2.4, 3.7). */
const CLOSINGS = {
  end: { kind: 'detach', concerns: mayHold, onFailure: 'log' },
  deletion: {
    kind: 'teardown',
    concerns: (entry, session) => mayHold(entry) || mayHaveFiles(entry, session),
    onFailure: 'throw',
  },
  failedCreation: { kind: 'teardown', concerns: ({ state }) => state === 'ready', onFailure: 'log' },
} as const satisfies Record<string, Closing>

/**
 * What is done to environments (contract 3.1, 5.1): the intent is committed, it is sent once, and what comes back is
 * committed, whatever it is.
 */
export class EnvironmentOperations {
  readonly #parts: EnvironmentOperationsParts

  constructor(parts: EnvironmentOperationsParts) {
    this.#parts = parts
  }

  /** @throws BrainError `invalid_request` for what the operator does not allow */
  checkConfiguration({ tenant }: OperatedSession, base: SessionEnvironment, configuration: Json): void {
    this.#binding(base).checkEnvironment(tenant, { ...base, configuration } as SessionEnvironment)
  }

  /** @throws as {@link #perform} */
  async setUp(session: OperatedSession, entry: EnvironmentEntry, how: Asked['how'] = 'commit'): Promise<void> {
    const request = { type: 'setup', configuration: entry.configuration } as const
    await this.#perform(session, entry, { kind: 'setup', request, signal: session.environmentWork.signal, how })
  }

  /** Takes back what was set up; of one that was only declared there is nothing to take back. */
  async remove(session: OperatedSession, entry: EnvironmentEntry): Promise<void> {
    const { name } = entry.reference
    const calls = [...session.openCalls.values()].filter((call) => call.environment === name)
    await Promise.all(calls.map((call) => call.interrupt('cancelled')))
    if (entry.mayHold) {
      const { signal } = session.environmentWork
      await this.#perform(session, entry, { kind: 'teardown', request: { type: 'teardown' }, signal })
    } else await session.log.commit({ records: [{ kind: 'environment_closed', data: { environment: name } }] })
  }

  /** Calls a method whose input was checked. @returns its output @throws as {@link #perform} */
  async call(session: OperatedSession, entry: EnvironmentEntry, call: MethodCall): Promise<Json> {
    return this.#callAs('call', session, entry, call)
  }

  /** Calls a method that makes another environment of this one, under the sequence of this operation. */
  async replace(session: OperatedSession, entry: EnvironmentEntry, call: MethodCall): Promise<Json> {
    return this.#callAs('replace', session, entry, call)
  }

  async #callAs(
    kind: 'call' | 'replace',
    session: OperatedSession,
    entry: EnvironmentEntry,
    { name, input, outputSchema }: MethodCall,
  ): Promise<Json> {
    assertUsable(entry, `call "${name}"`)
    const request = { type: 'call', name, input } as const
    const { signal } = session.environmentWork
    const receipt = await this.#perform(session, entry, { kind, request, outputSchema, signal })
    return receipt.type === 'result' ? receipt.output : null
  }

  /** Tells the environments that want to know of it that a turn is over (contract 5.4). Nobody waits for that. */
  turnEnded(session: OperatedSession, turn: number): void {
    const { environmentWork } = session
    for (const { reference, onTurnEnd: method } of session.state.environments.values()) {
      if (method === undefined) continue
      environmentWork.afterTurn(reference.name, async () => {
        const entry = session.state.environments.get(reference.name)
        if (entry?.state !== 'ready' || environmentWork.signal.aborted) return
        if (environmentWork.isChanging(reference.name)) return // what it is after that has not seen the turn
        const call = { name: method, input: { sequence: turn }, outputSchema: undefined }
        await this.call(session, entry, call).catch((error: unknown) => this.#log(session, error, 'a turn end'))
      })
    }
  }

  /**
   * Gives up all environments, the newest first. Only a deletion is kept from going on by a failure.
   * @throws as {@link #perform} for the first that could not be torn down for a deletion
   */
  async closeAll(session: OperatedSession, why: keyof typeof CLOSINGS): Promise<void> {
    const { kind, concerns, onFailure }: Closing = CLOSINGS[why]
    for (const entry of [...session.state.environments.values()].toReversed()) {
      if (!concerns(entry, session)) continue
      const closing = this.#perform(session, entry, { kind, request: { type: kind }, signal: NEVER, how: 'insist' })
      if (onFailure === 'throw') await closing
      else await closing.catch((error: unknown) => this.#log(session, error, `the ${kind}`))
    }
  }

  #log(session: OperatedSession, error: unknown, what: string): void {
    this.#parts.logger.warn(
      { session: session.log.session, error: messageOf(error) },
      `${what} of an environment failed`,
    )
  }

  #binding(environment: SessionEnvironment): ToolBinding {
    return bindingFor(this.#parts.bindings, environment)
  }

  /**
   * @throws ToolFailure with the environment's own code, BrainError `ambiguous` when it is not known what was done,
   *   `environment_output_invalid`, what the storage says
   */
  async #perform(
    session: OperatedSession,
    entry: EnvironmentEntry,
    asked: Asked,
  ): Promise<OperationReceipt & { type: 'accepted' | 'result' }> {
    const place = placeOf(session, entry)
    if (place === undefined) throw new Error(`environment "${entry.reference.name}" was never declared`)
    const { name, sequence: environmentSequence } = entry.reference
    const { kind, request, how = 'commit' } = asked
    const data = { environment: name, environment_sequence: environmentSequence, request: request as JsonObject }
    const [started] = await session.log[how]({ records: [{ kind: `environment_${kind}_started`, data }] })
    const sequence = started?.sequence ?? 0
    const end = (receipt: OperationReceipt | Invalid): Promise<unknown> =>
      session.log.insist({ records: [endOf(kind, sequence, receipt)] })
    const receipt = await this.#answered(session, place, { ...asked, sequence }).catch(async (error: unknown) => {
      // A defect leaves no start without its end either.
      await end(NOT_FOLLOWED)
      throw error
    })
    await end(receipt)
    if (receipt.type === 'accepted' || receipt.type === 'result') return receipt
    throw toError(name, receipt)
  }

  /** Services for the controller of a place, to go with an operation. */
  controllerServices(
    session: OperatedSession,
    place: Place,
    sequence: number,
    lasting = place.reference,
  ): ControllerServices {
    const { callbacks, reporters, services } = this.#parts
    const { methods, serve } = services(session, place)
    const opened = callbacks.open(session.log.session, sequence, methods, serve)
    const reporter = reporters.callback(session.log.session, lasting)
    return { context: opened.callback, reporter, close: () => opened.close() }
  }

  async #send(
    session: OperatedSession,
    place: Place,
    { kind, request, signal, sequence }: Asked & { readonly sequence: number },
  ): Promise<OperationReceipt> {
    const { name } = place.reference
    const isGivenUp = kind === 'detach' || kind === 'teardown'
    const lasting = kind === 'replace' ? { name, sequence } : place.reference
    const { context, reporter, close } = this.controllerServices(session, place, sequence, lasting)
    try {
      return await this.#binding(place.environment).operate({
        tenant: session.tenant,
        session: session.log.session,
        place,
        sequence,
        request,
        context,
        ...(isGivenUp ? {} : { reporter }),
        signal,
      })
    } catch (error) {
      if (!(error instanceof BrainError)) throw error
      const { code, message, retryable } = error
      return { type: 'failure', error: { code, message: clip(message), retryable } }
    } finally {
      close()
    }
  }

  async #answered(
    session: OperatedSession,
    place: Place,
    asked: Asked & { readonly sequence: number },
  ): Promise<OperationReceipt | Invalid> {
    const { outputSchema } = asked
    const receipt = await this.#send(session, place, asked)
    if (outputSchema === undefined || receipt.type === 'failure' || receipt.type === 'unknown') return receipt
    const output = receipt.type === 'result' ? receipt.output : null
    const verdict = await this.#parts.schemas.checkValue(outputSchema, JSON.stringify(output))
    return verdict.valid ? receipt : { type: 'invalid', message: verdict.message }
  }
}
