import type { Json } from '../kernel/json.ts'
import type { Message } from '../contract/message.ts'
import type { SessionConfiguration, SessionStatus } from '../contract/session-request.ts'
import { environmentFold, type Environments } from './environment-state.ts'
import {
  dataOf,
  type EnvironmentOperation,
  type Failure,
  type JournalRecord,
  type KernelData,
  type KernelKind,
  type NewRecord,
} from './record.ts'

export type OpenCall = {
  readonly callId: string
  readonly tool: string
  readonly environment: string
  /** A direct call: its records neither wake the loop nor are shown by the built-in one (contract A11). */
  readonly direct: boolean
}

/** The reserved kv key that holds the completion marker (contract 3.4). */
export const MARKER_KEY = 'brain.last_activation'

type Handlers = {
  readonly [Kind in KernelKind]?: (state: SessionState, data: KernelData[Kind], record: JournalRecord) => void
}

/**
 * A session as its records tell it. The fold of a journal's records in order is the state; it reads no clock, no
 * randomness and nothing outside the records, so recovery is this fold run again.
 */
export class SessionState {
  lastSequence = 0
  status: SessionStatus = 'creating'
  configuration: SessionConfiguration | undefined
  transcript: readonly Message[] = []
  /** Sequence of the newest `transcript_delta`; 0 before the first. */
  transcriptSequence = 0
  readonly kv = new Map<string, Json>()
  /** Everything up to here was delivered to a successful activation. */
  marker = 0
  modelCalls = 0
  readonly openCalls = new Map<number, OpenCall>()
  readonly openCancels = new Set<number>()
  /** Each with the call of the tool that asked, if one did. */
  readonly openModelCalls = new Map<number, number | undefined>()
  readonly openOperations = new Map<
    number,
    { readonly environment: string; readonly operation: EnvironmentOperation }
  >()
  readonly environments: Environments = new Map()
  /** Somebody has stopped or ended the session and nobody has spoken to it since (contract 3.4). */
  isStopped = false
  /** Sequence of the running turn's start. */
  turn: number | undefined
  activation: number | undefined

  /** Whether nothing that was started lacks its end. */
  get isAtRest(): boolean {
    const open = [this.openCalls, this.openCancels, this.openModelCalls, this.openOperations]
    return open.every(({ size }) => size === 0) && ['idle', 'ended', 'failed'].includes(this.status)
  }

  apply(record: JournalRecord): void {
    this.lastSequence = record.sequence
    const handler = HANDLERS[record.event_type as KernelKind] as
      | ((state: SessionState, data: unknown, record: JournalRecord) => void)
      | undefined
    if (record.event_type === 'tool_call_started') this.#callStarted(record)
    else handler?.(this, record.data, record)
  }

  #callStarted(record: JournalRecord): void {
    const data = dataOf(record, 'tool_call_started')
    if (data === undefined) return
    this.openCalls.set(record.sequence, {
      callId: data.invocation.call_id,
      tool: data.tool,
      environment: data.environment,
      direct: record.origin?.kind === 'application',
    })
  }
}

const endTurn = (state: SessionState): void => {
  state.turn = undefined
  state.status = 'idle'
}

const stop = (state: SessionState, status: SessionStatus): void => {
  state.isStopped = true
  state.status = status
}

const HANDLERS: Handlers = {
  session_creation_started: (state, configuration) => {
    state.configuration = configuration
    for (const environment of configuration.environments) environmentFold.declare(state.environments, environment)
  },
  session_creation_ended: (state, { configuration }) => {
    state.configuration = configuration
    state.status = 'idle'
  },
  session_creation_failed: (state) => stop(state, 'failed'),
  session_end_started: (state) => stop(state, 'ending'),
  session_ended: (state) => stop(state, 'ended'),
  session_interrupted: (state) => (state.isStopped = true),
  turn_started: (state, data, { sequence }) => {
    if ('input' in data) state.isStopped = false
    state.turn = sequence
    state.status = 'running'
  },
  turn_ended: (state, { events_through: through }) => {
    state.marker = through
    endTurn(state)
  },
  turn_failed: (state, { code }) => {
    if (code === 'cancelled' || code === 'interrupted') state.isStopped = true
    endTurn(state)
  },
  activation_started: (state, _data, { sequence }) => (state.activation = sequence),
  activation_ended: (state) => (state.activation = undefined),
  activation_failed: (state) => (state.activation = undefined),
  transcript_delta: (state, { keep, append }, { sequence }) => {
    state.transcript = [...state.transcript.slice(0, keep), ...append]
    state.transcriptSequence = sequence
  },
  kv_set: (state, { key, value }) => state.kv.set(key, value),
  kv_delete: (state, { key }) => state.kv.delete(key),
  model_call_started: (state, { tool_sequence: tool }, { sequence }) => {
    state.modelCalls++
    state.openModelCalls.set(sequence, tool)
  },
  model_call_ended: (state, { sequence }) => state.openModelCalls.delete(sequence),
  model_call_failed: (state, { sequence }) => state.openModelCalls.delete(sequence),
  tool_call_ended: (state, { sequence }) => state.openCalls.delete(sequence),
  tool_call_failed: (state, { sequence }) => state.openCalls.delete(sequence),
  tool_cancel_started: (state, _data, { sequence }) => state.openCancels.add(sequence),
  tool_cancel_ended: (state, { sequence }) => state.openCancels.delete(sequence),
  tool_cancel_failed: (state, { sequence }) => state.openCancels.delete(sequence),
  environment_declared: (state, view, { sequence }) => environmentFold.made(state.environments, view, sequence),
  environment_updated: (state, data) => environmentFold.update(state.environments, data),
  environment_closed: (state, { environment }) => environmentFold.close(state.environments, environment),
  environment_observation: (state, { observation }, { origin, recorded_at_ms: atMs }) => {
    if (origin?.kind === 'environment')
      environmentFold.observe(state.environments, origin.environment, observation, atMs)
  },
  ...operationHandlers('setup'),
  ...operationHandlers('call'),
  ...operationHandlers('detach'),
  ...operationHandlers('teardown'),
  ...operationHandlers('replace'),
}

