import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Json } from '../../kernel/json.ts'
import type { ToolService } from '../../contract/tool-service.ts'
import { toFailure } from './connections.ts'
import { streamEvents } from './event-stream.ts'
import { CallFailure } from './failures.ts'
import { parsed, readServiceResult, type ServiceResult } from './service-result.ts'

const PROGRESS_BYTES = 64 * 1024

/** How long a stream may stay open after its result. */
const LINGER_MS = 1000

export type AnswerForm = 'body' | 'events'

const fault = (reason: string): CallFailure => new CallFailure('fault', reason)

/**
 * Looks at the head of an answer.
 * @param viaProxy whether a proxy may have answered in place of the service
 * @throws CallFailure unless the service answers with a result
 */
export function formOf({ statusCode: status = 0, headers }: IncomingMessage, viaProxy: boolean): AnswerForm {
  if (status === 407 && viaProxy) throw new CallFailure('refusal', 'its proxy refuses it with HTTP 407')
  if (status >= 300 && status < 400)
    throw new CallFailure('refusal', `its service answered HTTP ${status}, and redirects are not followed`)
  if (status >= 400 && status < 500) throw new CallFailure('refusal', `its service answered HTTP ${status}`)
  if (status !== 200) throw fault(`its service answered HTTP ${status}, not 200`)
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw fault('it is compressed, which Brain has not asked for')
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type === 'application/json') return 'body'
  if (type === 'text/event-stream') return 'events'
  throw fault('its content type is neither application/json nor text/event-stream')
}

/** The result in a whole JSON body. @throws CallFailure */
export async function readBody(response: IncomingMessage, service: ToolService): Promise<ServiceResult> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of bytesOf(response)) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > service.max_output_bytes)
      throw fault(`it takes more than ${service.max_output_bytes} bytes (max_output_bytes)`)
  }
  const body = Buffer.concat(chunks, bytes)
  if (!isUtf8(body)) throw fault('it is not valid UTF-8')
  return readServiceResult(new TextDecoder().decode(body), service)
}

/**
 * The result in a stream, whose progress is told as it comes. Once the result is there, only another event can undo it:
 * a connection that is left open is closed, one that breaks has nothing more to say.
 *
 * @throws CallFailure
 */
export async function readEvents(
  response: IncomingMessage,
  service: ToolService,
  onProgress: (data: Json) => void,
): Promise<ServiceResult> {
  const mostBytes = (name: string): number => (name === 'progress' ? PROGRESS_BYTES : service.max_output_bytes)
  let result: ServiceResult | undefined
  let events = 0
  let linger: NodeJS.Timeout | undefined
  try {
    for await (const { name, data } of streamEvents(bytesOf(response), ['progress', 'result'], mostBytes)) {
      events++
      if (result !== undefined) throw fault('its stream goes on after the result')
      if (name === 'progress') onProgress(parsed(data, 'an event of progress'))
      else if (name === 'result') {
        result = readServiceResult(data, service)
        linger = setTimeout(() => response.destroy(), LINGER_MS)
      } else
        throw fault(`event ${events} of its stream ${name === '' ? 'has no name' : 'is neither progress nor result'}`)
    }
  } catch (cause) {
    if (result === undefined || !(cause instanceof CallFailure) || cause.failure === 'fault') throw cause
  } finally {
    clearTimeout(linger)
  }
  if (result === undefined)
    throw new CallFailure('close', 'its stream ended without a result (an event ends with an empty line)')
  return result
}

async function* bytesOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* response as AsyncIterable<Buffer>
  } catch (cause) {
    throw toFailure(cause)
  }
}
