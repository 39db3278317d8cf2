import { clip, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { ModelResult } from '../../contract/message.ts'
import { FIXED_SENTENCES, type ToolOutput } from '../../contract/outcome.ts'
import { isBrainError } from '../brain-error.ts'
import type { CallServices } from '../host/call-services.ts'

/** What a tool may ask while its call is open, by the names that an execution callback of Brain has for it (contract 5.3). */
export type ToolMethod = 'emit' | 'result' | 'returned' | 'finish' | 'model' | 'environments'

/**
 * Asks Brain something for a call, such as by a POST of `{method, input}` to its callback.
 *
 * @throws BrainError as Brain refused it; anything else means that nobody knows whether Brain was asked
 */
export type ToolService = (method: ToolMethod, input: Json, signal?: AbortSignal) => Promise<Json | undefined>

/**
 * How running a tool ended. `returned`: Brain has been told by the services whatever there was to tell. `failure`: it has
 * not; the tool threw (`tool_error`), was not called (`invalid_input`, `tool_unavailable`), or was stopped (`timeout`,
 * `cancelled`), or nobody knows whether Brain has its end (`unknown`).
 */
export type ToolEnd =
  | { readonly type: 'returned' }
  | {
      readonly type: 'failure'
      readonly code: string
      readonly message: string
      readonly retryable: boolean
      readonly details?: Json
    }

/** Codes of answers after which nobody knows whether what was asked has happened. */
export const DOUBTFUL: ReadonlySet<string> = new Set(['ambiguous', 'unknown', 'http_error'])

const isInDoubt = (error: unknown): boolean => !isBrainError(error) || error.status === 0 || DOUBTFUL.has(error.code)

const lostEnd = (error: unknown): ToolEnd => ({
  type: 'failure',
  code: 'unknown',
  message: clip(`Brain may have taken the end of the call: ${messageOf(error)}`),
  retryable: false,
})

/** The services of one call over whatever takes what it asks. @param onFailure hears what Brain is not told by them */
export const toolServices = (service: ToolService, onFailure: (end: ToolEnd) => void): CallServices => ({
  emit: async (event_type, data) => Number(await service('emit', { event_type, data })),
  result: async (outcome) => Number(await service('result', outcome)),
  returned: async (outcome) => void (await service('returned', outcome ?? null)),
  finish: async (outcome) => {
    try {
      await service('finish', outcome ?? null)
    } catch (error) {
      if (isInDoubt(error)) onFailure(lostEnd(error))
      throw error
    }
  },
  fail: async (outcome) => onFailure(failureOf(outcome)),
  model: async (request, signal) => (await service('model', request, signal)) as unknown as ModelResult,
  environments: (request, signal) => service('environments', request as Json, signal),
})

/** The end of a call that Brain is not told of by a service. */
export function failureOf(outcome: ToolOutput): ToolEnd {
  switch (outcome.status) {
    case 'ok':
      return { type: 'returned' }
    case 'error': {
      const { code, message, retryable = false, details } = outcome.error
      return { type: 'failure', code, message, retryable, ...(details !== undefined && { details }) }
    }
    case 'timeout':
    case 'cancelled':
      return { type: 'failure', code: outcome.status, message: FIXED_SENTENCES[outcome.status], retryable: false }
    case 'unknown':
      return { type: 'failure', code: 'unknown', message: outcome.message, retryable: false }
    default:
      return outcome satisfies never
  }
}
