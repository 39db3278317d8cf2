import { clip, messageOf } from '../../kernel/errors.ts'
import { parseJson, type Json } from '../../kernel/json.ts'
import { boundedText } from '../bounded-text.ts'
import { BrainError } from '../brain-error.ts'
import type { Fetch } from '../client/transport.ts'
import { isPlacedTool, type HostExecutable, type PlacedTool } from '../declare/tool.ts'
import { CallbackClient } from '../environment/callback-client.ts'
import { publishedOutcome } from '../host/published-outcome.ts'
import { faultsOf } from '../zod-faults.ts'
import { canonicalText, jsonOf, MOST_CARRIER_DEPTH } from '../json-value.ts'
import { membersOf } from '../strict-members.ts'
import { plainContext, RelayedCall } from './application-context.ts'
import {
  callSchema,
  failureAnswer,
  httpDefinitionOf,
  LONGEST_CALL_MS,
  type HttpToolAnswer,
  type HttpToolCall,
} from './tool-call.ts'

/** What {@link createToolHandler} takes. */
export type ToolHandlerOptions = {
  /** Functions, placed with their options, as in `[lookup({ prefix: 'a' })]`; each name once. */
  readonly tools: readonly PlacedTool[]
  /** Whether this request may make this call; anything but true, and whatever it throws, is `denied`. The body is read. */
  readonly authorize: (request: Request, call: HttpToolCall) => boolean | Promise<boolean>
  /** Bytes of a request; 1 MiB when absent. */
  readonly maxBodyBytes?: number
  /** In place of `fetch`, for the relay of the bridge. */
  readonly callbackRequest?: Fetch
}

type Served = { readonly executable: HostExecutable; readonly definition: string; readonly options: string }

const WHAT = 'Cannot make a tool handler'
const MIB = 2 ** 20

/**
 * Serves tools of an application to a bridge, one `POST` a call, wherever there are `Request`, `Response` and `fetch`: calls
 * of `httpTool()`, whose functions return plain JSON, and of `applicationTool()`, whose functions have options, `emitResult`
 * and `finish`. A call ends with its request, at its deadline, or after 300 s.
 *
 * @returns answers 405 to anything but POST, 413 to too many bytes, 400 to what is no call, and 200 otherwise: what the call
 * came to is in the body
 * @throws TypeError for options that cannot be used
 */
export function createToolHandler(options: ToolHandlerOptions): (request: Request) => Promise<Response> {
  membersOf(options, ['tools', 'authorize', 'maxBodyBytes', 'callbackRequest'], WHAT)
  const { tools, authorize, maxBodyBytes = MIB, callbackRequest } = options
  if (typeof authorize !== 'function') throw new TypeError(`${WHAT}: authorize must be a function`)
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw new TypeError(`${WHAT}: maxBodyBytes must be a whole number of at least 1`)
  const served = servedTools(tools)
  return async (request) => {
    if (request.method !== 'POST') return answered(405, failureAnswer('invalid_request', 'Only POST is served here'))
    const text = await boundedText(request.body, maxBodyBytes).catch(() => '')
    if (text === undefined)
      return answered(413, failureAnswer('invalid_request', `The call takes more than ${maxBodyBytes} bytes`))
    const call = callOf(text)
    if (typeof call === 'string')
      return answered(400, failureAnswer('invalid_request', `Cannot read the call: ${call}`))
    return answered(200, await answerOf({ call, request, served, authorize, callbackRequest }))
  }
}

function servedTools(tools: readonly PlacedTool[]): ReadonlyMap<string, Served> {
  if (!Array.isArray(tools)) throw new TypeError(`${WHAT}: tools must be a list`)
  const served = new Map<string, Served>()
  for (const tool of tools as readonly PlacedTool[]) {
    if (!isPlacedTool(tool) || tool.executable.type !== 'function')
      throw new TypeError(`${WHAT}: tools must be placed functions, as in [lookup()]`)
    const { name, definition, executable } = tool
    if (served.has(name)) throw new TypeError(`${WHAT}: there are two tools named "${name}"`)
    const options = canonicalText(jsonOf(executable.options, `${WHAT}: the options of "${name}"`))
    const advertised = canonicalText(httpDefinitionOf(definition) as unknown as Json)
    served.set(name, { executable, definition: advertised, options })
  }
  return served
}

const answered = (status: number, answer: HttpToolAnswer): Response =>
  new Response(JSON.stringify(answer), {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'POST' }),
    },
  })

/** @returns what is wrong with it, where it is no call */
function callOf(text: string): HttpToolCall | string {
  try {
    const parsed = callSchema.safeParse(parseJson(text, 'the body', MOST_CARRIER_DEPTH))
    return parsed.success ? (parsed.data as HttpToolCall) : faultsOf(parsed.error)
  } catch (error) {
    return clip(messageOf(error), 300)
  }
}

