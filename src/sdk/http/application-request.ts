import { isPublicAddress } from '../../kernel/net/public-address.ts'
import { guardedRequest, RequestFailure } from '../../kernel/net/guarded-request.ts'
import { BrainError } from '../brain-error.ts'

/** One call of an application, as a bridge sends it. */
export type ApplicationRequest = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Milliseconds for the whole of it. */
  readonly timeoutMs: number
  /** Bytes of the answer. */
  readonly mostBytes: number
  readonly signal: AbortSignal
}

/** What came back of it, decoded. */
export type ApplicationAnswer = { readonly status: number; readonly body: string }

/** Sends a call once. Whatever it rejects with leaves the call in doubt, but for a BrainError with another code. */
export type SendToApplication = (request: ApplicationRequest) => Promise<ApplicationAnswer>

const CONNECT_MS = 5000

/**
 * Sends calls over a connection of their own each, without redirects and proxies. Where they lead is checked at the socket.
 *
 * @param isAnywhere whether also to http, to other ports than 443 and to addresses that are not public
 */
export const sendGuarded =
  (isAnywhere: boolean): SendToApplication =>
  async ({ url, headers, body, timeoutMs, mostBytes, signal }) => {
    // What may be reached is nobody's business: all of it reads the same.
    if (!isAnywhere && !(url.protocol === 'https:' && url.port === '')) throw unreachable()
    try {
      const answer = await guardedRequest({
        url,
        headers,
        body,
        isFit: isAnywhere ? () => true : isPublicAddress,
        connectMs: Math.min(CONNECT_MS, timeoutMs),
        totalMs: timeoutMs,
        mostBytes,
        signal,
      })
      return { status: answer.status, body: new TextDecoder('utf-8', { fatal: true }).decode(answer.body) }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof RequestFailure)) throw error
      if (error.reason === 'timeout' && error.isSent)
        throw new BrainError(0, 'timeout', 'The application did not answer in time')
      if (!error.isSent) throw unreachable(error)
      throw error
    }
  }

const unreachable = (cause?: unknown): BrainError =>
  new BrainError(0, 'tool_unreachable', 'The application cannot be reached', { cause })
