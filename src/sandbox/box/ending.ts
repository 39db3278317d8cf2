import { END, errorText } from '../wire/box-frames.ts'
import { Exit, LimitReached } from './wasi/ending.ts'

/** How the entry ended, ready to be sent. */
export type Ending = { readonly kind: number; readonly text: Buffer }

const MAX_CHARACTERS = 4096
/** V8's words for a memory that it could not get. */
const OUT_OF_MEMORY =
  /could not allocate memory|Out of memory|Array buffer allocation failed|Invalid array buffer length/i
/** Files of the engine that V8 puts into some messages; nothing of a guest is a file. */
const PATH = /(?:file:\/\/|\/)[\w./@-]*\/[\w.@-]+/g

const textOf = (error: unknown): string => {
  if (error instanceof Error) return `${error.name}: ${error.message}`
  if (typeof error === 'string') return error
  try {
    return JSON.stringify(error) ?? String(error)
  } catch {
    return String(error)
  }
}

/** `code` LF `message` of anything thrown by generated code or the engine. */
export function describe(error: unknown): Buffer {
  const text = textOf(error).replace(PATH, '…').slice(0, MAX_CHARACTERS)
  const code = error instanceof RangeError && OUT_OF_MEMORY.test(text) ? 'memory_limit' : 'tool_error'
  return Buffer.from(errorText(code, text))
}

type GuestError = { readonly code: string; readonly message: string; readonly retryable?: unknown }

const isGuestError = (value: unknown): value is GuestError =>
  typeof value === 'object' &&
  value !== null &&
  'code' in value &&
  typeof value.code === 'string' &&
  'message' in value &&
  typeof value.message === 'string'

/** jco throws the error of a `result` as an Error that has it as its own `payload`. */
const payloadOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'payload' in error ? error.payload : undefined

/** What was thrown out of the entry. */
export function endingOf(error: unknown): Ending {
  if (error instanceof Exit) return { kind: END.EXIT, text: Buffer.of(error.success ? 1 : 0) }
  if (error instanceof LimitReached) return { kind: END.FATAL, text: Buffer.from(errorText(error.code, error.message)) }
  const payload = payloadOf(error)
  if (isGuestError(payload)) {
    const kind = payload.retryable === true ? END.RETRYABLE_ERROR : END.ERROR
    return { kind, text: Buffer.from(errorText(payload.code, payload.message)) }
  }
  return { kind: END.FATAL, text: describe(error) }
}
