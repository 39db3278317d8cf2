import { callLane, type BenchServer } from '../bench-server.ts'
import { type Group, timed, WORDS } from '../run.ts'

const FIRST_RUST = 8
const FIRST_PYTHON = 4
const WARM_UP = 50
/** V8 compiles the code of the server and of a box step by step, over some hundred calls. */
const WARM_UP_RUST = 500
const WARM_RUST = 300
const WARM_PYTHON = 60
/** Time for the box to make its next instance. */
const IDLE_RUST_MS = 5
const IDLE_PYTHON_MS = 40

/** Direct calls over HTTP: the first one of a session, which loads a box, and later ones. */
export const calls: Group = async ({ server, subjects }) => {
  const { wordcount, python } = subjects
  const path = await server.openSession('wordcount', wordcount)
  return {
    'first-call-rust': await firstCalls(server, wordcount, FIRST_RUST),
    ...(python === undefined ? {} : { 'first-call-python': await firstCalls(server, python, FIRST_PYTHON) }),
    'warm-call-rust': await warmCalls(server, path, { idleMs: 0, warmUp: WARM_UP_RUST, answers: WARM_RUST }),
    'warm-call-rust-idle': await warmCalls(server, path, { idleMs: IDLE_RUST_MS, warmUp: WARM_UP, answers: WARM_RUST }),
    ...(python === undefined
      ? {}
      : {
          'warm-call-python': await warmCalls(server, await server.openSession('wordcount', python), {
            idleMs: IDLE_PYTHON_MS,
            warmUp: WARM_UP,
            answers: WARM_PYTHON,
          }),
        }),
  }
}

async function firstCalls(server: BenchServer, component: Buffer, times: number): Promise<number[]> {
  const samples: number[] = []
  for (let time = 0; time < times; time++) {
    const path = await server.openSession('wordcount', component)
    await server.untilWarm()
    samples.push(
      await timed(async () => {
        const answer = JSON.stringify(await server.api.post(path, { input: WORDS.input }))
        if (!WORDS.contains.every((part) => answer.includes(part))) throw new Error(`The first call failed: ${answer}`)
      }),
    )
  }
  return samples
}

async function warmCalls(
  server: BenchServer,
  path: string,
  { idleMs, warmUp, answers }: { idleMs: number; warmUp: number; answers: number },
): Promise<readonly number[]> {
  const lanes = [callLane(path, WORDS.input, WORDS.contains)]
  const { latenciesMs } = await server.load({ lanes, idleMs, warmUp: { answers: warmUp }, until: { answers } })
  return latenciesMs
}
