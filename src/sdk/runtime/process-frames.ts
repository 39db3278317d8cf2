import { z } from 'zod'
import { clip, messageOf } from '../../kernel/errors.ts'
import { type Json, parseJson } from '../../kernel/json.ts'
import { BrainError, isBrainError } from '../brain-error.ts'
import { detailsOf } from '../error-details.ts'
import { MOST_CARRIER_DEPTH } from '../json-value.ts'
import { DOUBTFUL, type ToolEnd, type ToolMethod } from './tool-service.ts'

/** One line in either direction: an input of the most that Brain takes (32 MiB), and what stands around it. */
export const MOST_FRAME_BYTES = 33 * 1024 * 1024

/** What the tool asks. */
export type ServiceFrame = {
  readonly type: 'service'
  readonly id: number
  readonly method: ToolMethod
  readonly input: Json
}

export type ServiceError = {
  readonly code: string
  readonly message: string
  readonly retryable?: boolean
  readonly details?: Json
  /** Of Brain's answer; 0 when nobody knows whether Brain was asked. */
  readonly status?: number
}

/** What it is answered. */
export type AnswerFrame = { readonly id: number } & ({ readonly output: Json } | { readonly error: ServiceError })

const json = z.custom<Json>((value) => value !== undefined, 'is missing')

/** The first line on standard input: one call (contract 9.4). */
export const callFrame = z.object({
  implementation: json,
  input: json,
  sessionId: z.string(),
  environment: z.string(),
  sequence: z.int().positive(),
  deadline_at_ms: z.int().nonnegative().nullish(),
})

const error = z.object({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean().optional(),
  details: json.optional(),
  status: z.int().nonnegative().optional(),
})

export const answerFrame = z.union([
  z.object({ id: z.int().positive(), error }),
  z.object({ id: z.int().positive(), output: json }),
])

/** A line on standard output. */
export const processFrame = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('service'),
    id: z.int().positive(),
    method: z.enum(['emit', 'result', 'returned', 'finish', 'model', 'environments']),
    input: json,
  }),
  z.object({ type: z.literal('returned') }),
  z.object({
    type: z.literal('failure'),
    code: z.string(),
    message: z.string(),
    retryable: z.boolean(),
    details: json.optional(),
  }),
])

/** @throws BrainError for more than a frame may have */
export function frameText(frame: AnswerFrame | ServiceFrame | ToolEnd | object): string {
  const text = `${JSON.stringify(frame)}\n`
  if (Buffer.byteLength(text) <= MOST_FRAME_BYTES) return text
  throw new BrainError(413, 'invalid_request', `Cannot send a frame: it is longer than ${MOST_FRAME_BYTES} bytes`)
}

/** @throws BrainError `invalid_request` saying what is wrong with the line */
export function readFrame<Frame>(
  schema: z.ZodType<Frame>,
  { number, bytes }: { number: number; bytes: Buffer },
): Frame {
  let value: Json
  try {
    value = parseJson(bytes.toString('utf8'), 'it', MOST_CARRIER_DEPTH)
  } catch (cause) {
    throw refusal(number, messageOf(cause), cause)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw refusal(number, z.prettifyError(parsed.error), parsed.error)
}

export const refusal = (line: number, reason: string, cause?: unknown): BrainError =>
  new BrainError(0, 'invalid_request', `Cannot read frame ${line}: ${reason}`, { cause })

/** A refusal as a frame has it. What is no refusal leaves open whether Brain was asked. */
export function serviceError(thrown: unknown): ServiceError {
  const message = clip(messageOf(thrown))
  if (!isBrainError(thrown)) return { code: 'ambiguous', message, status: 0 }
  const { code, status, retryable } = thrown
  return { code, message, status, retryable, ...detailsOf(thrown) }
}

export const brainErrorOf = ({ code, message, retryable = false, details, status }: ServiceError): BrainError =>
  new BrainError(status ?? (DOUBTFUL.has(code) ? 0 : 400), code, message, { retryable, details })
