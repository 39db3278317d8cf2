import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { messageOf } from '../../../kernel/errors.ts'
import { LIMITS, type Limits } from '../../../contract/limits.ts'
import { ModelFailure } from '../../model-provider.ts'
import { exceeded } from './limit-failure.ts'

export type Exchange = {
  /** The provider, as messages name it. */
  readonly provider: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly limits: Limits
  readonly signal: AbortSignal
}

export type Answer = {
  readonly status: number
  readonly contentType: string
  /** Ends the connection when it is left before its end. @throws ModelFailure */
  readonly body: AsyncIterable<Buffer>
  /** Ends the connection. */
  close(): void
}

/**
 * Sends one request and waits for the head of its answer.
 *
 * A connection of its own, used once: on a kept one that turns out dead nobody could tell whether the request arrived.
 * Redirects are not followed, since the key would follow them, and no proxy takes part.
 *
 * @throws ModelFailure: certain before the connection stands, `ambiguous` after
 */
export async function exchange(asked: Exchange): Promise<Answer> {
  const request = open(asked)
  // `once` below tells of an error before the answer; one that comes later is read with the body.
  request.on('error', () => undefined)
  const connection = watchConnection(request, asked)
  request.end(asked.body)
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return {
      status: response.statusCode ?? 0,
      contentType: response.headers['content-type'] ?? '',
      body: bodyOf(response, asked),
      close: () => void request.destroy(),
    }
  } catch (error) {
    request.destroy()
    throw connection.stands ? lost(asked.provider, error) : unreachable(asked, error, connection.isLate)
  } finally {
    connection.release()
  }
}

const isSecure = (url: string): boolean => url.startsWith('https:')

function open({ provider, url, headers, body, signal }: Exchange): ClientRequest {
  const send = isSecure(url) ? httpsRequest : httpRequest
  const common = { 'content-type': 'application/json', 'accept-encoding': 'identity', 'user-agent': 'brain' }
  try {
    return send(url, {
      method: 'POST',
      agent: false,
      signal,
      headers: { ...common, ...headers, 'content-length': Buffer.byteLength(body) },
    })
  } catch {
    // Node checks headers when they are given; the only one that comes from outside is the key.
    throw new ModelFailure(
      'invalid_request',
      `Cannot call provider "${provider}": the api_key of the session holds characters that no HTTP header may have`,
    )
  }
}

type Connection = { readonly stands: boolean; readonly isLate: boolean; release(): void }

function watchConnection(request: ClientRequest, { url, limits }: Exchange): Connection {
  const ms = limits.modelConnectSecs * 1000
  const state = { stands: false, isLate: false, release: () => clearTimeout(timer) }
  const timer =
    ms === 0
      ? undefined
      : setTimeout(() => {
          state.isLate = true
          request.destroy()
        }, ms)
  request.once('socket', (socket) =>
    socket.once(isSecure(url) ? 'secureConnect' : 'connect', () => {
      state.stands = true
      clearTimeout(timer)
    }),
  )
  return state
}

function unreachable({ provider, limits }: Exchange, cause: unknown, isLate: boolean): ModelFailure {
  // Node's words name the address, which is the operator's to know.
  const { code } = cause as NodeJS.ErrnoException
  const reason = isLate
    ? `no connection within ${limits.modelConnectSecs} seconds (${LIMITS.modelConnectSecs.variable})`
    : `no connection${code === undefined ? '' : ` (${code})`}`
  return new ModelFailure('model_provider_failed', `Cannot reach provider "${provider}": ${reason}; nothing was sent`, {
    retryable: true,
    cause,
  })
}

function lost(provider: string, cause: unknown): ModelFailure {
  return new ModelFailure(
    'model_provider_failed',
    `The connection to provider "${provider}" was lost before its answer was complete: ${messageOf(cause)}; it may have done the work`,
    { ambiguous: true, cause },
  )
}

/** For an answer whose end did not come although the connection ended in order. */
export const cutShort = (provider: string): ModelFailure => lost(provider, 'the stream ended early')

async function* bodyOf(response: IncomingMessage, { provider, limits }: Exchange): AsyncGenerator<Buffer> {
  let bytes = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (limits.modelStreamBytes > 0 && bytes > limits.modelStreamBytes)
        throw exceeded(provider, 'modelStreamBytes', limits)
      yield chunk
    }
  } catch (error) {
    throw error instanceof ModelFailure ? error : lost(provider, error)
  }
}
