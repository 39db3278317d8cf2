// The load process: reads a LoadPlan as the first line of standard input, answers a LoadResult on standard output.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Load } from './load.ts'
import type { LoadPlan } from './plan.ts'

const input = createInterface({ input: process.stdin })
const [line] = (await once(input, 'line')) as [string]
const told = once(input, 'close')
try {
  process.stdout.write(JSON.stringify(await new Load(JSON.parse(line) as LoadPlan).run(told)))
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
process.stdin.destroy()
