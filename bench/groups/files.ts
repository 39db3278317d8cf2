import type { Json } from '../../src/kernel/json.ts'
import type { BenchServer } from '../bench-server.ts'
import { type Group, timed } from '../run.ts'

const MIB = 100
/** As the guest asks; its libc writes 4 KiB at a time whatever it asks. */
const PIECE_KIB = 64
const FILES = 1000
const TIMES = 5

type Answer = {
  readonly results: readonly { readonly output: { readonly us_each?: number; readonly ms?: number } }[]
}

/** A large workspace file, written and read, on the guest's own clock; and a listing of many files, as a direct call. */
export const files: Group = async ({ server, subjects }) => {
  const { files: worker, inspect } = await server.openTools({ files: subjects.files, inspect: subjects.inspect })
  const read: number[] = []
  const written: number[] = []
  for (let time = 0; time <= TIMES; time++) {
    const { ms = 0 } = await outputOf(server, worker, { op: 'write', path: 'large', mb: MIB, kb: PIECE_KIB })
    const { us_each: us = 0 } = await outputOf(server, worker, { op: 'slurp', path: 'large' })
    // In the first call the engine compiles the guest.
    if (time === 0) continue
    written.push(MIB / (ms / 1000))
    read.push(MIB / (us / 1e6))
  }
  await outputOf(server, worker, { op: 'spit', path: '', n: FILES })
  const listed: number[] = []
  for (let time = 0; time <= TIMES; time++) {
    const ms = await timed(async () => {
      const answer = JSON.stringify(await outputOf(server, inspect, { path: '.' }))
      if (!answer.includes('/workspace/f999"'))
        throw new Error(`Cannot measure: inspect answered ${answer.slice(0, 500)}`)
    })
    if (time > 0) listed.push(ms)
  }
  return { 'file-read-rate': read, 'file-write-rate': written, 'inspect-1000': listed }
}

async function outputOf(server: BenchServer, path: string, input: Json): Promise<Answer['results'][number]['output']> {
  const answer = await server.api.post<Answer>(path, { input })
  const output = answer.results[0]?.output
  if (output === undefined) throw new Error(`Cannot measure: ${JSON.stringify(answer).slice(0, 500)}`)
  return output
}
