import { messageLane, type BenchServer } from '../bench-server.ts'
import { type Group, WORDS } from '../run.ts'

/** As `warm-call-rust`: V8 compiles the code of the server and of a box step by step. */
const WARM_UP = 500
const TURNS = 300
const SCRIPT = [{ tool_calls: [{ name: 'wordcount', input: WORDS.input }] }, { text: 'that is five words' }]

type Transcript = { readonly messages: readonly { readonly role: string }[] }

/** Turns in which the model asks for one tool and then says what it found, one after another. */
export const turns: Group = async ({ server, subjects }) => {
  const script = Array.from({ length: WARM_UP + TURNS }, () => SCRIPT).flat()
  const session = await server.openScripted(script, { name: 'wordcount', component: subjects.wordcount })
  const { latenciesMs } = await server.load({
    lanes: [messageLane(session)],
    idleMs: 0,
    warmUp: { answers: WARM_UP },
    until: { answers: TURNS },
  })
  await check(server, session)
  return { 'turn-one-model-one-tool': latenciesMs }
}

/** A turn that failed answers as well. */
async function check(server: BenchServer, session: string): Promise<void> {
  const { messages } = await server.api.get<Transcript>(`${session}/transcript`)
  const results = messages.filter((message) => WORDS.contains.every((part) => JSON.stringify(message).includes(part)))
  if (results.length !== WARM_UP + TURNS)
    throw new Error(`Cannot measure turns: ${results.length} of ${WARM_UP + TURNS} called their tool`)
}
