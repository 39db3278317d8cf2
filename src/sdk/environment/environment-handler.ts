import { z } from 'zod'
import { clip, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import {
  ENVIRONMENT_CONTRACT,
  type Callback,
  type EnvironmentReceipt,
  type EnvironmentResponse,
} from '../../contract/environment-protocol.ts'
import { BrainError } from '../brain-error.ts'
import type { Fetch } from '../client/transport.ts'
import { wireMethodsOf } from '../declare/environment-methods.ts'
import { checkOptionsSchema, type OptionsSchema } from '../declare/placement.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { environmentServices } from '../host/environment-services.ts'
import { jsonOf } from '../json-value.ts'
import { quietly } from '../quietly.ts'
import { membersOf } from '../strict-members.ts'
import { AnsweredOperations, MOST_OPERATIONS } from './answered-operations.ts'
import { CallbackClient } from './callback-client.ts'
import type {
  EnvironmentContract,
  EnvironmentHandler,
  ExecuteContext,
  MethodHandlers,
  OperationContext,
} from './environment-contract.ts'
import { HostedExecution } from './execution-services.ts'
import { observerOf, reporterOf } from './observations.ts'
import { cancelled, OpenExecutions } from './open-executions.ts'
import { keyOfCommand, readCommand, type Operation } from './read-command.ts'
import { receiptOfFailure } from './receipts.ts'

type AnyMethods = Readonly<Record<string, z.ZodType>>
type AnyContract = EnvironmentContract<undefined, AnyMethods>
type RequestOf<Type extends Operation['request']['type']> = Extract<Operation['request'], { type: Type }>

/** What a handler that was told to stop may take to do so, before its operation is answered as unknown. */
const STOPPING_MS = 1000

const WHAT = 'Cannot declare what an environment does'
const HANDLERS = ['setup', 'execute', 'cancel', 'detach', 'teardown'] as const

/**
 * Does the operations of `environment/v1` (contract 5) with functions: the side of an environment that Brain asks. Needs
 * nothing but `fetch`; the HTTP listener and the check of its credential are the application's.
 *
 * An operation is done once: a command that is delivered again gets the answer of the first, see
 * {@link AnsweredOperations}. What a handler throws is a failure with the code of the BrainError, `unknown` for `ambiguous`
 * and `unknown`, `environment_error` for anything else. Methods that are not declared, and missing `execute` and `cancel`,
 * are `unsupported`; services that were not granted reject with `not_granted`.
 *
 * @param options `fetch`: in place of the platform's
 * @throws TypeError for members and schemas that cannot be used
 */
export function environmentHandler<
  Options extends OptionsSchema | undefined = undefined,
  Inputs extends AnyMethods = Readonly<Record<never, never>>,
>(contract: EnvironmentContract<Options, Inputs>, options: { readonly fetch?: Fetch } = {}): EnvironmentHandler {
  membersOf(contract, ['options', 'methods', ...HANDLERS], WHAT)
  checkOptionsSchema(contract.options, WHAT, [])
  for (const name of HANDLERS)
    if (contract[name] !== undefined && typeof contract[name] !== 'function')
      throw new TypeError(`${WHAT}: ${name} must be a function`)
  const methods = deepFrozen(wireMethodsOf(contract.methods ?? {}, WHAT, ['run']))
  for (const [name, method] of Object.entries<{ run?: unknown }>(contract.methods ?? {}))
    if (typeof method.run !== 'function') throw new TypeError(`${WHAT}: method "${name}": run must be a function`)
  const controller = new Controller(contract as unknown as AnyContract, options.fetch)
  return Object.freeze<EnvironmentHandler>({ methods, run: (command, signal) => controller.run(command, signal) })
}

/** What one operation runs with. */
type Doing = {
  readonly operation: Operation
  readonly parts: Pick<OperationContext, 'deadline' | 'signal'>
  /** Ends the services of the operation. */
  readonly over: AbortSignal
}

class Controller {
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
        const answer = await setup?.(await this.#context(doing))
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
      if (receipt.type === 'failure' || receipt.type === 'unknown' || hosted.isAgentloop) close()
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
    return Object.freeze<OperationContext<never>>({
      options: (await parsedOptions(this.#contract.options, configuration)) as never,
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
  const value: unknown = await run(given.data, ctx)
  if (output === undefined) return { type: 'result', output: jsonOf(value ?? null, 'output') }
  const made = await output.safeParseAsync(value)
  if (!made.success)
    throw new BrainError(0, 'invalid_output', clip(`${what}: its output: ${z.prettifyError(made.error)}`))
  return { type: 'result', output: jsonOf(made.data, 'output') }
}

/** Whatever says otherwise after a finish that Brain has acknowledged is not looked at. */
function receiptOfExecution(value: unknown, hosted: HostedExecution): EnvironmentReceipt {
  if (value !== undefined) return { type: 'result', output: jsonOf(value, 'output') }
  if (hosted.isFinished) return { type: 'accepted' }
  return hosted.isAgentloop ? { type: 'result', output: {} } : { type: 'returned' }
}

/** What the work comes to; unknown when it goes on although it was told to stop. */
async function settled(work: Promise<EnvironmentReceipt>, signal: AbortSignal): Promise<EnvironmentReceipt> {
  const stuck = Promise.withResolvers<EnvironmentReceipt>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const onAbort = (): void => {
    const message = clip(`The operation goes on although it was told to stop: ${messageOf(signal.reason)}`)
    timer = setTimeout(() => stuck.resolve({ type: 'unknown', message }), STOPPING_MS)
  }
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const receipt = quietly(work).catch((error: unknown) => receiptOfFailure(error, signal.reason))
  return Promise.race([receipt, stuck.promise]).finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}

const unsupported = (reason: string): BrainError =>
  new BrainError(0, 'unsupported', `Cannot do the operation: ${reason}`)

const isOver = (): BrainError => new BrainError(0, 'invalid_request', 'Cannot go on: the operation is over')
