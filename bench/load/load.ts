import { Connection } from './connection.ts'
import type { Lane, LoadPlan, LoadResult } from './plan.ts'

/** One run of a plan: its lanes, and what was measured of them. */
export class Load {
  readonly #plan: LoadPlan
  readonly #connections: Connection[] = []
  readonly #result = Promise.withResolvers<LoadResult>()
  readonly #latenciesMs: number[] = []
  #measuredFrom = Number.POSITIVE_INFINITY
  #cpu = process.cpuUsage()
  #cold: number
  #running: number

  constructor(plan: LoadPlan) {
    this.#plan = plan
    this.#running = plan.lanes.length
    this.#cold = plan.lanes.length
  }

  /** @param told settles when a plan without an end of its own is to end. Rejects at the first answer that is wrong. */
  run(told: Promise<unknown>): Promise<LoadResult> {
    const { warmUp, until, lanes } = this.#plan
    if ('ms' in warmUp) setTimeout(() => this.#measure(), warmUp.ms)
    else if (warmUp.answers === 0) this.#measure()
    for (const lane of lanes) this.#open(lane)
    if (until === 'told') void told.then(() => this.#finish())
    else if ('ms' in until) setTimeout(() => this.#finish(), ('ms' in warmUp ? warmUp.ms : 0) + until.ms)
    return this.#result.promise
  }

  #measure(): void {
    this.#measuredFrom = performance.now()
    this.#cpu = process.cpuUsage()
  }

  #open(lane: Lane): void {
    const { warmUp, until, idleMs, port } = this.#plan
    let cold = 'answers' in warmUp ? warmUp.answers : 0
    let left = until !== 'told' && 'answers' in until ? until.answers : Number.POSITIVE_INFINITY
    let sentAt = 0
    const send = (): void => {
      sentAt = performance.now()
      connection.send()
    }
    const onAnswer = (): void => {
      const now = performance.now()
      if (cold > 0) {
        // Measuring begins when every lane is warm.
        if (--cold === 0 && --this.#cold === 0) this.#measure()
      } else if (sentAt >= this.#measuredFrom) {
        this.#latenciesMs.push(now - sentAt)
        left--
      }
      if (left === 0) this.#laneEnded()
      else if (idleMs > 0) setTimeout(send, idleMs)
      else send()
    }
    const onFault = (reason: string): void => {
      this.#close()
      this.#result.reject(new Error(`${lane.method} ${lane.path}: ${reason}`))
    }
    const connection = new Connection(port, lane, { onAnswer, onFault })
    this.#connections.push(connection)
    send()
  }

  #laneEnded(): void {
    if (--this.#running === 0) this.#finish()
  }

  #finish(): void {
    this.#close()
    const { user, system } = process.cpuUsage(this.#cpu)
    this.#result.resolve({
      latenciesMs: this.#latenciesMs,
      elapsedMs: performance.now() - this.#measuredFrom,
      cpuMs: (user + system) / 1000,
    })
  }

  #close(): void {
    for (const connection of this.#connections) connection.close()
  }
}