function operationHandlers(operation: EnvironmentOperation): Handlers {
  const close = (state: SessionState, sequence: number): string => {
    const { environment = '' } = state.openOperations.get(sequence) ?? {}
    state.openOperations.delete(sequence)
    return environment
  }
  return {
    [`environment_${operation}_started`]: (
      state: SessionState,
      { environment }: KernelData['environment_setup_started'],
      { sequence }: JournalRecord,
    ) => {
      state.openOperations.set(sequence, { environment, operation })
      environmentFold.started(state.environments, environment, operation, sequence)
    },
    [`environment_${operation}_ended`]: (
      state: SessionState,
      { sequence, result }: KernelData['environment_setup_ended'],
    ) => environmentFold.ended(state.environments, close(state, sequence), sequence, result),
    [`environment_${operation}_failed`]: (
      state: SessionState,
      { sequence, ambiguous }: KernelData['environment_setup_failed'],
    ) => environmentFold.failed(state.environments, close(state, sequence), sequence, ambiguous),
  }
}

const interrupted = (what: string): Failure => ({
  code: 'interrupted',
  message: `The server stopped while ${what} was open; it may have been done`,
  retryable: false,
  ambiguous: true,
})

/**
 * What a server that finds a session after a crash must write: an end for everything that is open (contract 3.7).
 * Empty when there is nothing to recover.
 */
export function recoveryOf(state: SessionState): { records: readonly NewRecord[]; status: SessionStatus } {
  const records: NewRecord[] = []
  for (const [sequence, tool] of state.openModelCalls)
    records.push({
      kind: 'model_call_failed',
      data: { sequence, ...interrupted('this model call') },
      ...(tool === undefined ? {} : { origin: { kind: 'tool', sequence: tool } }),
    })
  for (const sequence of state.openCalls.keys())
    records.push({ kind: 'tool_call_failed', data: { sequence, ...interrupted('this tool call') } })
  for (const sequence of state.openCancels)
    records.push({
      kind: 'tool_cancel_failed',
      data: {
        sequence,
        code: 'unknown',
        ambiguous: true,
        message: 'The server stopped before the cancellation was acknowledged',
      },
    })
  for (const [sequence, { operation }] of state.openOperations) {
    const failure = { sequence, ...interrupted(`this environment ${operation}`), domain: 'transport' as const }
    records.push({ kind: `environment_${operation}_failed`, data: failure })
  }
  return { records: [...records, ...closingOf(state)], status: statusAfter(state.status) }
}

const statusAfter = (status: SessionStatus): SessionStatus =>
  status === 'creating' ? 'failed' : status === 'running' ? 'idle' : status === 'ending' ? 'ended' : status

function closingOf(state: SessionState): NewRecord[] {
  switch (state.status) {
    case 'creating':
      return [{ kind: 'session_creation_failed', data: interrupted('the creation of this session') }]
    case 'running': {
      const turn: NewRecord = { kind: 'turn_failed', data: interrupted('this turn') }
      return state.activation === undefined
        ? [turn]
        : [{ kind: 'activation_failed', data: interrupted('this activation') }, turn]
    }
    case 'ending':
      return [
        { kind: 'session_end_failed', data: interrupted('the end of this session') },
        { kind: 'session_ended', data: {} },
      ]
    case 'idle':
    case 'ended':
    case 'failed':
      return []
    default:
      return state.status satisfies never
  }
}
