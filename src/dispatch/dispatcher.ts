import { BrainError, type ErrorCode, messageOf } from '../kernel/errors.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Json, JsonObject } from '../kernel/json.ts'
import { describeLimit, type Limits } from '../contract/limits.ts'
import { toolsOf } from '../contract/tool-service.ts'
import type { SchemaChecker, SchemaVerdict } from '../contract/schema-checker.ts'
import type { SessionEnvironment, SessionTool } from '../contract/session-request.ts'
import type { Append, Claim, Claimed, ClaimKey, StoredAnswer } from '../journal/journal.ts'
import type { JournalRecord, NewRecord, Origin, ToolInvocation } from '../journal/record.ts'
import type { EnvironmentEntry } from '../journal/environment-state.ts'
import type { Budget } from './budget.ts'
import type { CallLogs } from './call-log.ts'
import type { Authority } from './environments/authority.ts'
import type { OperatedSession } from './environments/environment-operations.ts'
import type { Place } from './environments/environment-operation.ts'
import type { Environments } from './environments/environments.ts'
import { callable, grantsOfTool, placeOf, reasonOf } from './environments/places.ts'
import { Execution } from './execution.ts'
import type { ToolModel } from './tool-model.ts'
import { bindingFor, type Bindings } from './binding-for.ts'
import type { ToolBinding } from './tool-binding.ts'

/** The session that calls are made for, as far as dispatch needs it. */
export type CallingSession = OperatedSession & {
  /** Calls of the session that have no end yet, by sequence; kept by the dispatcher. */
  readonly openCalls: Map<number, Execution>
  /** Dispatches that are on their way: they have no open call yet, and an end has to wait for them. */
  readonly starting: Set<Promise<unknown>>
  /** Counts interruptions: a call whose start one of them has overtaken is not sent. */
  readonly interruptions: number
  readonly model: ToolModel
}

export type CallRequest = {
  readonly invocation: ToolInvocation
  /** A shorter bound than the server's, milliseconds. */
  readonly deadlineMs?: number
  readonly origin?: Origin
  readonly budget: Budget
  /** The W3C trace that the call belongs to, if it does. */
  readonly traceparent?: string | undefined
  /** For a direct call: claims its key with the start record, answers it with the release (design 3). */
  readonly claim?: Claim
  readonly answerStatus?: number
}

export type Dispatched = { readonly executions: readonly Execution[] } | { readonly claimed: Claimed }

/** Input that could not be checked is not sent: its start record is there, and gets its end. */
const refused = (error: unknown): SchemaVerdict => ({ valid: false, message: messageOf(error) })

type Started = {
  readonly record: JournalRecord
  readonly input: { readonly text: string; readonly fault: string | undefined }
  readonly isOvertaken: boolean
}

type Resolved = {
  readonly request: CallRequest
  readonly tool: SessionTool
  readonly entry: EnvironmentEntry
  readonly place: Place
}

export type DispatcherParts = {
  readonly limits: Limits
  readonly schemas: SchemaChecker
  readonly callLogs: CallLogs
  readonly logger: Logger
  readonly bindings: Bindings
  readonly environments: Environments
}

/** Takes calls of a session's tools: checks, commits the intent, sends once (contract 7.3). */
export class Dispatcher {
  readonly #parts: DispatcherParts

  constructor(parts: DispatcherParts) {
    this.#parts = parts
  }

  get environments(): Environments {
    return this.#parts.environments
  }

