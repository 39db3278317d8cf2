import { messageOf } from '../../kernel/errors.ts'
import { isJsonObject, parseJson, type Json } from '../../kernel/json.ts'
import type { Callback } from '../../contract/environment-protocol.ts'
import { boundedText } from '../bounded-text.ts'
import { BrainError, isBrainError } from '../brain-error.ts'
import type { ExecutionServices } from '../environment/execution-services.ts'
import { MOST_CARRIER_DEPTH } from '../json-value.ts'
import { RELAYED } from './tool-call.ts'

/** What an application may say of one call at once. */
const MOST_WAITING = 16
const MOST_BYTES = 4 * 2 ** 20

/** One call that an application may say something of, under a capability of its own. */
type Capability = {
  readonly execution: ExecutionServices
  /** Requests of the application that are not answered yet. */
  waiting: number
  /** What has been said to Brain and is not answered yet. */
  readonly said: Set<Promise<unknown>>
  isOpen: boolean
  end: RelayedEnd
}

/** Whether Brain has the end of a call from its application. */
export type RelayedEnd = 'none' | 'acknowledged' | 'in doubt'

/** One call that its application may say something of. */
export type Relayed = {
  readonly callback: Callback
  /** Takes the capability away. @returns what became of what was said by then */
  readonly close: () => Promise<RelayedEnd>
}

/** Lets applications say of their calls what Brain is to record, without Brain's own credentials. */
export class Relay {
  readonly #capabilities = new Map<string, Capability>()

  /** @param url where applications reach the relay */
  open(url: string, execution: ExecutionServices): Relayed {
    const token = `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll('-', '')
    const capability: Capability = { execution, waiting: 0, said: new Set(), isOpen: true, end: 'none' }
    this.#capabilities.set(token, capability)
    const close = async (): Promise<RelayedEnd> => {
      this.#capabilities.delete(token)
      capability.isOpen = false
      await Promise.allSettled(capability.said)
      return capability.end
    }
    return { callback: { url, token, methods: [...RELAYED] }, close }
  }

  /** Answers one request of an application: 200 once it is durable, 403 for a capability that is not there any more. */
  async take(request: Request): Promise<Response> {
    if (request.method !== 'POST') return refusal(405, 'invalid_request', 'Only POST is served here')
    const token = /^Bearer ([0-9a-f]{64})$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
    const capability = this.#capabilities.get(token)
    if (capability === undefined) return noSuchCall()
    if (capability.waiting >= MOST_WAITING)
      return refusal(503, 'overloaded', `More than ${MOST_WAITING} requests of one call wait`, true)
    capability.waiting++
    return relay(capability, request).finally(() => capability.waiting--)
  }
}

/** Never rejects. */
async function relay(capability: Capability, request: Request): Promise<Response> {
  try {
    const text = await boundedText(request.body, MOST_BYTES)
    if (text === undefined) return refusal(413, 'invalid_request', `The body takes more than ${MOST_BYTES} bytes`)
    const body = parseJson(text, 'the body', MOST_CARRIER_DEPTH)
    // What takes longer to arrive than its call is too late.
    if (!capability.isOpen) return noSuchCall()
    const saying = forward(capability, body)
    capability.said.add(saying)
    return Response.json({ sequence: await saying.finally(() => capability.said.delete(saying)) })
  } catch (error) {
    if (!isBrainError(error)) return refusal(400, 'invalid_request', messageOf(error))
    const { code, retryable, status } = error
    if (code === 'ambiguous') return refusal(502, code, messageOf(error))
    return refusal(status >= 400 ? status : 400, code, messageOf(error), retryable)
  }
}

const noSuchCall = (): Response => refusal(403, 'denied', 'There is no such call')

async function forward(capability: Capability, body: Json): Promise<number> {
  const { method, input = null } = isJsonObject(body) ? body : {}
  const { execution } = capability
  const given = input ?? undefined
  switch (method) {
    case 'result':
      return execution.emitResult(input)
    case 'returned':
      return execution.returned(given)
    case 'finish':
      return execution.finish(given).then(
        (sequence) => {
          capability.end = 'acknowledged'
          return sequence
        },
        (error: unknown) => {
          if (!isBrainError(error) || error.code === 'ambiguous') capability.end = 'in doubt'
          throw error
        },
      )
    default:
      throw new BrainError(400, 'invalid_request', `Cannot relay: method must be one of ${RELAYED.join(', ')}`)
  }
}

const refusal = (status: number, code: string, message: string, retryable = false): Response =>
  Response.json({ code, message, retryable }, { status })
