import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { type Json, parseJson } from '../../kernel/json.ts'
import { listOf } from '../../contract/list-of.ts'
import { jsonSchema, messageSchema } from '../../contract/message-schema.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'
import type { Message } from '../../contract/message.ts'
import type { CallNotes } from '../../dispatch/call-log.ts'
import type { ToolInvocation } from '../../journal/record.ts'
import type { HostMethod, HostServices } from '../../sandbox/sandbox.ts'
import type { LoopHost } from '../agentloop.ts'
import { tellGuest } from '../model-caller.ts'
import { parseModelRequest } from '../model-request.ts'

/** Longest `call_id`: models give ids of up to some 60 characters. */
const CALL_ID_CHARACTERS = 256

/** Of one dispatch: more could not even wait for a permit, and each is recorded, answered and watched. */
const MOST_CALLS = 1000

const invocationsSchema = listOf(
  z.strictObject({
    call_id: z.string().min(1).max(CALL_ID_CHARACTERS),
    name: z.string(),
    environment: z.string(),
    environment_sequence: nullAsAbsent(z.int().positive()),
    input: jsonSchema,
  }),
  MOST_CALLS,
)
const messagesSchema = listOf(messageSchema)

type Answer = (host: LoopHost, first: string, second: string) => Promise<unknown>

/** The functions of `brain:agentloop/host` that ask something of the session; each answers JSON. */
const JSON_ANSWERS: Partial<Readonly<Record<HostMethod, Answer>>> = {
  model: (host, request) => host.model(parseModelRequest(request)).catch(tellGuest),
  dispatch: (host, calls) => host.dispatch(parse('calls', invocationsSchema, calls) as ToolInvocation[]),
  events: (host, after) => host.events(parseCursor(after)),
  kvRead: (host, key) => host.kvRead(key),
  setTranscript: (host, messages) => host.setTranscript(parse('messages', messagesSchema, messages) as Message[]),
  kvPut: async (host, key, value) => host.kvPut(key, parseJson(value, 'value')),
  kvDelete: (host, key) => host.kvDelete(key),
  emit: async (host, kind, payload) => host.emit(kind, parseJson(payload, 'payload')),
}

/** The services of one activation for a guest, which speaks in texts (contract 7.2): each is read before it is believed. */
export class TextHost implements HostServices {
  readonly #host: LoopHost
  readonly #notes: CallNotes
  #servedMs = 0

  constructor(host: LoopHost, notes: CallNotes) {
    this.#host = host
    this.#notes = notes
  }

  async call(method: HostMethod, [first = '', second = '']: readonly (string | undefined)[]): Promise<string> {
    if (method === 'telemetry') {
      this.#notes.add({ type: 'telemetry', record: first })
      return ''
    }
    if (method === 'environments') return this.#host.environments(first)
    const ask = JSON_ANSWERS[method]
    if (ask === undefined) throw new BrainError('unsupported_host_call', `Cannot call ${method}: it is for tools`)
    const answer = await this.#serve(() => ask(this.#host, first, second))
    // Nothing, where a key has no value, is the empty text.
    return this.#serve(() => JSON.stringify(answer) ?? '')
  }

  /** Milliseconds for which this thread has read what the loop says and written what it is answered. */
  get servedMs(): number {
    return this.#servedMs
  }

  #serve<Result>(work: () => Result): Result {
    const began = performance.now()
    try {
      return work()
    } finally {
      this.#servedMs += performance.now() - began
    }
  }
}

function parse<Value>(what: string, schema: z.ZodType<Value>, text: string): Value {
  const parsed = schema.safeParse(parseJson(text, what) satisfies Json)
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot read the ${what}: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

/** Sequences beyond what a number holds exactly are beyond every journal. */
const parseCursor = (text: string): number =>
  /^\d{1,20}$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : 0