type Asked = {
  readonly call: HttpToolCall
  readonly request: Request
  readonly served: ReadonlyMap<string, Served>
  readonly authorize: ToolHandlerOptions['authorize']
  readonly callbackRequest: Fetch | undefined
}

async function answerOf(asked: Asked): Promise<HttpToolAnswer> {
  const { call, request } = asked
  const late = (): HttpToolAnswer => failureAnswer('timeout', 'The deadline of the call has passed')
  const left = Math.min(call.deadlineAtMs - Date.now(), LONGEST_CALL_MS)
  if (left <= 0) return late()
  const over = new AbortController()
  const interrupted = Promise.withResolvers<HttpToolAnswer>()
  const interrupt = (reason: DOMException): void => {
    over.abort(reason)
    interrupted.resolve(late())
  }
  const timer = setTimeout(
    () => interrupt(new DOMException('The deadline of the call has passed', 'TimeoutError')),
    left,
  )
  const onGone = (): void => interrupt(new DOMException('Nobody waits for the call any more', 'AbortError'))
  request.signal.addEventListener('abort', onGone, { once: true })
  if (request.signal.aborted) onGone()
  try {
    const work = doCall(asked, over.signal).catch((error: unknown) =>
      over.signal.aborted ? late() : failureAnswer('tool_error', messageOf(error)),
    )
    return await Promise.race([work, interrupted.promise])
  } finally {
    clearTimeout(timer)
    request.signal.removeEventListener('abort', onGone)
    // Nothing goes on beyond the request.
    over.abort(new DOMException('The call is over', 'AbortError'))
  }
}

async function doCall(asked: Asked, signal: AbortSignal): Promise<HttpToolAnswer> {
  const { call, request, served, authorize } = asked
  const isAllowed = await (async () => authorize(request, call))().catch(() => false)
  if (isAllowed !== true) return failureAnswer('denied', 'The call is not authorized')
  const { name } = call.tool
  const tool = served.get(name)
  if (tool === undefined || canonicalText(call.tool as unknown as Json) !== tool.definition)
    return failureAnswer('incompatible_tool', `The tool "${name}" is not served as it was advertised`)
  if (call.contract === 'http-tool/v2' && canonicalText(call.options) !== tool.options)
    return failureAnswer('incompatible_tool', `The tool "${name}" is not served with these options`)
  const parsed = await tool.executable.input.safeParseAsync(call.input)
  if (!parsed.success) return failureAnswer('invalid_input', faultsOf(parsed.error))
  // Checks of the input take of the time of the call: what is late by then is not begun.
  signal.throwIfAborted()
  return call.contract === 'http-tool/v1'
    ? runPlain(call, tool.executable, parsed.data, signal)
    : runRelayed(asked, { call, executable: tool.executable }, parsed.data, signal)
}

/** Version 1: what the function returns is the result, and no outcome is looked for in it. */
async function runPlain(
  call: HttpToolCall,
  { run, output, options }: HostExecutable,
  input: unknown,
  signal: AbortSignal,
) {
  const context = Object.freeze(plainContext(call, options, signal))
  const value: unknown = await run(input as never, context as never)
  try {
    const outcome = await publishedOutcome({ status: 'ok', value }, output, undefined)
    return { type: 'success', value: outcome.status === 'ok' ? outcome.value : null } as const
  } catch (error) {
    return failureAnswer('invalid_output', messageOf(error))
  }
}

type Relayed = {
  readonly call: Extract<HttpToolCall, { contract: 'http-tool/v2' }>
  readonly executable: HostExecutable
}

/** Version 2: everything is said through the relay, and the answer only tells that nothing more comes. */
async function runRelayed(
  { callbackRequest }: Asked,
  { call, executable }: Relayed,
  input: unknown,
  signal: AbortSignal,
) {
  const { callback } = call
  const client = new CallbackClient({ callback, owner: 'the call', over: signal, fetch: callbackRequest })
  const relayed = new RelayedCall(client, executable)
  try {
    const value: unknown = await executable.run(input as never, relayed.context(call, signal) as never)
    await relayed.publishReturn(value).catch((error: unknown) => relayed.blame(error))
  } catch (error) {
    if (!relayed.isFinished && relayed.fault === undefined) return failureAnswer('tool_error', messageOf(error))
  }
  return relayed.isFinished || relayed.fault === undefined ? ({ type: 'completed' } as const) : failureOf(relayed.fault)
}

/** What Brain refused has the code of that; what it may have taken is in doubt. */
const failureOf = (error: Error): HttpToolAnswer => {
  const code = error instanceof BrainError ? error.code : 'tool_error'
  return failureAnswer(code === 'ambiguous' ? 'unknown' : code, messageOf(error))
}
