// The load process: reads a LoadPlan as the first line of standard input, answers a LoadResult on standard output.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Connection } from './connection.ts'
import type { LoadPlan, LoadResult } from './plan.ts'

const input = createInterface({ input: process.stdin })
const [line] = (await once(input, 'line')) as [string]
const told = once(input, 'close')
const result = await run(JSON.parse(line) as LoadPlan)
process.stdout.write(JSON.stringify(result))
process.stdin.destroy()

function run(plan: LoadPlan): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const { warmUp, until } = plan
    const latenciesMs: number[] = []
    const began = performance.now()
    let measuredFrom = 'ms' in warmUp ? began + warmUp.ms : Number.POSITIVE_INFINITY
    let cpu = process.cpuUsage()
    let lanesLeft = plan.lanes.length
    let lanesCold = plan.lanes.length
    const connections: Connection[] = []
    const finish = (): void => {
      for (const connection of connections) connection.close()
      const { user, system } = process.cpuUsage(cpu)
      resolve({ latenciesMs, elapsedMs: performance.now() - measuredFrom, cpuMs: (user + system) / 1000 })
    }
    for (const lane of plan.lanes) {
      let sentAt = 0
      let cold = 'answers' in warmUp ? warmUp.answers : 0
      let left = until !== 'told' && 'answers' in until ? until.answers : Number.POSITIVE_INFINITY
      const send = (): void => {
        sentAt = performance.now()
        connection.send()
      }
      const onAnswer = (): void => {
        const now = performance.now()
        if ('answers' in warmUp && cold > 0) {
          cold--
          // Measuring begins when every lane is warm.
          if (cold === 0 && --lanesCold === 0) [measuredFrom, cpu] = [now, process.cpuUsage()]
        } else if (sentAt >= measuredFrom) {
          latenciesMs.push(now - sentAt)
          left--
        }
        if (left > 0) {
          if (plan.idleMs > 0) setTimeout(send, plan.idleMs)
          else send()
        } else if (--lanesLeft === 0) finish()
      }
      const connection = new Connection(plan.port, lane, {
        onAnswer,
        onFault: (reason) => reject(new Error(`${lane.method} ${lane.path}: ${reason}`)),
      })
      connections.push(connection)
      send()
    }
    if ('ms' in warmUp) setTimeout(() => (cpu = process.cpuUsage()), warmUp.ms)
    if (until === 'told') void told.then(finish)
    else if ('ms' in until) setTimeout(finish, ('ms' in warmUp ? warmUp.ms : 0) + until.ms)
  })
}
