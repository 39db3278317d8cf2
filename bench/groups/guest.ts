import type { Json } from '../../src/kernel/json.ts'
import type { BenchServer } from '../bench-server.ts'
import type { Group } from '../run.ts'

const CALLS = 12
const EMITS = 100
const STATS = 1000

type Answer = { readonly results: readonly { readonly output: { readonly n: number; readonly us_each: number } }[] }

/** What the guest itself measures, on its own clock: each sample is the mean of the operations of one call. */
export const guest: Group = async ({ server, subjects }) => {
  const path = await server.openSession('files', subjects.files)
  const emits = await meansUs(server, path, { op: 'emit', n: EMITS })
  return {
    'emit-round-trip': emits.map((us) => us / 1000),
    'file-op': await meansUs(server, path, { op: 'stat', n: STATS }),
  }
}

/** The first call, in which the engine has yet to compile the guest, does not count. */
async function meansUs(server: BenchServer, path: string, input: Json & { readonly n: number }): Promise<number[]> {
  const samples: number[] = []
  for (let call = 0; call <= CALLS; call++) {
    const answer = await server.api.post<Answer>(path, { input })
    const output = answer.results[0]?.output
    if (output?.n !== input.n) throw new Error(`The guest measured nothing: ${JSON.stringify(answer).slice(0, 500)}`)
    if (call > 0) samples.push(output.us_each)
  }
  return samples
}
