import { randomUUID } from 'node:crypto'
import { ToolFailure } from '../tool-service.mjs'

const MAX_RUNNING_OF_SESSION = 2
const MAX_RUNNING = 8
const MAX_KEPT = 1000
const NUMBERS_PER_SLICE = 20_000

/**
 * Work that outlasts its call: `start` answers with a job id at once, and two more tools look after the job and end it. A
 * job is of the session that started it; for every other its id is no job.
 */
export class Jobs {
  #jobs = new Map()

  /** @param {AbortSignal} stopped ends every job: the service owns what it has begun */
  constructor(stopped) {
    stopped.addEventListener('abort', () => {
      for (const job of this.#jobs.values()) end(job, 'cancelled')
    })
  }

  /** The tool `count_primes`: starts to count the primes below a number. */
  start = ({ tenantId, sessionId, arguments: { below } }) => {
    const running = [...this.#jobs.values()].filter(({ state }) => state === 'running')
    const own = running.filter((job) => job.tenantId === tenantId && job.sessionId === sessionId)
    if (own.length >= MAX_RUNNING_OF_SESSION || running.length >= MAX_RUNNING)
      throw new ToolFailure('Too many jobs are running: wait for one, or cancel one')
    const job = { id: `job_${randomUUID()}`, tenantId, sessionId, below, state: 'running', next: 2, primes: 0 }
    this.#jobs.set(job.id, job)
    const [oldest] = [...this.#jobs.values()].filter(({ state }) => state !== 'running')
    if (this.#jobs.size > MAX_KEPT && oldest !== undefined) this.#jobs.delete(oldest.id)
    setImmediate(slice, job)
    return { structured_content: { job_id: job.id } }
  }

  /** The tool `job_status`. */
  status = (call) => ({ structured_content: shown(this.#of(call)) })

  /** The tool `cancel_job`. To cancel what has ended changes nothing, so it may be asked again. */
  cancel = (call) => {
    const job = this.#of(call)
    end(job, 'cancelled')
    return { structured_content: shown(job) }
  }

  #of({ tenantId, sessionId, arguments: { job_id } }) {
    const job = this.#jobs.get(job_id)
    if (job?.tenantId !== tenantId || job.sessionId !== sessionId)
      throw new ToolFailure('There is no such job: it was never started here, or the service was restarted')
    return job
  }
}

const shown = ({ state, next, below, primes }) => ({
  state,
  percent: Math.floor((100 * Math.min(next, below)) / below),
  ...(state === 'done' ? { primes } : {}),
})

function end(job, state) {
  if (job.state === 'running') job.state = state
}

/** A part of the work; others get their turn in between. */
function slice(job) {
  if (job.state !== 'running') return
  const until = Math.min(job.below, job.next + NUMBERS_PER_SLICE)
  for (; job.next < until; job.next++) if (isPrime(job.next)) job.primes++
  if (job.next >= job.below) end(job, 'done')
  else setImmediate(slice, job)
}

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false
  return true
}
