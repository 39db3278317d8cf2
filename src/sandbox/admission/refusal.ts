import { BrainError, clip, type BodyFault } from '../../kernel/errors.ts'

/** Why an upload was refused, for programs: `details.fault` of the error. Add freely, never rename. */
export type Fault =
  | 'empty'
  | 'not_wasm'
  | 'core_module'
  | 'wrong_world'
  | 'refused_import'
  | 'malformed'
  | 'too_large'
  | 'too_complex'
  | 'unsafe_name'
  | 'unsupported_feature'
  | 'bad_metadata'
  | 'cannot_transpile'

/** Control characters and line ends of foreign text must not reach a terminal or a log line. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g

/** Foreign text, made fit for one line of a message. */
export const printable = (text: string, length = 300): string => clip(text.replace(UNPRINTABLE, ' ').trim(), length)

/** A foreign name as a message shows it. */
export const quoted = (name: string): string => `"${printable(name, 100)}"`

/** The refusal of an upload: the caller's fault, told so that they can repair it. */
export function refusal(fault: Fault, reason: string, offset?: number): BrainError {
  const body: { body?: BodyFault } = fault === 'too_large' ? { body: 'too_large' } : {}
  const at = offset === undefined ? {} : { offset }
  return new BrainError('invalid_request', `Cannot admit the component: ${reason}`, {
    details: { fault, ...at },
    ...body,
  })
}
