import { messageLane, type BenchServer } from '../bench-server.ts'
import type { Group } from '../run.ts'

const CLIENTS = 16
const WARM_UP_MS = 6000
const MEASURED_MS = 3000

/** Records that 16 clients, each with a session and one turn at a time, have the journal make durable. */
export const records: Group = async ({ server }) => {
  const open = (): Promise<string> => server.openScripted([{ text: 'nothing to say' }])
  const recordsOfTurn = await countOfTurn(server, await open())
  const sessions = await Promise.all(Array.from({ length: CLIENTS }, open))
  const { latenciesMs, elapsedMs } = await server.load({
    lanes: sessions.map(messageLane),
    idleMs: 0,
    warmUp: { ms: WARM_UP_MS },
    until: { ms: MEASURED_MS },
  })
  return { 'journal-records-per-second': [((latenciesMs.length * recordsOfTurn) / elapsedMs) * 1000] }
}

async function countOfTurn(server: BenchServer, session: string): Promise<number> {
  const count = async (): Promise<number> =>
    (await server.api.get<{ readonly last_sequence: number }>(session)).last_sequence
  const before = await count()
  await server.api.post(`${session}/messages`, { input: { message: 'hello' } })
  return (await count()) - before
}
