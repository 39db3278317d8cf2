import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { BenchServer, callLane } from '../bench-server.ts'
import { median } from '../figure.ts'
import { type Group, timed } from '../run.ts'

/** As `warm-call-rust`. */
const WARM_UP = 500
const SAMPLES = 300
const SERVICE = fileURLToPath(new URL('../load/echo-service.ts', import.meta.url))

/** Direct calls of a distributed tool, by a caller in another process, beside bare calls of its service. */
export const services: Group = async () => {
  const service = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', SERVICE], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  try {
    const [line] = (await once(service.stdout.setEncoding('utf8'), 'data')) as [string]
    const url = `http://127.0.0.1:${line.trim()}/tools/echo`
    const tool = { name: 'echo', description: 'Echo text.', input_schema: { type: 'object' }, url }
    await using server = await BenchServer.start(undefined, [], { tools: [tool] })
    const bare = await bareCalls(url)
    const { session_id: id } = await server.api.post<{ session_id: string }>('/v1/sessions', {
      model: { provider: 'scripted', name: 'script', api_key: 'none', script: [{ text: 'nothing to say' }] },
      config: { tools: ['echo'] },
    })
    const lanes = [callLane(`/v1/sessions/${id}/tools/echo/calls`, { text: 'hello' }, ['hello'])]
    const plan = { lanes, idleMs: 0, warmUp: { answers: WARM_UP }, until: { answers: SAMPLES } }
    const { latenciesMs } = await server.load(plan)
    const least = median(bare)
    return { 'tool-service-call': latenciesMs.map((ms) => ms - least) }
  } finally {
    service.kill()
  }
}

async function bareCalls(url: string): Promise<readonly number[]> {
  const body = JSON.stringify({ arguments: { text: 'hello' } })
  const call = async (): Promise<void> => {
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    await response.json()
  }
  for (let n = 0; n < WARM_UP; n++) await call()
  const samples: number[] = []
  for (let n = 0; n < SAMPLES; n++) samples.push(await timed(call))
  return samples
}
