import { z } from 'zod'
import { BEARER_TOKEN } from '../../kernel/bearer-token.ts'
import { BrainError } from '../brain-error.ts'
import type { OperationContext } from '../environment/environment-contract.ts'
import { LONGEST_CALL_MS, USUAL_CALL_MS } from './tool-call.ts'

/** What a bridge is to do, for whoever operates it. */
export type BridgeCall = {
  /** `call` is a call of the method `inspect`. */
  readonly operation: 'setup' | 'execute' | 'call'
  readonly sessionId: string
  readonly environment: string
  /** As `http()` and `application()` have made it; nobody has checked who wrote it. */
  readonly configuration:
    | { readonly binding: string }
    | { readonly type: 'application'; readonly endpoint: string; readonly timeoutMs: number }
  /** The tool that is to be called. */
  readonly tool?: string
}

/** What an operator approves. */
export type Approval = {
  /** Where the application takes calls; the endpoint of `application()` when absent. */
  readonly endpoint?: string
  /** What the bridge shows there, as a bearer. */
  readonly token?: string
  /** Names of the tools that may be called. */
  readonly tools: readonly string[]
  /** Milliseconds that a call may take, at most 300000; 30000 when absent. That of `application()` may be less. */
  readonly timeoutMs?: number
}

/** Nothing, or whatever is thrown, is `denied`. */
export type Authorize = (
  call: BridgeCall,
  signal: AbortSignal,
) => Approval | undefined | null | Promise<Approval | undefined | null>

/** An approval, with all that is needed for a call. */
export type Approved = {
  readonly endpoint: string
  readonly token: string | undefined
  readonly tools: string[]
  readonly timeoutMs: number
}

const configurationSchema = z.union([
  z.strictObject({ binding: z.string() }),
  z.strictObject({
    type: z.literal('application'),
    endpoint: z.string(),
    timeoutMs: z.number().positive().max(LONGEST_CALL_MS),
  }),
])

const approvalSchema = z.strictObject({
  endpoint: z.string().optional(),
  token: z.string().regex(BEARER_TOKEN).optional(),
  tools: z.array(z.string()),
  timeoutMs: z.number().positive().max(LONGEST_CALL_MS).default(USUAL_CALL_MS),
})

/**
 * Asks the operator whether a bridge may do something.
 *
 * @throws BrainError `denied`; `invalid_configuration`; the reason of the operation's signal
 */
export async function approved(
  authorize: Authorize,
  { operation, tool }: Pick<BridgeCall, 'operation'> & { readonly tool: string | undefined },
  ctx: OperationContext,
): Promise<Approved> {
  const parsed = configurationSchema.safeParse(ctx.configuration)
  if (!parsed.success)
    throw new BrainError(
      0,
      'invalid_configuration',
      'Cannot use the configuration: it is none of http() and application()',
    )
  const configuration = parsed.data
  const about = { operation, sessionId: ctx.sessionId, environment: ctx.environment.name, configuration }
  const call: BridgeCall = { ...about, ...(tool !== undefined && { tool }) }
  const approval = await authorized(authorize, call, ctx.signal)
  // Why not is between the operator and whoever asks.
  if (approval === undefined || approval === null) throw denied('it is not approved')
  const parsedApproval = approvalSchema.safeParse(approval)
  if (!parsedApproval.success) throw denied(`authorize gave no approval: ${approvalFault(parsedApproval.error)}`)
  const { endpoint, token, tools, timeoutMs } = parsedApproval.data
  const isApplication = 'type' in configuration
  const where = endpoint ?? (isApplication ? configuration.endpoint : undefined)
  if (where === undefined || !isEndpoint(where)) throw denied('there is no endpoint that can be used')
  return {
    endpoint: where,
    token,
    tools,
    timeoutMs: Math.ceil(isApplication ? Math.min(timeoutMs, configuration.timeoutMs) : timeoutMs),
  }
}

/** Nothing is sent for a call that nobody waits for, whenever its operator decides. @throws the reason of the signal */
async function authorized(authorize: Authorize, call: BridgeCall, signal: AbortSignal): Promise<unknown> {
  const over = Promise.withResolvers<never>()
  const onAbort = (): void => over.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const asking = (async () => authorize(call, signal))().catch(() => undefined)
    const approval = await Promise.race([asking, over.promise])
    signal.throwIfAborted()
    return approval
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Which member it is, and nothing of what it holds. */
const approvalFault = ({ issues: [first] }: z.ZodError): string =>
  first === undefined || first.path.length === 0 ? 'it has other members' : `${first.path.join('.')} cannot be used`

function isEndpoint(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && username === '' && password === ''
}

export const denied = (reason: string): BrainError =>
  new BrainError(0, 'denied', `Cannot call the application: ${reason}`)
