import { z } from 'zod'
import { messageOf } from '../../kernel/errors.ts'
import { parseJson, type Json } from '../../kernel/json.ts'
import type { EnvironmentMethods } from '../../contract/environment.ts'
import type { EnvironmentResponse } from '../../contract/environment-protocol.ts'
import { BrainError, isBrainError } from '../brain-error.ts'
import type { Fetch } from '../client/transport.ts'
import { environmentHandler } from '../environment/environment-handler.ts'
import type { ExecuteContext, ExecuteRequest, OperationContext } from '../environment/environment-contract.ts'
import { MOST_CARRIER_DEPTH } from '../json-value.ts'
import { membersOf } from '../strict-members.ts'
import { sendGuarded, type SendToApplication } from './application-request.ts'
import { approved, denied, type Approved, type Authorize, type BridgeCall } from './approval.ts'
import { Relay } from './relay.ts'
import { answerSchema, definitionSchema, type HttpToolAnswer } from './tool-call.ts'

/** What {@link createHttpEnvironment} takes. */
export type HttpEnvironmentOptions = {
  /** Asked again for every operation. Nothing, or whatever is thrown, is `denied`. */
  readonly authorize: Authorize
  /** Where applications reach {@link HttpEnvironment.callback}; without it no `applicationTool()` is called. */
  readonly callbackUrl?: string | (() => string)
  /** Lets calls also go to http, to other ports than 443 and to addresses that are not public. False when absent. */
  readonly allowPrivateEndpoints?: boolean
  /** In place of the guarded request to applications. Addresses are its own affair. */
  readonly request?: SendToApplication
  /** In place of the platform's, for what Brain is asked. */
  readonly fetch?: Fetch
}

/** A bridge between Brain and applications. */
export type HttpEnvironment = {
  readonly methods: EnvironmentMethods
  /** Does what Brain sent to `POST /v1/operations`, as `run` of an `environmentHandler`. */
  readonly handle: (command: unknown, signal?: AbortSignal) => Promise<EnvironmentResponse>
  /** Answers what an application sent to `POST /v1/callback`. */
  readonly callback: (request: Request) => Promise<Response>
}

const WHAT = 'Cannot make an HTTP environment'
const MOST_ANSWER_BYTES = 4 * 2 ** 20

const implementationSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('http_tool'), definition: definitionSchema, configuration: z.strictObject({}) }),
  z.strictObject({ type: z.literal('application_tool'), definition: definitionSchema, options: z.custom<Json>() }),
])

/**
 * Makes a bridge: an environment that calls functions of applications over HTTP (contract 5.6), one request a call. It
 * alone holds what Brain gave for a call; an application gets a capability of the bridge, for that call and as long as its
 * request lasts.
 *
 * @throws TypeError for options that cannot be used
 */
export function createHttpEnvironment(options: HttpEnvironmentOptions): HttpEnvironment {
  membersOf(options, ['authorize', 'callbackUrl', 'allowPrivateEndpoints', 'request', 'fetch'], WHAT)
  if (typeof options.authorize !== 'function') throw new TypeError(`${WHAT}: authorize must be a function`)
  const bridge = new Bridge(options)
  const { methods, run } = environmentHandler(
    {
      methods: {
        inspect: {
          description: 'The names of the tools that may be called here, and how many milliseconds a call may take.',
          input: z.strictObject({}),
          output: z.object({ tools: z.array(z.string()), timeoutMs: z.number() }),
          run: async (_, ctx) => {
            const { tools, timeoutMs } = await bridge.approve('call', ctx)
            return { tools, timeoutMs }
          },
        },
      },
      setup: async (ctx) => void (await bridge.approve('setup', ctx)),
      execute: (request, ctx) => bridge.execute(request, ctx),
      cancel: () => undefined,
    },
    options.fetch === undefined ? {} : { fetch: options.fetch },
  )
  return Object.freeze<HttpEnvironment>({ methods, handle: run, callback: (request) => bridge.relay.take(request) })
}

class Bridge {
  readonly relay = new Relay()
  readonly #options: HttpEnvironmentOptions
  readonly #send: SendToApplication

  constructor(options: HttpEnvironmentOptions) {
    this.#options = options
    this.#send = options.request ?? sendGuarded(options.allowPrivateEndpoints === true)
  }

