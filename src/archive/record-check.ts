import { z } from 'zod'
import type { SessionStatus } from '../contract/session-request.ts'
import { messageOf } from '../kernel/errors.ts'
import { isJsonObject, type Json } from '../kernel/json.ts'
import { identifierSchema } from '../contract/name-schemas.ts'
import { isReservedKind, type JournalRecord, type KernelKind } from '../journal/record.ts'
import { SessionState } from '../journal/session-state.ts'
import { RECORD_SHAPES } from './record-shapes.ts'

const origin = z.union([
  z.strictObject({ kind: z.enum(['agentloop', 'tool']), sequence: z.int().positive() }),
  z.strictObject({
    kind: z.literal('environment'),
    environment: z.strictObject({ name: identifierSchema, sequence: z.int().positive() }),
  }),
  z.strictObject({ kind: z.literal('application') }),
])
const wireForm = z.strictObject({
  sequence: z.int(),
  recorded_at_ms: z.int().nonnegative(),
  event_type: identifierSchema,
  data: z.custom<unknown>((value) => value !== undefined, 'is missing'),
  origin: origin.optional(),
})

/** Kinds that are ended by the sequence of their start. */
const NUMBERED =
  /^(model_call|tool_call|tool_cancel|environment_(?:setup|call|detach|teardown|replace))_(started|ended|failed)$/

/** Environments elsewhere take implementations of their own, with ids of theirs. */
function componentIn(implementation: Json): string | undefined {
  if (!isJsonObject(implementation) || implementation['type'] !== 'brain_component') return undefined
  const { id } = implementation
  return typeof id === 'string' ? id : undefined
}

/** Goes through the records of a session in order and refuses the first that no server would have written there. */
export class RecordCheck {
  readonly #state = new SessionState()
  readonly #open = new Map<number, string>()
  readonly #calls = new Set<number>()
  #sequence = 0
  #at = 0

  get records(): number {
    return this.#sequence
  }

  /** What the records so far come to. */
  get status(): SessionStatus {
    return this.#state.status
  }

  /** Components that the session's tools and its agentloop are made of. */
  get components(): readonly string[] {
    const { configuration } = this.#state
    if (configuration === undefined) return []
    const placements = configuration.tools.flatMap((tool) => Object.values(tool.placements))
    const implemented = [...placements, configuration.agentloop]
    const ids = implemented.map(({ implementation }) => componentIn(implementation))
    return [...new Set(ids.filter((id) => id !== undefined))]
  }

  /** @throws Error saying what is wrong with the record. */
  add(value: unknown): JournalRecord {
    const parsed = wireForm.safeParse(value)
    if (!parsed.success) throw new Error(z.prettifyError(parsed.error))
    const record = value as JournalRecord
    this.#checkOrder(record)
    this.#checkKind(record)
    this.#checkReference(record)
    try {
      this.#state.apply(record)
    } catch (cause) {
      throw new Error(`it does not fit what is before it: ${messageOf(cause)}`, { cause })
    }
    this.#sequence = record.sequence
    this.#at = record.recorded_at_ms
    return record
  }

  #checkOrder({ sequence, recorded_at_ms: at, event_type: kind }: JournalRecord): void {
    if (sequence !== this.#sequence + 1)
      throw new Error(`its sequence is ${sequence}, and ${this.#sequence + 1} comes next`)
    if (at < this.#at) throw new Error('it was recorded before the record that is before it')
    if ((sequence === 1) !== (kind === 'session_creation_started'))
      throw new Error('session_creation_started must be the first record, and only that')
  }

  #checkKind({ event_type: kind, data, origin: by }: JournalRecord): void {
    const shape = Object.hasOwn(RECORD_SHAPES, kind) ? RECORD_SHAPES[kind as KernelKind] : undefined
    if (shape === undefined) {
      if (isReservedKind(kind)) throw new Error(`this version of Brain knows no records of kind "${kind}"`)
      if (by === undefined) throw new Error(`an event of kind "${kind}" must say its origin`)
      return
    }
    const fits = shape.safeParse(data)
    if (!fits.success) throw new Error(`as ${kind} its data is not right: ${z.prettifyError(fits.error)}`)
  }

  /** An end names an open start of its kind; what a call brings names a call (contract 3.1). */
  #checkReference({ event_type: kind, sequence, data }: JournalRecord): void {
    const named = (data as { readonly sequence?: number } | null)?.sequence ?? 0
    if ((kind === 'tool_result_emitted' || kind === 'tool_call_returned') && !this.#calls.has(named))
      throw new Error(`${kind} names ${named}, where no tool call started`)
    const [, noun = '', phase] = NUMBERED.exec(kind) ?? []
    if (phase === undefined) return
    if (phase === 'started') {
      this.#open.set(sequence, noun)
      if (noun === 'tool_call') this.#calls.add(sequence)
      return
    }
    if (this.#open.get(named) !== noun) throw new Error(`${kind} names ${named}, where no ${noun} is open`)
    this.#open.delete(named)
  }
}
