import { isUtf8 } from 'node:buffer'
import { isJsonObject, parseJson, type Json, type JsonObject } from '../../../kernel/json.ts'
import type { ModelResult } from '../../../contract/message.ts'
import { ModelFailure, type FailedResponse } from '../../model-provider.ts'
import { cutShort, exchange, type Answer, type Exchange } from './exchange.ts'
import { exceeded, unusable } from './limit-failure.ts'
import { refusalOf } from './refusal.ts'
import { serverSentEvents, StreamFault } from './server-sent-events.ts'

/** Puts an answer together from the events of one wire. */
export interface AnswerFold {
  /** @returns whether this event was the last one. @throws ModelFailure */
  take(event: JsonObject): boolean
  /** Takes an answer that came in one piece, from a provider that does not stream. @throws ModelFailure */
  takeWhole(answer: JsonObject): void
  /** Whether an answer whose stream ended without its last event is whole all the same. */
  readonly isWhole: boolean
  /** @throws ModelFailure when there is no usable answer */
  result(): ModelResult
  /** What a failure may tell of it. */
  readonly known: FailedResponse | undefined
}

export type Question = Exchange & { readonly redact: (text: string) => string }

/** Sends a question once and folds its answer. @throws ModelFailure */
export async function ask(question: Question, fold: AnswerFold): Promise<ModelResult> {
  const answer = await exchange(question)
  try {
    await refuseUnlessOk(question, answer)
    if (isJson(answer)) fold.takeWhole(await wholeOf(question, answer))
    else if (!(await foldEvents(question, answer, fold)) && !fold.isWhole) throw cutShort(question.provider)
    return fold.result()
  } catch (error) {
    throw withResponse(toFailure(question, error), fold.known)
  } finally {
    // Nothing of what may still come is wanted; the connection is not used again.
    answer.close()
  }
}

/** @throws ModelFailure when the provider did not take the call */
export async function refuseUnlessOk({ provider, limits, redact }: Question, answer: Answer): Promise<void> {
  if (answer.status >= 200 && answer.status < 300) return
  throw await refusalOf(provider, answer, { maxBytes: limits.modelErrorBytes, redact })
}

const mediaType = ({ contentType }: Answer): string => contentType.split(';')[0]?.trim().toLowerCase() ?? ''
const isJson = (answer: Answer): boolean => mediaType(answer) === 'application/json'

/** @returns whether the last event came. */
async function foldEvents(question: Question, answer: Answer, fold: AnswerFold): Promise<boolean> {
  for await (const event of eventsOf(question, answer)) if (fold.take(event)) return true
  return false
}

/** A server may write text with more escapes than we do. */
const REPEATED_AT_MOST = 2

/** The events of a stream, to its end or the mark that some put there. @throws StreamFault, ModelFailure */
export async function* eventsOf({ provider, body, limits }: Exchange, answer: Answer): AsyncGenerator<JsonObject> {
  const type = mediaType(answer)
  if (type !== '' && type !== 'text/event-stream')
    throw unusable(provider, `it is ${JSON.stringify(type.slice(0, 80))} and no stream of events`)
  const bound = {
    maxBytes: limits.modelFrameBytes,
    requestBytes: Buffer.byteLength(body) * REPEATED_AT_MOST,
    maxRepeatedBytes: limits.modelOutputBytes === 0 ? Infinity : limits.modelOutputBytes,
  }
  for await (const data of serverSentEvents(answer.body, bound)) {
    if (data === '[DONE]') return
    const event = data.trim() === '' ? null : parsed(provider, data, 'an event of its stream')
    if (isJsonObject(event)) yield event
  }
}

async function wholeOf({ provider, limits }: Question, answer: Answer): Promise<JsonObject> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (limits.modelOutputBytes > 0 && bytes > limits.modelOutputBytes)
      throw exceeded(provider, 'modelOutputBytes', limits)
  }
  const body = Buffer.concat(chunks)
  if (!isUtf8(body)) throw unusable(provider, 'it is not valid UTF-8')
  const value = parsed(provider, body.toString('utf8'), 'its body')
  if (!isJsonObject(value)) throw unusable(provider, 'its body is no JSON object')
  return value
}

function parsed(provider: string, text: string, what: string): Json {
  try {
    return parseJson(text, what)
  } catch (cause) {
    // The parser quotes what it read, which may be anything: only what kind of fault it is goes on.
    throw unusable(provider, `${what} is not JSON that can be carried exactly`, cause)
  }
}

/** What reading an answer throws, as the failure that it is. */
export function toFailure({ provider, limits }: Exchange, error: unknown): unknown {
  if (error instanceof StreamFault)
    return error.fault === 'not_utf8'
      ? unusable(provider, 'it is not valid UTF-8', error)
      : exceeded(provider, 'modelFrameBytes', limits)
  return error
}

/** Adds what is known of the answer that came to nothing. */
export function withResponse(error: unknown, response: FailedResponse | undefined): unknown {
  if (!(error instanceof ModelFailure) || response === undefined) return error
  const { code, message, retryable, ambiguous, cause } = error
  return new ModelFailure(code, message, { retryable, ambiguous, cause, response })
}