  /** @throws as {@link approved} does */
  approve(operation: BridgeCall['operation'], ctx: OperationContext, tool?: string): Promise<Approved> {
    return approved(this.#options.authorize, { operation, tool }, ctx)
  }

  async execute({ implementation, input }: ExecuteRequest, ctx: ExecuteContext): Promise<Json | undefined> {
    const parsed = implementationSchema.safeParse(implementation)
    if (!parsed.success)
      throw new BrainError(0, 'unsupported', 'Cannot run it: place it with httpTool() or applicationTool()')
    const { definition } = parsed.data
    const approval = await this.approve('execute', ctx, definition.name)
    if (!approval.tools.includes(definition.name)) throw denied(`the tool "${definition.name}" is not approved`)
    const left = (ctx.deadline?.getTime() ?? Number.POSITIVE_INFINITY) - Date.now()
    const timeoutMs = Math.min(approval.timeoutMs, left)
    if (timeoutMs <= 0) throw new BrainError(0, 'timeout', 'The deadline of the call has passed')
    const call = {
      sessionId: ctx.sessionId,
      environment: ctx.environment.name,
      sequence: ctx.sequence,
      tool: definition,
      input,
      deadlineAtMs: Date.now() + timeoutMs,
    }
    const ask = (body: object): Promise<HttpToolAnswer> => this.#ask(body, { ...approval, timeoutMs }, ctx.signal)
    if (parsed.data.type === 'http_tool') return plain(ctx, await ask({ contract: 'http-tool/v1', ...call }))
    const { options } = parsed.data
    return this.#relayed(ctx, (callback) => ask({ contract: 'http-tool/v2', ...call, options, callback }))
  }

  /** What is durable by the end of the request counts, whatever becomes of its answer. */
  async #relayed(ctx: ExecuteContext, ask: (callback: object) => Promise<HttpToolAnswer>): Promise<undefined> {
    const { callbackUrl } = this.#options
    const url = typeof callbackUrl === 'function' ? callbackUrl() : callbackUrl
    if (url === undefined)
      throw new BrainError(0, 'unsupported', 'Cannot call the application: the bridge has no callbackUrl')
    const relayed = this.relay.open(url, ctx.execution)
    const answer = await ask(relayed.callback).catch((error: unknown) => asError(error))
    const end = await relayed.close()
    if (end === 'acknowledged') return
    if (end === 'in doubt')
      throw new BrainError(0, 'unknown', 'Brain may have taken the end of the call: its answer got lost')
    if (answer instanceof Error) throw answer
    if (answer.type === 'success') throw unreadable('it has another version')
    if (answer.type === 'failure') throw new BrainError(0, answer.code, answer.message)
  }

  async #ask(body: object, { endpoint, token, timeoutMs }: Approved, signal: AbortSignal): Promise<HttpToolAnswer> {
    const headers = {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    const answer = await this.#send({
      url: new URL(endpoint),
      headers,
      body: JSON.stringify(body),
      timeoutMs,
      mostBytes: MOST_ANSWER_BYTES,
      signal,
    }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw isBrainError(error) ? error : unreadable('it got lost')
    })
    if (answer.status >= 300 && answer.status < 500)
      throw new BrainError(0, 'tool_http_status', `The application refused the call with status ${answer.status}`)
    if (answer.status !== 200) throw unreadable(`it has status ${answer.status}`)
    return readAnswer(answer.body)
  }
}

function readAnswer(text: string): HttpToolAnswer {
  try {
    return answerSchema.parse(parseJson(text, 'the answer', MOST_CARRIER_DEPTH)) as HttpToolAnswer
  } catch {
    throw unreadable('it is malformed')
  }
}

/** The function has returned, so the call is over; Brain is told by the bridge. */
async function plain({ execution }: ExecuteContext, answer: HttpToolAnswer): Promise<Json> {
  if (answer.type === 'completed') throw unreadable('it has another version')
  if (answer.type === 'failure') throw new BrainError(0, answer.code, answer.message)
  const outcome = { status: 'ok', value: answer.value }
  await execution.finish(outcome)
  return outcome
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(messageOf(error)))

const unreadable = (reason: string): BrainError =>
  new BrainError(0, 'unknown', `No usable answer of the application came back: ${reason}`)
