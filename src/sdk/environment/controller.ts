import { z } from 'zod'
import { clip, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import {
  ENVIRONMENT_CONTRACT,
  type Callback,
  type EnvironmentReceipt,
  type EnvironmentResponse,
} from '../../contract/environment-protocol.ts'
import { looksLikeOutcome } from '../../contract/outcome.ts'
import { BrainError } from '../brain-error.ts'
import type { Fetch } from '../client/transport.ts'
import type { OptionsSchema } from '../declare/placement.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { environmentServices } from '../host/environment-services.ts'
import { jsonOf } from '../json-value.ts'
import { membersOf } from '../strict-members.ts'
import { AnsweredOperations, MOST_OPERATIONS } from './answered-operations.ts'
import { CallbackClient } from './callback-client.ts'
import type { EnvironmentContract, ExecuteContext, MethodHandlers, OperationContext } from './environment-contract.ts'
import { HostedExecution } from './execution-services.ts'
import { observerOf, reporterOf } from './observations.ts'
import { cancelled, OpenExecutions } from './open-executions.ts'
import { keyOfCommand, readCommand, type Operation } from './read-command.ts'
import { receiptOfFailure } from './receipts.ts'
import { settled } from './settled.ts'

type AnyMethods = Readonly<Record<string, z.ZodType>>
/** A contract whose types are of no interest any more. */
export type AnyContract = EnvironmentContract<undefined, AnyMethods>
type RequestOf<Type extends Operation['request']['type']> = Extract<Operation['request'], { type: Type }>

/** What one operation runs with. */
type Doing = {
  readonly operation: Operation
  readonly parts: Pick<OperationContext, 'deadline' | 'signal'>
  /** Ends the services of the operation. */
  readonly over: AbortSignal
}

/** What does the operations of one environment. */
export class Controller {
  readonly #contract: AnyContract
  readonly #fetch: Fetch | undefined
  readonly #answered = new AnsweredOperations()
  readonly #executions = new OpenExecutions()

  constructor(contract: AnyContract, fetch: Fetch | undefined) {
    this.#contract = contract
    this.#fetch = fetch
  }

  async run(command: unknown, signal?: AbortSignal): Promise<EnvironmentResponse> {
    const key = keyOfCommand(command)
    return this.#answered.once(key, async () => {
      const receipt = await this.#receipt(command, signal).catch((error: unknown) => receiptOfFailure(error))
      return { contract: ENVIRONMENT_CONTRACT, sequence: key.sequence, receipt }
    })
  }

  async #receipt(command: unknown, signal: AbortSignal = new AbortController().signal): Promise<EnvironmentReceipt> {
    const operation = readCommand(command)
    if (this.#answered.running >= MOST_OPERATIONS)
      throw new BrainError(0, 'overloaded', `Cannot do more than ${MOST_OPERATIONS} operations at once`, {
        retryable: true,
      })
    const { request } = operation
    if (request.type === 'execute') return this.#execute(operation, request, signal)
    const over = new AbortController()
    const doing = { operation, parts: { deadline: undefined, signal }, over: over.signal }
    return settled(this.#handle(doing), signal).finally(() => over.abort(isOver()))
  }

  async #handle(doing: Doing): Promise<EnvironmentReceipt> {
    const { operation } = doing
    const { request } = operation
    const { setup, cancel, detach, teardown, methods = {} } = this.#contract
    switch (request.type) {
      case 'setup': {
        // A configuration that cannot be used is refused here, also where there is nothing to do.
        const context = await this.#context(doing)
        const answer = await setup?.(context)
        return { type: 'accepted', ...this.#onTurnEnd(answer) }
      }
      case 'call': {
        const method = Object.hasOwn(methods, request.name) ? methods[request.name] : undefined
        if (method === undefined) throw unsupported(`there is no method "${request.name}"`)
        return callMethod(method, request, await this.#context(doing))
      }
      case 'cancel': {
        this.#executions.cancel({ ...operation, sequence: request.target_sequence })
        if (cancel === undefined) throw unsupported('executions cannot be cancelled')
        await cancel({ sequence: request.target_sequence }, await this.#context(doing))
        return { type: 'accepted' }
      }
      case 'detach':
      case 'teardown': {
        this.#executions.cancelAll(operation)
        await (request.type === 'detach' ? detach : teardown)?.(await this.#context(doing))
        return { type: 'accepted' }
      }
      case 'execute':
        throw unsupported('it is done elsewhere')
      default:
        return request satisfies never
    }
  }

  #onTurnEnd(answer: unknown) {
    if (answer === undefined || answer === null) return {}
    const { onTurnEnd } = membersOf(answer, ['onTurnEnd'], 'Cannot take what setup returned')
    if (onTurnEnd === undefined) return {}
    if (typeof onTurnEnd !== 'string' || !Object.hasOwn(this.#contract.methods ?? {}, onTurnEnd))
      throw new TypeError('Cannot take what setup returned: onTurnEnd must be the name of a declared method')
    return { on_turn_end: onTurnEnd }
  }

  async #execute(operation: Operation, request: RequestOf<'execute'>, outer: AbortSignal): Promise<EnvironmentReceipt> {
    const { execute } = this.#contract
    if (execute === undefined) throw unsupported('nothing can be executed here')
    if (request.deadline_ms !== undefined && request.deadline_ms <= 0)
      throw new BrainError(0, 'timeout', 'The deadline of the call has passed')
    const open = this.#executions.add(operation, request.deadline_ms)
    const close = (): void => {
      this.#executions.remove(operation)
      open.finish(isOver())
    }
    const onAbort = (): void => open.interrupt(cancelled())
    if (outer.aborted) onAbort()
    outer.addEventListener('abort', onAbort, { once: true })
    const over = new AbortController()
    const hosted = new HostedExecution(this.#client(request.callback, 'the execution', open.services), close)
    const { deadline, signal } = open
    const work = async (): Promise<EnvironmentReceipt> => {
      const context = await this.#context({ operation, parts: { deadline, signal }, over: over.signal })
      const { implementation, input } = request
      const ctx: ExecuteContext = Object.freeze({ ...context, execution: hosted.services })
      const value: unknown = await execute(deepFrozen({ implementation, input }), ctx as never)
      return receiptOfExecution(value, hosted)
    }
    try {
      const receipt = await settled(work(), signal)
      if (isEnd(receipt) || hosted.isAgentloop) close()
      return receipt
    } finally {
      outer.removeEventListener('abort', onAbort)
      over.abort(isOver())
    }
  }

  #client(callback: Callback | undefined, owner: string, over: AbortSignal): CallbackClient {
    return new CallbackClient({ callback, owner, over, fetch: this.#fetch })
  }

  async #context({ operation, parts, over }: Doing): Promise<OperationContext<never>> {
    const { request, session_id, binding, sequence, template, reporter } = operation
    const own = request.type === 'setup' ? request.configuration : null
    const configuration = operation.configuration ?? own
    const client = this.#client(operation.context, 'the operation', over)
    const options = await parsedOptions(this.#contract.options, configuration)
    // Checks take of the time of the operation: what is late or cancelled by then is not begun.
    parts.signal.throwIfAborted()
    return Object.freeze<OperationContext<never>>({
      options: options as never,
      configuration: deepFrozen(configuration),
      sessionId: session_id,
      environment: Object.freeze({ ...binding }),
      template,
      sequence,
      ...parts,
      ...observerOf(client, 'context'),
      environments: environmentServices((control) => client.call('environments', control as Json)),
      reporter: reporterOf(reporter, this.#fetch),
    })
  }
}

async function parsedOptions(schema: OptionsSchema | undefined, configuration: Json): Promise<unknown> {
  if (schema === undefined) return Object.freeze({})
  const parsed = await schema.safeParseAsync(configuration ?? {})
  if (parsed.success) return deepFrozen(parsed.data)
  throw new BrainError(
    0,
    'invalid_configuration',
    clip(`Cannot use the configuration: ${z.prettifyError(parsed.error)}`),
  )
}

async function callMethod(
  { input, output, run }: MethodHandlers<AnyMethods, Readonly<Record<never, never>>>[string],
  request: RequestOf<'call'>,
  ctx: OperationContext<never>,
): Promise<EnvironmentReceipt> {
  const what = `Cannot call "${request.name}"`
  const given = await input.safeParseAsync(request.input)
  if (!given.success) throw new BrainError(0, 'invalid_input', clip(`${what}: ${z.prettifyError(given.error)}`))
  ctx.signal.throwIfAborted()
  const value: unknown = await run(given.data, ctx)
  if (output === undefined) return resultOf(value ?? null)
  const made = await output.safeParseAsync(value)
  if (!made.success)
    throw new BrainError(0, 'invalid_output', clip(`${what}: its output: ${z.prettifyError(made.error)}`))
  return resultOf(made.data)
}

/** @throws BrainError `invalid_output` */
function resultOf(value: unknown): EnvironmentReceipt {
  try {
    return { type: 'result', output: jsonOf(value, 'output') }
  } catch (cause) {
    throw new BrainError(0, 'invalid_output', clip(`Cannot answer with the output: ${messageOf(cause)}`), { cause })
  }
}

/** Whatever says otherwise after a finish that Brain has acknowledged is not looked at. */
function receiptOfExecution(value: unknown, hosted: HostedExecution): EnvironmentReceipt {
  if (value !== undefined) return resultOf(value)
  if (hosted.isFinished) return { type: 'accepted' }
  return hosted.isAgentloop ? { type: 'result', output: {} } : { type: 'returned' }
}

/** Whether Brain takes an answer as the end of a tool. */
function isEnd(receipt: EnvironmentReceipt): boolean {
  if (receipt.type !== 'result') return receipt.type === 'failure' || receipt.type === 'unknown'
  return looksLikeOutcome(receipt.output) && receipt.output.status !== 'ok'
}

const unsupported = (reason: string): BrainError =>
  new BrainError(0, 'unsupported', `Cannot do the operation: ${reason}`)

const isOver = (): BrainError => new BrainError(0, 'invalid_request', 'Cannot go on: the operation is over')
