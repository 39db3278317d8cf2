import { ToolFailure } from '../contract/tool-failure.ts'
import { BrainError, clip, type BodyFault, type ErrorCode } from '../kernel/errors.ts'

const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  unsupported: 400,
  invalid_transcript: 400,
  unauthorized: 401,
  forbidden_host: 403,
  forbidden_origin: 403,
  not_found: 404,
  conflict: 409,
  preparation_failed: 409,
  overloaded: 503,
  storage_unavailable: 503,
  sandbox_unavailable: 503,
  ambiguous: 500,
  executor_failed: 500,
  model_provider_failed: 500,
  model_output_invalid: 500,
  model_output_incomplete: 500,
  model_call_limit: 500,
  emit_limit: 500,
  output_limit: 507,
  invalid_output: 500,
  unsupported_host_call: 500,
  host_call_limit: 500,
  no_turn: 500,
  cancelled: 500,
  environment_closed: 500,
  environment_not_ready: 500,
  environment_output_invalid: 500,
  internal: 500,
}

/** `invalid_request` keeps its code where HTTP has a finer status (contract 0.4). */
const BODY_STATUS: Readonly<Record<BodyFault, number>> = { shape: 422, media_type: 415, too_large: 413 }

export type Problem = {
  readonly status: number
  readonly body: {
    readonly code: string
    readonly message: string
    readonly retryable: boolean
    readonly details?: unknown
  }
}

/** The one place where failures become HTTP. What nobody declared is a defect, whose text stays in the log. */
export function toProblem(error: unknown): Problem {
  if (error instanceof ToolFailure) {
    const { code, message, retryable, details } = error
    return { status: 500, body: { code, message, retryable, ...(details === undefined ? {} : { details }) } }
  }
  const refusal = error instanceof BrainError ? error : refusalOf(error)
  if (refusal === undefined)
    return { status: 500, body: { code: 'internal', message: 'Internal error', retryable: false } }
  const { code, retryable, details, body } = refusal
  const status = body === undefined ? STATUS[code] : BODY_STATUS[body]
  const message = clip(refusal.message) || code
  return { status, body: { code, message, retryable, ...(details === undefined ? {} : { details }) } }
}

/** What the framework refuses of itself, such as a content type without a slash, is the client's fault too. */
export function refusalOf(error: unknown): BrainError | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined
  const status = Number(error.statusCode)
  if (!(status >= 400 && status < 500)) return undefined
  const body = status === 415 ? { body: 'media_type' as const } : status === 413 ? { body: 'too_large' as const } : {}
  return new BrainError('invalid_request', `Cannot read the request: ${error.message}`, body)
}