  binding(environment: SessionEnvironment): ToolBinding {
    return bindingFor(this.#parts.bindings, environment)
  }

  /**
   * Starts a batch: every start record is committed before the first call is sent.
   * @throws BrainError `invalid_request` for the whole batch, before anything is written: a `call_id` given twice, an
   *   unknown tool, a tool that is not placed in the named environment.
   */
  async start(session: CallingSession, requests: readonly CallRequest[]): Promise<Dispatched> {
    if (requests.length === 0) return { executions: [] }
    const resolved = requests.map((request) => resolve(session, request))
    refuseRepeatedIds(requests)
    const starting = this.#start(session, resolved)
    session.starting.add(starting)
    try {
      return await starting
    } finally {
      session.starting.delete(starting)
    }
  }

  async #start(session: CallingSession, resolved: readonly Resolved[]): Promise<Dispatched> {
    const { interruptions } = session
    const claim = resolved[0]?.request.claim
    const checks = resolved.map(({ request, tool }) => this.#checkInput(tool, request.invocation.input))
    const append: Omit<Append, 'session'> = {
      records: resolved.map((call) => this.#startRecord(call)),
      ...(claim === undefined ? {} : { claim }),
    }
    const [appended, inputs] = await Promise.all([session.log.append(append), Promise.all(checks)])
    if (!appended.committed) return { claimed: appended.claimed }
    const executions = resolved.map((call, index) => {
      const record = appended.records[index]
      const input = inputs[index]
      if (record === undefined || input === undefined)
        throw new Error('an append answered fewer records than it was given')
      return this.#send(session, call, { record, input, isOvertaken: session.interruptions !== interruptions })
    })
    return { executions }
  }

  async #checkInput(tool: SessionTool, input: Json): Promise<{ text: string; fault: string | undefined }> {
    const text = JSON.stringify(input)
    const { limits } = this.#parts
    const bytes = Buffer.byteLength(text)
    if (bytes > limits.executionInputBytes)
      return { text, fault: `it takes ${bytes} bytes, the limit is ${describeLimit('executionInputBytes', limits)}` }
    const verdict = await this.#parts.schemas.checkValue(tool.input_schema, text).catch(refused)
    return { text, fault: verdict.valid ? undefined : verdict.message }
  }

  #deadlineMs({ request, tool, place }: Resolved): number | undefined {
    const { toolSecs } = this.#parts.limits
    const own = this.#parts.bindings.get(place.environment.driver)?.timeoutMs?.(tool.name)
    const most = own ?? (toolSecs === 0 ? undefined : toolSecs * 1000)
    if (request.deadlineMs === undefined) return most
    return most === undefined ? request.deadlineMs : Math.min(most, request.deadlineMs)
  }

  #startRecord(call: Resolved): NewRecord {
    const { request, tool, place } = call
    const { reference } = place
    const data = {
      tool: tool.name,
      environment: reference.name,
      environment_sequence: reference.sequence,
      invocation: request.invocation,
      deadline_ms: this.#deadlineMs(call) ?? null,
    }
    return { kind: 'tool_call_started', data, ...(request.origin === undefined ? {} : { origin: request.origin }) }
  }

  #budgetOf({ place, request: { budget } }: Resolved): Budget {
    const { boundsResults = false } = this.#parts.bindings.get(place.environment.driver) ?? {}
    return boundsResults ? budget.withoutEmissions() : budget
  }

  #send(session: CallingSession, call: Resolved, started: Started): Execution {
    const { record, input } = started
    const { request, tool, entry, place } = call
    const { schemas, callLogs, logger, environments } = this.#parts
    const grants = grantsOfTool(tool, place)
    const authority: Authority = { kind: 'granted', grants, within: place.reference.name }
    const execution = new Execution({
      log: session.log,
      schemas,
      callLogs,
      logger,
      model: session.model,
      budget: this.#budgetOf(call),
      sequence: record.sequence,
      callId: request.invocation.call_id,
      tool: tool.name,
      environment: place.reference.name,
      outputSchema: tool.output_schema,
      settle: settleOf(request, session, record.sequence),
      environments: (text) => environments.control.handleText(session, authority, { text, budget: request.budget }),
      onEnded: () => session.openCalls.delete(record.sequence),
    })
    session.openCalls.set(record.sequence, execution)
    if (started.isOvertaken) {
      void execution.interrupt('cancelled')
      return execution
    }
    if (input.fault !== undefined) {
      const message = `Cannot call tool "${tool.name}": its input is not usable: ${input.fault}`
      execution.refuse('invalid_input', message)
      return execution
    }
    const unusable = whyNotUsable(session, entry)
    if (unusable !== undefined) {
      execution.refuse(unusable.code, `Cannot call tool "${tool.name}": ${unusable.reason}`, unusable.details)
      return execution
    }
    const deadlineMs = this.#deadlineMs(call)
    // The start was recorded a moment ago; what the commit took counts against the deadline.
    const spent = Math.max(0, Math.min(Date.now() - record.recorded_at_ms, deadlineMs ?? 0))
    const deadlineInMs = deadlineMs === undefined ? undefined : deadlineMs - spent
    const running = this.binding(place.environment).start(
      {
        tenant: session.tenant,
        session: session.log.session,
        sequence: record.sequence,
        tool: tool.name,
        place,
        grants,
        implementation: tool.placements[place.template]?.implementation ?? null,
        input: input.text,
        deadlineAtMs: deadlineMs === undefined ? 0 : record.recorded_at_ms + deadlineMs,
        deadlineInMs,
        ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
        controllerServices: (sequence) => environments.operations.controllerServices(session, place, sequence),
      },
      execution,
    )
    execution.run(running, deadlineInMs)
    return execution
  }
}

