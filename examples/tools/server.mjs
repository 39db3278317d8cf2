import { serveTools, startService, text } from '../tool-service.mjs'
import { openPage } from './approval-page.mjs'
import { openTerminal } from './approval-terminal.mjs'
import { Approvals } from './approvals.mjs'
import { Jobs } from './jobs.mjs'
import { sessionActivity } from './session-activity.mjs'

const { BRAIN_TOOLS_KEY, TOOLS_LISTEN, APPROVALS_PORT, APPROVAL_SECONDS, GRANT_SECONDS } = process.env

await startService('tools', async (stopped) => {
  const approvals = new Approvals({
    // Less than the binding's timeout_seconds, so that the model hears from us that nobody answered.
    waitSeconds: seconds('APPROVAL_SECONDS', APPROVAL_SECONDS ?? 240),
    grantSeconds: seconds('GRANT_SECONDS', GRANT_SECONDS ?? 300),
  })
  const jobs = new Jobs(stopped)
  await serveTools({
    title: 'tools',
    listen: TOOLS_LISTEN ?? '127.0.0.1:8081',
    token: BRAIN_TOOLS_KEY,
    stopped,
    tools: {
      echo: ({ arguments: given }) => text(given.text),
      ask_operator: approvals.ask,
      publish_notice: (call) => {
        // Here is where it happens, so here is where it is checked, whatever the model says of approvals.
        approvals.take('publish_notice', call)
        console.log(`published for session ${call.sessionId}`)
        return text('The notice is published.')
      },
      count_primes: jobs.start,
      job_status: jobs.status,
      cancel_job: jobs.cancel,
      session_activity: sessionActivity,
    },
  })
  openTerminal(approvals, { input: process.stdin, stopped })
  console.log(`approvals at ${await openPage(approvals, { port: Number(APPROVALS_PORT ?? 8084), stopped })}`)
})

function seconds(name, value) {
  const number = Number(value)
  if (number > 0 && number <= 86_400) return number
  throw new Error(`${name} is ${JSON.stringify(value)}, not a number of seconds up to 86400`)
}
