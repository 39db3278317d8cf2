import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { extensionEventSchema, observedSchema } from '../../contract/environment-schema.ts'
import type { EnvironmentEvent, EnvironmentRef, Observation } from '../../contract/environment.ts'
import type { EnvironmentEntry } from '../../journal/environment-state.ts'
import type { JournalRecord, NewRecord, Origin } from '../../journal/record.ts'
import type { OperatedSession } from './environment-operations.ts'
import { assertEventKind } from '../event-kind.ts'
import { entryOf } from './places.ts'

/** What a report takes at least, so that many small ones come to an end too: each may start a turn. */
const REPORT_BYTES = 256

/** What tells of a pending operation may take so much and not count. */
const MOST_RESOLUTION_BYTES = 64 * 1024

const isResolution = (event: EnvironmentEvent): boolean =>
  event.type === 'result' && event.output.observation.scope === 'operation'

/** What controllers say of their environments of their own accord (contract 5.2, 5.4). */
export const environmentReports = {
  /**
   * Commits a report; it wakes the session.
   * @returns the committed sequence
   * @throws BrainError `not_found` for an environment that is gone or was replaced, `invalid_request` for a kind that is
   *   Brain's and an operation that is not pending, `emit_limit`
   */
  async report(session: OperatedSession, reference: EnvironmentRef, event: EnvironmentEvent): Promise<number> {
    const entry = reportedOn(session, reference)
    const origin: Origin = { kind: 'environment', environment: reference }
    if (event.type === 'event') assertEventKind(event.event_type)
    else assertPending(event.output.observation, entry.pending?.sequence)
    const record: NewRecord =
      event.type === 'event'
        ? { kind: 'event', event_type: event.event_type, data: event.data, origin }
        : { kind: 'environment_observation', data: event.output, origin }
    const [kind, data] = record.kind === 'event' ? [record.event_type, record.data] : [record.kind, record.data]
    const bytes = REPORT_BYTES + Buffer.byteLength(kind) + Buffer.byteLength(JSON.stringify(data))
    const commit = (): Promise<readonly JournalRecord[]> => session.log.commit({ records: [record] })
    // What is in doubt can be told once, whatever was said before.
    const isFree = isResolution(event) && bytes <= MOST_RESOLUTION_BYTES
    const [committed] = isFree ? await commit() : await session.environmentWork.reports.emit(bytes, commit)
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

/**
 * The environment that is spoken of. Of a session that is over only what is being done, or is in doubt, may be told.
 * @throws BrainError `not_found`
 */
function reportedOn(session: OperatedSession, { name, sequence }: EnvironmentRef): EnvironmentEntry {
  const { environments, status } = session.state
  const pending = environments.get(name)?.pending
  // What a replacement is about to make has its token already, and may be all that is left.
  const isMaking = pending?.operation === 'replace' && pending.sequence === sequence
  const entry = (isMaking ? environments.get(name) : undefined) ?? entryOf(session, { name, sequence })
  if ((status === 'ended' || status === 'failed') && pending === undefined)
    throw new BrainError('not_found', `Cannot find environment "${name}": its session is ${status}`)
  return entry
}

function read<Value>(schema: z.ZodType<Value>, input: Json): Value {
  const parsed = schema.safeParse(input)
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot read the report: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

function assertPending(observation: Observation, pending: number | undefined): void {
  if (observation.scope === 'operation' && observation.sequence !== pending)
    throw new BrainError(
      'invalid_request',
      `Cannot resolve operation ${observation.sequence}: ${pending === undefined ? 'none is pending' : `${pending} is the one that is pending`}`,
    )
}
