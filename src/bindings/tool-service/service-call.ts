import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'
import { setLongTimeout } from '../../kernel/long-timeout.ts'
import type { ToolOutput } from '../../contract/outcome.ts'
import type { ToolService } from '../../contract/tool-service.ts'
import type { BoundCall, CallServices, Receipt, RunningCall } from '../../dispatch/tool-binding.ts'
import type { Connections } from './connections.ts'
import { CallFailure, type Phase, receiptOf, refusedResult } from './failures.ts'
import { isPassedOn, type Target } from './open-connection.ts'
import { repeatsForeignName } from './repeats-foreign-name.ts'
import { formOf, readBody, readEvents } from './service-answer.ts'
import { bodyOf, type InspectionGrant, requestOf } from './service-request.ts'
import type { ServiceResult } from './service-result.ts'

export type ServiceCallParts = {
  readonly service: ToolService
  readonly target: Target
  /** Opens the service. */
  readonly token: string | undefined
  readonly inspection: InspectionGrant | undefined
  readonly connections: Connections
  /** Milliseconds from the start of the call to the head of the answer. */
  readonly headersMs: number
  readonly logger: Logger
}

/** One call of a service over HTTP: one POST, and what comes of it. */
export class ServiceCall implements RunningCall {
  readonly receipt: Promise<Receipt>
  readonly #parts: ServiceCallParts
  readonly #call: BoundCall
  readonly #services: CallServices
  /** Ends the exchange; its reason is the first cause. */
  readonly #over = new AbortController()
  #phase: Phase = 'connecting'

  constructor(parts: ServiceCallParts, call: BoundCall, services: CallServices) {
    this.#parts = parts
    this.#call = call
    this.#services = services
    void services.ended.then(() => this.#stop(new CallFailure('cancel', 'the call has ended')))
    this.receipt = this.#run()
  }

  async cancel(reason: 'timeout' | 'cancelled'): Promise<void> {
    this.#stop(new CallFailure(reason === 'timeout' ? 'deadline' : 'cancel', `the call ended: ${reason}`))
  }

  unsent(): Receipt | undefined {
    if (this.#phase !== 'connecting') return undefined
    const { service } = this.#parts
    const failure = new CallFailure('deadline', `no connection within the time of the call`)
    this.#stop(failure)
    return receiptOf(service.name, 'connecting', failure)
  }

  #stop(failure: CallFailure): void {
    this.#over.abort(failure)
  }

  async #run(): Promise<Receipt> {
    try {
      return await this.#finish(await this.#exchange())
    } catch (error) {
      return this.#receiptFor(error)
    }
  }

  async #exchange(): Promise<ServiceResult> {
    const { service, target, token, inspection, connections, headersMs } = this.#parts
    const { signal } = this.#over
    const patience = setLongTimeout(() => this.#stop(tooSlow(headersMs)), headersMs)
    try {
      const body = bodyOf(this.#call, inspection)
      const response = await connections.send(target, {
        options: requestOf(this.#call, target, { body, token }),
        body,
        signal,
        onSending: () => (this.#phase = 'waiting'),
      })
      patience.clear()
      const form = formOf(response, isPassedOn(target))
      this.#phase = form
      return form === 'body'
        ? await readBody(response, service)
        : await readEvents(response, service, (data) => this.#services.isOpen && this.#services.progress(data))
    } catch (error) {
      // Nothing more of the answer is wanted, and its connection is not used again.
      this.#stop(
        error instanceof CallFailure ? error : new CallFailure('fault', 'this server failed in an unforeseen way'),
      )
      throw error
    } finally {
      patience.clear()
    }
  }

  #receiptFor(error: unknown): Receipt {
    const { service, logger } = this.#parts
    // Whoever stopped the exchange is the reason, whatever its connection says of that.
    const cause: unknown = this.#over.signal.aborted ? this.#over.signal.reason : error
    const facts = { session: this.#call.session, sequence: this.#call.sequence, tool: service.name }
    if (!(cause instanceof CallFailure)) throw cause
    if (error !== cause && !(error instanceof CallFailure))
      logger.error({ ...facts, error: messageOf(error) }, 'cannot call a tool service')
    if (cause.failure === 'deadline' && this.#phase !== 'connecting')
      this.#services.note({ type: 'warning', message: `Tool "${service.name}": ${cause.message}` })
    return receiptOf(service.name, this.#phase, cause)
  }

  /** The call ends with its result. What Brain refuses of it was done all the same. */
  async #finish({ output, isStructured }: ServiceResult): Promise<Receipt> {
    const { name, output_schema: schema } = this.#parts.service
    if (output.status === 'ok' && schema !== undefined && !isStructured)
      return refusedResult(
        'invalid_output',
        `Cannot take this output of tool "${name}": it has no structured_content, which its output_schema describes`,
      )
    try {
      await this.#services.finish(JSON.stringify(output), 'refuse')
      return { type: 'result', text: '' }
    } catch (error) {
      if (!(error instanceof BrainError)) throw error
      if (error.code === 'invalid_output')
        return refusedResult('invalid_output', withoutItsWords(error.message, this.#parts.service, output))
      return { type: 'unknown', message: `Cannot keep the result of tool "${name}": ${error.message}` }
    }
  }
}

/** Says what is wrong with an output, by no other names than those of its schema. */
function withoutItsWords(message: string, { name, output_schema: schema }: ToolService, output: ToolOutput): string {
  return schema !== undefined && output.status === 'ok' && repeatsForeignName(message, output.value, schema)
    ? `Cannot take this output of tool "${name}": a member that its output_schema does not name is against it`
    : message
}

const tooSlow = (headersMs: number): CallFailure =>
  new CallFailure(
    'deadline',
    `no response headers within ${headersMs / 1000} seconds; a service that works longer answers with an event stream at once`,
  )
