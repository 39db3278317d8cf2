import { clip } from '../kernel/errors.ts'
import { isJsonObject, type Json } from '../kernel/json.ts'
import { BrainError } from './brain-error.ts'

/**
 * What an answer other than 2xx says (contract 0.4); `http_error` where it is not one of Brain's.
 *
 * @param what names the request, for example `POST /v1/sessions`
 */
export function answerError(status: number, text: string, what: string): BrainError {
  const body = parsed(text)
  if (isJsonObject(body) && typeof body['code'] === 'string' && typeof body['message'] === 'string') {
    const { code, message, retryable, details } = body
    return new BrainError(status, code, message, { retryable: retryable === true, details })
  }
  return new BrainError(status, 'http_error', clip(`${what} was answered ${status}: ${text}`, 500))
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
