import { Readable, type Writable } from 'node:stream'
import { type JSONRPCMessage, ProtocolErrorCode, type RequestId } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { boundedLines } from '../../kernel/bounded-lines.ts'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../kernel/json.ts'

/** Of one message of a client. */
const MAX_LINE_BYTES = 10 * 1024 * 1024
const LINE_END = Buffer.from('\n')

/** A client that writes messages on one stream and reads them on another, a line each. */
export type ClientStreams = {
  readonly transport: StdioServerTransport
  /** The arguments of a call, until it is answered. */
  readonly sentArguments: (id: RequestId) => JsonObject | undefined
}

/**
 * Reads what a client writes as Brain reads JSON everywhere, before the SDK does: that drops members called `__proto__`,
 * and rounds numbers that a double cannot carry. A request with what is refused is answered with the reason.
 */
export function openClientStreams(input: AsyncIterable<Buffer>, output: Writable): ClientStreams {
  const sent = new Map<RequestId, JsonObject>()
  const take = (line: string): boolean => {
    try {
      remember(sent, parseJson(line, 'this message'))
      return true
    } catch (error) {
      const id = idIn(line)
      if (id !== undefined) transport.send(refusal(id, error)).catch(() => undefined)
      return id === undefined
    }
  }
  const lines = Readable.from(linesOf(input, take))
  lines.on('error', () => undefined) // the transport tells of it, and once that is closed nobody needs to know
  const transport = new ForgettingTransport(sent, lines, output)
  return { transport, sentArguments: (id) => sent.get(id) }
}

/** Forgets the arguments of a request with its answer. */
class ForgettingTransport extends StdioServerTransport {
  readonly #sent: Map<RequestId, JsonObject>

  constructor(sent: Map<RequestId, JsonObject>, input: Readable, output: Writable) {
    super(input, output, { maxBufferSize: 2 * MAX_LINE_BYTES })
    this.#sent = sent
  }

  override send(message: JSONRPCMessage): Promise<void> {
    if (!('method' in message) && message.id !== undefined) this.#sent.delete(message.id)
    return super.send(message)
  }
}

async function* linesOf(input: AsyncIterable<Buffer>, take: (line: string) => boolean): AsyncGenerator<Buffer> {
  const refuse = (line: number, reason: string): Error =>
    new BrainError('invalid_request', `Cannot read message ${line}: ${reason}`)
  for await (const { bytes } of boundedLines(input, { lineBytes: MAX_LINE_BYTES, refusal: refuse })) {
    if (take(bytes.toString())) yield Buffer.concat([bytes, LINE_END])
  }
}

function remember(sent: Map<RequestId, JsonObject>, message: Json): void {
  if (!isJsonObject(message)) return
  const { id, method, params } = message
  const given = method === 'tools/call' && isJsonObject(params) ? params['arguments'] : undefined
  if (isRequestId(id) && isJsonObject(given)) sent.set(id, given)
}

/** What is no JSON at all is nobody's request; the SDK passes over it. */
function idIn(line: string): RequestId | undefined {
  try {
    const message = JSON.parse(line) as Json
    return isJsonObject(message) && isRequestId(message['id']) ? message['id'] : undefined
  } catch {
    return undefined
  }
}

const isRequestId = (id: Json | undefined): id is RequestId => typeof id === 'string' || typeof id === 'number'

const refusal = (id: RequestId, error: unknown): JSONRPCMessage => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: ProtocolErrorCode.InvalidParams,
    message: messageOf(error),
    data: { code: 'invalid_request', retryable: false },
  },
})
