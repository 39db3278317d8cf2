import { BrainError } from '../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import type { EnvironmentReceipt } from '../../contract/environment-protocol.ts'
import type { Callbacks } from '../../dispatch/environments/callbacks.ts'
import type { EnvironmentOperation, OperationReceipt } from '../../dispatch/environments/environment-operation.ts'
import type { BoundCall, CallServices, Receipt, RunningCall, ToolBinding } from '../../dispatch/tool-binding.ts'
import { RemoteCall } from '../remote-call.ts'
import { type HttpEnvironments, NOT_REACHED, placedElsewhere, type Sending } from './http-environments.ts'
import { serveTool, TOOL_METHODS } from './tool-callback.ts'

export type EnvironmentBindingParts = {
  readonly environments: HttpEnvironments
  readonly callbacks: Callbacks
}

/** Runs tools in environments that speak `environment/v1` (contract 5). */
export function environmentBinding({ environments, callbacks }: EnvironmentBindingParts): ToolBinding {
  return {
    driver: 'http',
    async checkPlacement(_tenant, implementation, environment) {
      if (!isJsonObject(implementation))
        throw new BrainError(
          'invalid_request',
          `Cannot place a tool in environment "${environment.name}": its implementation must be an object that the environment understands`,
        )
    },
    checkEnvironment(tenant, environment) {
      if (environment.driver === 'http') environments.check(tenant, environment)
    },
    async operate(operation) {
      placedElsewhere(operation.place)
      return toOperationReceipt(operation, await environments.send(operation))
    },
    start: (call, services) => startCall({ environments, callbacks }, call, services),
  }
}

/** Which receipts are success depends on what was asked (contract 5.1). */
function toOperationReceipt({ request }: EnvironmentOperation, receipt: EnvironmentReceipt): OperationReceipt {
  switch (receipt.type) {
    case 'accepted': {
      const { on_turn_end: onTurnEnd } = receipt
      return { type: 'accepted', ...(onTurnEnd === undefined ? {} : { onTurnEnd }) }
    }
    case 'result':
      return request.type === 'setup' || request.type === 'call' ? receipt : NOT_REACHED
    case 'failure': {
      const { type, ...error } = receipt
      return { type, error }
    }
    case 'unknown':
      return receipt
    case 'progress':
    case 'returned':
      return NOT_REACHED
    default:
      return receipt satisfies never
  }
}

const GRACE_MS = 10_000

const isOver = (): BrainError => new BrainError('invalid_request', 'Cannot use this execution any more: it is finished')

const wasCancelled = (): BrainError => new BrainError('cancelled', 'Cannot go on: this execution was cancelled')

/** A call whose time went by while it was recorded. It is not sent: who reads `deadline_ms: 0` may take it for no deadline. */
const TOO_LATE: RunningCall = {
  receipt: Promise.resolve({ type: 'stopped', reason: 'timeout' }),
  cancel: () => Promise.resolve(),
}

function startCall(
  { environments, callbacks }: EnvironmentBindingParts,
  call: BoundCall,
  services: CallServices,
): RunningCall {
  const { tenant, session, sequence, place, grants, implementation, deadlineInMs } = call
  if (deadlineInMs !== undefined && deadlineInMs < 1) return TOO_LATE
  /** With what the controller may do itself while it answers. */
  const send = (sending: Omit<Sending, 'tenant' | 'session' | 'place'>): Promise<EnvironmentReceipt> => {
    const { context, reporter, close } = call.controllerServices(sending.sequence)
    return environments.send({ tenant, session, place, context, reporter, ...sending }).finally(close)
  }
  const stop = new AbortController()
  const remote = new RemoteCall(services, () => undefined)
  const methods = grants.length === 0 ? TOOL_METHODS : [...TOOL_METHODS, 'environments']
  const opened = callbacks.open(session, sequence, methods, (method, input) => serveTool(remote, method, input))
  void services.ended.then(() => opened.close(isOver))
  const sending = send({
    sequence,
    request: {
      type: 'execute',
      implementation,
      input: JSON.parse(call.input) as Json,
      ...(deadlineInMs === undefined ? {} : { deadline_ms: Math.floor(deadlineInMs) }),
      callback: opened.callback,
    },
    // Who waits for the call ends it; this is for a connection that outlives that.
    totalMs: deadlineInMs === undefined ? undefined : deadlineInMs + GRACE_MS,
    signal: stop.signal,
  })
  void sending.then((receipt) => remote.conclude(toReceipt(receipt)))
  return {
    receipt: remote.receipt,
    async cancel(reason, cancelSequence) {
      // The call has ended, and its callback with it.
      if (reason === 'cancelled') opened.close(wasCancelled)
      remote.end({ type: 'stopped', reason })
      const request = { type: 'cancel', target_sequence: sequence } as const
      const receipt = await send({ sequence: cancelSequence, request })
      stop.abort()
      if (receipt.type !== 'accepted') throw new Error('the environment has not accepted the cancellation')
    },
  }
}

function toReceipt(receipt: EnvironmentReceipt): Receipt {
  switch (receipt.type) {
    case 'result':
      return { type: 'result', text: JSON.stringify(receipt.output) }
    case 'returned':
      return { type: 'result', text: receipt.output === undefined ? '' : JSON.stringify(receipt.output) }
    case 'failure': {
      const { code, message, retryable, details } = receipt
      return { type: 'failure', error: { code, message, retryable, ...(details === undefined ? {} : { details }) } }
    }
    case 'unknown':
      return receipt
    case 'accepted':
    case 'progress':
      return { type: 'unknown', message: `The environment answered "${receipt.type}" while the execution was open` }
    default:
      return receipt satisfies never
  }
}
