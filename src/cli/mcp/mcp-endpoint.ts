import { randomBytes } from 'node:crypto'
import { ProtocolError } from '@modelcontextprotocol/server'
import { boundedLines } from '../../kernel/bounded-lines.ts'
import { BrainError, ERRORS, messageOf, type ErrorCode } from '../../kernel/errors.ts'
import { isJsonObject, parseJson, type Json, type JsonObject } from '../../kernel/json.ts'

/** One message of an answer may take this much: results are far smaller, unless an operator lets them grow. */
const MAX_LINE_BYTES = 64 * 1024 * 1024

/** The request was sent and its answer did not come: whether anything was done is not known. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost'
}

export type EndpointOptions = {
  /** Of a running server, without a path. */
  readonly url: string
  readonly session: string
  readonly token: string | undefined
}

/** `/mcp/{session}` of a running server, asked one request at a time in the form of revision 2025-11-25. */
export class McpEndpoint {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  #requests = 0

  constructor({ url, session, token }: EndpointOptions) {
    this.#url = `${url.replace(/\/+$/, '')}/mcp/${session}`
    this.#headers = {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': randomBytes(16).toString('hex'),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    }
  }

  nextId(): number {
    return ++this.#requests
  }

  /**
   * @param onMessage is told of the notifications that come before the answer
   * @returns the result
   * @throws BrainError when the server refuses or cannot be reached, ProtocolError with the error of the answer,
   *   {@link AnswerLost}
   */
  async request(
    message: { readonly id: number; readonly method: string; readonly params: JsonObject },
    onMessage: (message: JsonObject) => void = () => undefined,
  ): Promise<JsonObject> {
    for await (const line of this.#lines(await this.#post(message))) {
      const said: Json = line.startsWith('data:') ? parseJson(line.slice('data:'.length), 'an answer') : null
      if (!isJsonObject(said)) continue
      if (said['id'] === message.id) return resultIn(said)
      onMessage(said)
    }
    throw new AnswerLost(`the connection to ${this.#url} was closed`)
  }

  async notify(method: string, params: JsonObject): Promise<void> {
    const response = await this.#post({ method, params })
    await response.body?.cancel()
  }

  async #post(message: JsonObject): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    let response: Response
    try {
      response = await fetch(this.#url, { method: 'POST', headers: this.#headers, body, redirect: 'error' })
    } catch (error) {
      throw failureOf(this.#url, error)
    }
    if (!response.ok) throw await refusalIn(response)
    return response
  }

  async *#lines(response: Response): AsyncGenerator<string> {
    const refusal = (_line: number, reason: string): Error => new AnswerLost(`its answer cannot be read: ${reason}`)
    try {
      for await (const { bytes } of boundedLines(chunksOf(response), { lineBytes: MAX_LINE_BYTES, refusal }))
        yield bytes.toString()
    } catch (error) {
      throw error instanceof AnswerLost ? error : new AnswerLost(messageOf(error), { cause: error })
    }
  }
}

async function* chunksOf({ body }: Response): AsyncGenerator<Buffer> {
  for await (const chunk of body ?? []) yield Buffer.from(chunk)
}

/** The codes of failures that come before anything is sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

function failureOf(url: string, error: unknown): Error {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (!NOT_SENT.has(code)) return new AnswerLost(messageOf(cause), { cause: error })
  return new BrainError('executor_failed', `Cannot reach ${url}: ${code}; is the server running?`, { cause: error })
}

async function refusalIn(response: Response): Promise<BrainError> {
  const text = await response.text().catch(() => '')
  const { code, message } = problemIn(text)
  const known = typeof code === 'string' && isErrorCode(code) ? code : 'executor_failed'
  const said = typeof message === 'string' ? message : `the server answered ${response.status} ${text.slice(0, 200)}`
  return new BrainError(known, said)
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

function problemIn(text: string): JsonObject {
  try {
    const problem: Json = parseJson(text, 'a refusal')
    return isJsonObject(problem) ? problem : {}
  } catch {
    return {}
  }
}

function resultIn({ result, error }: JsonObject): JsonObject {
  if (isJsonObject(result)) return result
  const { code, message, data } = isJsonObject(error) ? error : {}
  throw new ProtocolError(
    typeof code === 'number' ? code : -32603,
    typeof message === 'string' ? message : 'Internal error',
    data,
  )
}
