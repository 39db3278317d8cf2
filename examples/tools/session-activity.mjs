import { text, ToolFailure } from '../tool-service.mjs'

const MAX_BYTES = 4 * 1024 * 1024

/**
 * The tool `session_activity`: what the session's tools did so far, read with the inspection token of this call. The token
 * is used here and now and goes nowhere else: not into the answer, a log, or a message, nor after a redirect.
 */
export async function sessionActivity({ sessionId, inspection, signal }) {
  if (inspection === undefined) throw new ToolFailure('The binding of this tool has no inspect_session')
  const response = await fetch(`${inspection.url}/v1/sessions/${encodeURIComponent(sessionId)}/tool-events`, {
    headers: { Authorization: `Bearer ${inspection.token}` },
    redirect: 'error',
    signal,
  })
  if (!response.ok) throw new ToolFailure(`The events of the session cannot be read: HTTP ${response.status}`)
  let body = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    body += chunk
    if (body.length > MAX_BYTES) throw new ToolFailure('The events of the session are too long')
  }
  const types = JSON.parse(body).events.map(({ event_type }) => event_type)
  const count = (type) => types.filter((one) => one === type).length
  return text(`${count('tool.call')} calls, ${count('tool.result')} ended`)
}
