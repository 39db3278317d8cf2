import { callLane } from '../bench-server.ts'
import { type Group, timed, WORDS } from '../run.ts'

const RECORDS = 10_000
/** Records of one direct call. */
const RECORDS_OF_CALL = 3
const LANES = 8
/** The first turns after a long history read it once; they are not what is measured. */
const WARM_UP = 15
const TURNS = 60

/** Turns of a session with a short history and of one with a long one, one of each after the other. */
export const history: Group = async ({ server, subjects }) => {
  const short = await server.openSession('wordcount', subjects.wordcount)
  const long = await server.openSession('wordcount', subjects.wordcount)
  await server.load({
    lanes: Array.from({ length: LANES }, () => callLane(long, WORDS.input, WORDS.contains)),
    idleMs: 0,
    warmUp: { answers: 0 },
    until: { answers: Math.ceil(RECORDS / RECORDS_OF_CALL / LANES) },
  })
  const turn = (calls: string): Promise<number> => {
    const messages = calls.replace(/\/tools\/.*$/, '/messages')
    return timed(() => server.api.post(messages, { input: { message: 'hello' } }))
  }
  const samples: { short: number[]; long: number[] } = { short: [], long: [] }
  for (let n = 0; n < WARM_UP + TURNS; n++) {
    const [first, second] = [await turn(short), await turn(long)]
    if (n < WARM_UP) continue
    samples.short.push(first)
    samples.long.push(second)
  }
  return { 'turn-short-history': samples.short, 'turn-long-history': samples.long }
}