function settleOf(
  request: CallRequest,
  session: CallingSession,
  sequence: number,
): (ClaimKey & { answer: StoredAnswer }) | undefined {
  if (request.claim === undefined) return undefined
  const { scope, key } = request.claim
  return {
    scope,
    key,
    answer: { type: 'call', status: request.answerStatus ?? 200, session: session.log.session, sequence },
  }
}

function refuseRepeatedIds(requests: readonly CallRequest[]): void {
  const seen = new Set<string>()
  for (const { invocation } of requests) {
    if (seen.has(invocation.call_id))
      throw new BrainError(
        'invalid_request',
        `Cannot dispatch: call_id "${invocation.call_id}" is used twice in one batch`,
      )
    seen.add(invocation.call_id)
  }
}

/** Finds the tool and the environment of a call. An instance takes the tools that are placed in its template. */
function resolve(session: CallingSession, request: CallRequest): Resolved {
  const { name, environment, environment_sequence: sequence } = request.invocation
  const refuse = (reason: string): never => {
    throw new BrainError('invalid_request', `Cannot call tool "${name}": ${reason}`)
  }
  const tool = toolsOf(session.configuration).find((candidate) => candidate.name === name)
  if (tool === undefined) return refuse('this session has no such tool')
  const entry = callable(session, environment)
  const place = entry && placeOf(session, entry)
  if (entry === undefined || place === undefined || !Object.hasOwn(tool.placements, entry.template))
    return refuse(`it is not placed in environment "${environment}"`)
  const { reference } = entry
  if ((sequence ?? 1) !== reference.sequence)
    refuse(`environment "${environment}" has sequence ${reference.sequence}, not ${sequence ?? 'none'}`)
  return { request, tool, entry, place }
}

/** Why nothing is sent to an environment: it is not ready, or has changed while the start was written. */
function whyNotUsable(
  session: CallingSession,
  then: EnvironmentEntry,
): { readonly code: ErrorCode; readonly reason: string; readonly details: Json } | undefined {
  const now = callable(session, then.reference.name) ?? { ...then, state: 'deleted' as const }
  const { state, availability, reference } = now
  const details = { domain: 'environment', environment: reference.name, state }
  // Nothing may run in it from the moment that this was asked for, which is before it is on record.
  if (session.environmentWork.isChanging(reference.name))
    return { code: 'environment_not_ready', reason: `environment "${reference.name}" is being changed`, details }
  if (state === 'ready' && availability !== 'unavailable' && reference.sequence === then.reference.sequence)
    return undefined
  const code = state === 'deleted' ? 'environment_closed' : 'environment_not_ready'
  return { code, reason: reasonOf(now), details }
}

/** The environment that a call means when it names none: the tool's single placement. */
export function onlyPlacement(tool: {
  readonly name: string
  readonly placements: JsonObject | SessionTool['placements']
}): string {
  const names = Object.keys(tool.placements)
  if (names.length === 1 && names[0] !== undefined) return names[0]
  throw new BrainError(
    'invalid_request',
    `Cannot call tool "${tool.name}" without an environment: it is placed in ${names.join(', ')}`,
  )
}
