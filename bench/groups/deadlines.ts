import type { Json } from '../../src/kernel/json.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import type { BenchServer } from '../bench-server.ts'
import type { Group } from '../run.ts'

const CALLS_EACH = 21
const DEADLINE_MS = 150
const HEALTH_EVERY_MS = 5
/** A loop of arithmetic, and one of `memory.fill`, which no engine interrupts. */
const LOOPS = ['spin', 'fill'] as const

/** How late a call ends that never would, and how the server answers others meanwhile. */
export const deadlines: Group = async ({ server, subjects }) => {
  const path = await server.openSession('slow', subjects.slow)
  const health = server.startLoad({
    lanes: [{ method: 'GET', path: '/health/live', status: 204, contains: [] }],
    idleMs: HEALTH_EVERY_MS,
    warmUp: { answers: 5 },
  })
  const late: number[] = []
  for (let call = 0; call < CALLS_EACH; call++)
    for (const how of LOOPS) {
      // A call that waits for the box that replaces the killed one would measure that.
      await server.untilWarm()
      late.push(await overshootMs(server, path, { how, loop: true }))
    }
  const { latenciesMs } = await health.stop()
  return { 'deadline-overshoot': late, 'health-during-deadlines': latenciesMs }
}

/** From when the call should have ended to when its end was recorded. */
async function overshootMs(server: BenchServer, path: string, input: Json): Promise<number> {
  const { sequence } = await server.api.post<{ sequence: number }>(`${path}?wait=finished`, {
    input,
    deadline_ms: DEADLINE_MS,
  })
  const session = path.split('/')[3]
  const { events } = await server.api.get<{ events: JournalRecord[] }>(
    `/v1/sessions/${session}/events?after=${sequence - 1}`,
  )
  const started = events.find((record) => record.sequence === sequence)
  const ended = events.find((record) => record.event_type === 'tool_call_ended')
  if (started === undefined || ended === undefined || !JSON.stringify(ended.data).includes('"timeout"'))
    throw new Error(`The call did not end by its deadline: ${JSON.stringify(events).slice(0, 500)}`)
  return ended.recorded_at_ms - (started.recorded_at_ms + DEADLINE_MS)
}
