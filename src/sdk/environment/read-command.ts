import { z } from 'zod'
import { isIdentifier } from '../../kernel/ids.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import { ENVIRONMENT_CONTRACT, type EnvironmentCommand } from '../../contract/environment-protocol.ts'
import { BrainError } from '../brain-error.ts'

export type Operation = EnvironmentCommand['operation'] & {
  readonly binding: NonNullable<EnvironmentCommand['operation']['binding']>
}

/** What names an operation: a command that brings the same three is the same command again. */
export type OperationKey = { readonly session_id: string; readonly environment: string; readonly sequence: number }

/** More is no time that a Date could have. */
const LONGEST_DEADLINE_MS = 1000 * 365 * 24 * 60 * 60 * 1000

const identifier = z.string().refine(isIdentifier, 'must be an identifier')
const sequence = z.int().positive()
const json = z.custom<Json>((value) => value !== undefined, 'must be there')
const callback = z.object({
  url: z.string().max(4096).refine(isWebUrl, 'must be an http or https URL'),
  token: z.string().min(1).max(4096),
  methods: z.array(z.string().max(128)).max(64),
})

const request = z.discriminatedUnion('type', [
  z.object({ type: z.literal('setup'), configuration: z.custom<Json>().default(null) }),
  z.object({ type: z.literal('call'), name: identifier, input: json }),
  z.object({
    type: z.literal('execute'),
    implementation: json,
    input: json,
    deadline_ms: z.number().max(LONGEST_DEADLINE_MS).optional(),
    callback: callback.optional(),
  }),
  z.object({ type: z.literal('cancel'), target_sequence: sequence }),
  z.object({ type: z.literal('detach') }),
  z.object({ type: z.literal('teardown') }),
])

const operation = z.object({
  session_id: z.string(),
  environment: z.string(),
  sequence,
  binding: z.object({ name: identifier, sequence }),
  configuration: z.custom<Json>().optional(),
  template: identifier.optional(),
  context: callback.optional(),
  reporter: callback.optional(),
  request,
})

function isWebUrl(text: string): boolean {
  return URL.canParse(text) && ['http:', 'https:'].includes(new URL(text).protocol)
}

/**
 * What a command is about, which its answer must name.
 *
 * @throws BrainError 400 `invalid_request` for what names no operation: there is nothing to answer then
 */
export function keyOfCommand(command: unknown): OperationKey {
  const about = isJsonObject(command) ? command['operation'] : undefined
  if (isJsonObject(about)) {
    const { session_id, environment, sequence: number } = about
    if (
      isName(session_id) &&
      isName(environment) &&
      typeof number === 'number' &&
      number > 0 &&
      Number.isSafeInteger(number)
    )
      return { session_id, environment, sequence: number }
  }
  throw new BrainError(400, 'invalid_request', 'Cannot read the command: it names no session, environment and sequence')
}

const isName = (value: unknown): value is string => typeof value === 'string' && isIdentifier(value)

/** @throws BrainError `unsupported` for another contract or request; `invalid_request` for what is malformed or missing */
export function readCommand(command: unknown): Operation {
  const { contract, operation: about } = command as Readonly<Record<string, unknown>>
  if (contract !== ENVIRONMENT_CONTRACT)
    throw new BrainError(
      0,
      'unsupported',
      `Cannot do the operation: this environment speaks ${ENVIRONMENT_CONTRACT} only`,
    )
  const parsed = operation.safeParse(about)
  if (parsed.success) return parsed.data as Operation
  const [first] = parsed.error.issues
  const isForeign = first?.code === 'invalid_union' && first.path.join('.') === 'request.type'
  throw new BrainError(
    0,
    isForeign ? 'unsupported' : 'invalid_request',
    `Cannot do the operation: operation.${first?.path.join('.')}: ${first?.message}`,
  )
}
