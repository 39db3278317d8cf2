import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { isIdentifier } from '../../kernel/ids.ts'
import type { Json } from '../../kernel/json.ts'
import { extensionEventSchema, observedSchema } from '../../contract/environment-schema.ts'
import type { EnvironmentEvent, EnvironmentRef, Observation } from '../../contract/environment.ts'
import { isReservedKind, type NewRecord, type Origin } from '../../journal/record.ts'
import type { OperatedSession } from './environment-operations.ts'
import { entryOf } from './places.ts'

/** What controllers say of their environments of their own accord (contract 5.2, 5.4). */
export const environmentReports = {
  /**
   * Commits a report; it wakes the session.
   * @returns the committed sequence
   * @throws BrainError `not_found` for an environment that is gone or was replaced, `invalid_request` for a kind that is
   *   Brain's and an operation that is not pending, `emit_limit`
   */
  async report(session: OperatedSession, reference: EnvironmentRef, event: EnvironmentEvent): Promise<number> {
    const entry = entryOf(session, reference)
    const origin: Origin = { kind: 'environment', environment: reference }
    if (event.type === 'event') assertKind(event.event_type)
    else assertPending(event.output.observation, entry.pending?.sequence)
    const record: NewRecord =
      event.type === 'event'
        ? { kind: 'event', event_type: event.event_type, data: event.data, origin }
        : { kind: 'environment_observation', data: event.output, origin }
    const bytes = Buffer.byteLength(JSON.stringify(event.type === 'event' ? event.data : event.output))
    const [committed] = await session.environmentWork.reports.emit(bytes, () =>
      session.log.commit({ records: [record] }),
    )
    return committed?.sequence ?? 0
  },

  /** The same as methods of a callback: `emit` and `result` (contract 5.3). @returns JSON text */
  async call(
    session: OperatedSession,
    reference: EnvironmentRef,
    method: 'emit' | 'result',
    input: Json,
  ): Promise<string> {
    const event: EnvironmentEvent =
      method === 'emit'
        ? { type: 'event', ...(read(extensionEventSchema, input) as { event_type: string; data: Json }) }
        : { type: 'result', output: read(observedSchema, input) as { observation: Observation; content?: string } }
    return JSON.stringify(await environmentReports.report(session, reference, event))
  },
}

function read<Value>(schema: z.ZodType<Value>, input: Json): Value {
  const parsed = schema.safeParse(input)
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot read the report: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

function assertKind(kind: string): void {
  if (!isIdentifier(kind) || isReservedKind(kind))
    throw new BrainError(
      'invalid_request',
      `Cannot emit ${JSON.stringify(kind.slice(0, 128))}: an event kind is an identifier that Brain does not use itself`,
    )
}

function assertPending(observation: Observation, pending: number | undefined): void {
  if (observation.scope === 'operation' && observation.sequence !== pending)
    throw new BrainError(
      'invalid_request',
      `Cannot resolve operation ${observation.sequence}: ${pending === undefined ? 'none is pending' : `${pending} is the one that is pending`}`,
    )
}
