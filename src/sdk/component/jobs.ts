type Job = () => void

/** Jobs in the order in which they were asked for: `queueMicrotask` and every reaction of a promise. */
let jobs: Job[] = []
let next = 0
let onFirstJob: Job | undefined
export function enqueueJob(job: Job): void {
  jobs.push(job)
  if (jobs.length === 1) onFirstJob?.()
}

/** Runs jobs until there are none, also those that jobs ask for. A job that throws leaves the others to be run. */
export function runJobs(): void {
  while (next < jobs.length) {
    const job = jobs[next++] as Job
    if (next > 1024) {
      jobs = jobs.slice(next)
      next = 0
    }
    job()
  }
  jobs = []
  next = 0
}

/** Who is told that there are jobs, where nobody runs them anyway: while the module is loaded. */
export function whenFirstJob(tell: Job | undefined): void {
  onFirstJob = tell
}
