import { BrainError, clip } from '../../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { SessionId, TenantId } from '../../../kernel/ids.ts'
import type { Callback, EnvironmentReceipt, EnvironmentRequest } from '../../../contract/environment-protocol.ts'
import type { Limits } from '../../../contract/limits.ts'
import { CallNotes, type CallLogs } from '../../../dispatch/call-log.ts'
import type { Callbacks } from '../../../dispatch/environments/callbacks.ts'
import type { Place } from '../../../dispatch/environments/environment-operation.ts'
import {
  type ActivationContext,
  type Agentloop,
  AgentloopFailure,
  type LoopHost,
  type TurnInput,
} from '../../agentloop.ts'
import { TextHost } from '../text-host.ts'
import { LOOP_METHODS, serveLoop } from './loop-callback.ts'

/** Sends one operation to an environment elsewhere; never rejects. */
export type SendOperation = (sending: {
  readonly tenant: TenantId
  readonly session: SessionId
  readonly place: Place
  readonly sequence: number
  readonly request: EnvironmentRequest
  readonly context: Callback
  readonly reporter: Callback
  readonly totalMs: number | undefined
  readonly signal: AbortSignal
}) => Promise<EnvironmentReceipt>

export type RemoteLoopsParts = {
  readonly send: SendOperation
  readonly callbacks: Callbacks
  readonly callLogs: Pick<CallLogs, 'write'>
  readonly limits: Limits
}

/** Agentloops that run in environments elsewhere: an execution that answers when the activation is over (contract 7.1). */
export class RemoteLoops {
  readonly #parts: RemoteLoopsParts

  constructor(parts: RemoteLoopsParts) {
    this.#parts = parts
  }

  /** @throws BrainError `invalid_request` */
  check(implementation: Json): JsonObject {
    if (isJsonObject(implementation)) return implementation
    throw new BrainError(
      'invalid_request',
      'Cannot create the session: agentloop.implementation must be an object that its environment understands',
    )
  }

  of(implementation: JsonObject, place: Place): Agentloop {
    return { run: (input, host, context) => this.#run({ implementation, place }, input, host, context) }
  }

  async #run(
    { implementation, place }: { readonly implementation: JsonObject; readonly place: Place },
    input: TurnInput,
    host: LoopHost,
    { tenant, session, sequence, signal, controllerServices }: ActivationContext,
  ): Promise<{ result?: Json }> {
    const { send, callbacks, callLogs, limits } = this.#parts
    const notes = new CallNotes()
    const texts = new TextHost(host, notes)
    const opened = callbacks.open(session, sequence, LOOP_METHODS, (method, value) => serveLoop(texts, method, value))
    const { context, reporter, close } = controllerServices(place)
    const totalMs = limits.turnSecs === 0 ? undefined : limits.turnSecs * 1000
    try {
      const receipt = await send({
        tenant,
        session,
        place,
        sequence,
        request: {
          type: 'execute',
          implementation,
          input: input as unknown as Json,
          ...(totalMs === undefined ? {} : { deadline_ms: totalMs }),
          callback: opened.callback,
        },
        context,
        reporter,
        totalMs,
        signal,
      })
      return toResult(receipt)
    } finally {
      opened.close()
      close()
      if (notes.log !== undefined) callLogs.write(session, sequence, notes.log).catch(() => undefined) // promised to nobody
    }
  }
}

/** @throws AgentloopFailure */
function toResult(receipt: EnvironmentReceipt): { result?: Json } {
  switch (receipt.type) {
    case 'result': {
      const { output } = receipt
      const isRight = isJsonObject(output) && Object.keys(output).every((member) => member === 'result')
      if (!isRight)
        throw new AgentloopFailure('agentloop_failed', 'The agentloop must give {} or {"result":…} as its output')
      return output['result'] === undefined ? {} : { result: output['result'] }
    }
    case 'failure':
      throw new AgentloopFailure(receipt.code, clip(receipt.message), { retryable: receipt.retryable })
    case 'unknown':
      throw new AgentloopFailure('unknown', clip(receipt.message), { ambiguous: true })
    case 'accepted':
    case 'progress':
    case 'returned':
      throw new AgentloopFailure('unknown', `The environment answered "${receipt.type}" to an agentloop`, {
        ambiguous: true,
      })
    default:
      return receipt satisfies never
  }
}
