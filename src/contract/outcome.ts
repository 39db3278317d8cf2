import { isIdentifier } from '../kernel/ids.ts'
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.ts'
import { clip, MAX_MESSAGE_LENGTH } from '../kernel/errors.ts'

/** How a tool failed: `code` is an identifier, `message` for people and models, at most 4096 characters. */
export type ToolError = {
  readonly code: string
  readonly message: string
  readonly retryable?: boolean
  readonly details?: Json
}

/** What a tool call, or one result of it, comes to (contract 3.3). The five statuses are reserved. */
export type Outcome =
  | { readonly status: 'ok'; readonly value: Json }
  | { readonly status: 'error'; readonly error: ToolError }
  | { readonly status: 'timeout' }
  | { readonly status: 'cancelled' }
  | { readonly status: 'unknown'; readonly message: string }

/** An Outcome with optional text for the model; `content` never changes value or status. */
export type ToolOutput = Outcome & { readonly content?: string }

/** A result as a loop sees it (contract 3.3). */
export type ToolResult = {
  readonly call_id: string
  readonly output: Json
  readonly is_error: boolean
  readonly content?: string
}

const STATUSES = new Set(['ok', 'error', 'timeout', 'cancelled', 'unknown'])

/** Whether a value claims to be an Outcome: an object whose `status` is one of the reserved words. */
export const looksLikeOutcome = (value: Json): value is JsonObject & { readonly status: string } =>
  isJsonObject(value) && typeof value['status'] === 'string' && STATUSES.has(value['status'])

const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  ok: ['status', 'value', 'content'],
  error: ['status', 'error', 'content'],
  timeout: ['status', 'content'],
  cancelled: ['status', 'content'],
  unknown: ['status', 'message', 'content'],
}
const ERROR_MEMBERS = new Set(['code', 'message', 'retryable', 'details'])

function faultOfError(error: Json | undefined): string | undefined {
  if (!isJsonObject(error)) return 'status "error" needs an object "error"'
  const extra = Object.keys(error).find((key) => !ERROR_MEMBERS.has(key))
  if (extra !== undefined) return `"error" has the unknown member ${JSON.stringify(extra)}`
  const { code, message, retryable } = error
  if (typeof code !== 'string' || !isIdentifier(code)) return '"error.code" must be an identifier'
  if (typeof message !== 'string' || message.length > MAX_MESSAGE_LENGTH)
    return `"error.message" must be text of at most ${MAX_MESSAGE_LENGTH} characters`
  if (retryable !== undefined && typeof retryable !== 'boolean') return '"error.retryable" must be a boolean'
  return undefined
}

/** Says what makes an envelope malformed, or nothing when it is well formed (contract A17). */
export function faultOfEnvelope(value: Json): string | undefined {
  if (!looksLikeOutcome(value)) return 'it is not an object whose "status" is ok, error, timeout, cancelled or unknown'
  const { status } = value
  const extra = Object.keys(value).find((key) => !MEMBERS[status]?.includes(key))
  if (extra !== undefined) return `status "${status}" does not allow the member ${JSON.stringify(extra)}`
  if (value['content'] !== undefined && typeof value['content'] !== 'string') return '"content" must be text'
  if (status === 'ok' && value['value'] === undefined) return 'status "ok" needs "value"'
  if (status === 'unknown' && typeof value['message'] !== 'string') return 'status "unknown" needs "message"'
  return status === 'error' ? faultOfError(value['error']) : undefined
}

/** Reads an envelope that {@link faultOfEnvelope} found no fault with. */
export const asToolOutput = (value: Json): ToolOutput => value as unknown as ToolOutput

/** What the model is told for the three outcomes that carry no text of their own (contract 3.3, A5). */
export const FIXED_SENTENCES = {
  timeout: 'The tool did not finish before its deadline. The work may have been done anyway.',
  cancelled: 'The tool was cancelled. The work may have been done anyway.',
  unknown: 'It is not known whether the tool did its work: it may have been done.',
} as const

/** Whether the work of a call that ended so may have been done although it has no result (contract A5). */
export function isOutcomeUnknown(outcome: Outcome): boolean {
  if (outcome.status === 'ok') return false
  if (outcome.status !== 'error') return true
  const { details = null } = outcome.error
  return isJsonObject(details) && details['unknown_outcome'] === true
}

/** An error as models read it: one after which the work may have been done says so. */
export function shownError(outcome: Outcome & { readonly status: 'error' }): ToolError {
  const { error } = outcome
  if (!isOutcomeUnknown(outcome)) return error
  const doubt = FIXED_SENTENCES.unknown
  return {
    ...error,
    message: `${clip(error.message, MAX_MESSAGE_LENGTH - doubt.length - 2).replace(/\.$/, '')}. ${doubt}`,
  }
}

/** The result that a loop is shown for an output (contract 3.3, A5). */
export function toToolResult(callId: string, output: ToolOutput): ToolResult {
  const content = output.content === undefined ? {} : { content: output.content }
  switch (output.status) {
    case 'ok':
      return { call_id: callId, output: output.value, is_error: false, ...content }
    case 'error':
      return { call_id: callId, output: shownError(output), is_error: true, ...content }
    case 'timeout':
    case 'cancelled':
    case 'unknown': {
      const details = output.status === 'unknown' && output.message !== '' ? { details: { cause: output.message } } : {}
      const shown = { code: output.status, message: FIXED_SENTENCES[output.status], ...details }
      return { call_id: callId, output: shown, is_error: true, ...content }
    }
    default:
      return output satisfies never
  }
}

export const errorOutcome = (code: string, message: string, details?: Json): Outcome => ({
  status: 'error',
  error: {
    code,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    retryable: false,
    ...(details === undefined ? {} : { details }),
  },
})
