import { callLane } from '../bench-server.ts'
import { type Group, WORDS } from '../run.ts'

const SESSIONS = 8
const CLIENTS_EACH = 2
/** Some 500 calls of each box, as many as `warm-call-rust` is given: until then V8 compiles more than it runs. */
const WARM_UP_MS = 10_000
const MEASURED_MS = 3000

/** Direct calls of 16 clients in 8 sessions, each client with one call at a time. */
export const throughput: Group = async ({ server, subjects }) => {
  const paths = await Promise.all(
    Array.from({ length: SESSIONS }, () => server.openSession('wordcount', subjects.wordcount)),
  )
  const lanes = paths.flatMap((path) =>
    Array.from({ length: CLIENTS_EACH }, () => callLane(path, WORDS.input, WORDS.contains)),
  )
  const { latenciesMs, elapsedMs } = await server.load({
    lanes,
    idleMs: 0,
    warmUp: { ms: WARM_UP_MS },
    until: { ms: MEASURED_MS },
  })
  return { 'calls-per-second': [(latenciesMs.length / elapsedMs) * 1000] }
}
