import { BrainError } from '../../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../../kernel/json.ts'
import type { HostMethod } from '../../../sandbox/sandbox.ts'
import type { TextHost } from '../text-host.ts'

/** What a method of the callback is to the host of a loop, which speaks in texts (contract 5.3, 7.2). */
const METHODS: Readonly<
  Record<string, { readonly as: HostMethod; readonly texts: (input: Json) => readonly string[] }>
> = {
  model: { as: 'model', texts: (input) => [JSON.stringify(input)] },
  dispatch: { as: 'dispatch', texts: (input) => [JSON.stringify(input)] },
  events: { as: 'events', texts: (input) => [cursorOf(input)] },
  set_transcript: { as: 'setTranscript', texts: (input) => [JSON.stringify(input)] },
  kv_read: { as: 'kvRead', texts: (input) => [keyOf(input)] },
  kv_put: { as: 'kvPut', texts: (input) => pairOf(input, 'key', 'value') },
  kv_delete: { as: 'kvDelete', texts: (input) => [keyOf(input)] },
  emit: { as: 'emit', texts: (input) => pairOf(input, 'event_type', 'data') },
  environments: { as: 'environments', texts: (input) => [JSON.stringify(input)] },
  telemetry: { as: 'telemetry', texts: (input) => [JSON.stringify(input)] },
}

export const LOOP_METHODS: readonly string[] = Object.keys(METHODS)

const refuse = (rule: string): never => {
  throw new BrainError('invalid_request', `Cannot read the input: it must be ${rule}`)
}

const keyOf = (input: Json): string => (typeof input === 'string' ? input : refuse('a key'))

const cursorOf = (input: Json): string =>
  typeof input === 'number' && Number.isSafeInteger(input) && input >= 0 ? String(input) : refuse('a sequence')

function pairOf(input: Json, name: string, value: string): readonly string[] {
  if (!isJsonObject(input) || Object.keys(input).length !== 2) return refuse(`{"${name}":…,"${value}":…}`)
  const { [name]: first, [value]: second } = input
  if (typeof first !== 'string' || second === undefined) return refuse(`{"${name}":…,"${value}":…}`)
  return [first, JSON.stringify(second)]
}

/** Serves one request of an agentloop that runs elsewhere. @returns JSON text */
export async function serveLoop(host: TextHost, name: string, input: Json): Promise<string> {
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined
  if (method === undefined)
    throw new BrainError('invalid_request', `Cannot call ${JSON.stringify(name.slice(0, 80))}: there is no such method`)
  const answer = await host.call(method.as, method.texts(input))
  if (name === 'kv_read') return answer === '' ? '{}' : `{"value":${answer}}`
  return answer === '' ? 'null' : answer
}
