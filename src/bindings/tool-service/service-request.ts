import { randomBytes } from 'node:crypto'
import type { RequestOptions } from 'node:http'
import { parseTraceparent } from '../../kernel/traceparent.ts'
import { activityIdOf } from '../../dispatch/call-activity.ts'
import type { BoundCall } from '../../dispatch/tool-binding.ts'
import { isPassedOn, type Target } from './open-connection.ts'

/** What lets a service read the events of the session that calls it. */
export type InspectionGrant = { readonly token: string; readonly brainUrl: string }

/** The body of a call: who calls, as Brain knows it, beside what the model says (seed: Handle a tool call). */
export function bodyOf({ tenant, session, sequence, input }: BoundCall, grant: InspectionGrant | undefined): string {
  const known = { tenant_id: tenant, session_id: session, call_id: activityIdOf(session, sequence) }
  const inspection = grant === undefined ? {} : { inspection_token: grant.token, brain_url: grant.brainUrl }
  // The input goes out as the text that was checked.
  return `${JSON.stringify({ ...known, ...inspection }).slice(0, -1)},"arguments":${input}}`
}

/** Head of the POST for a call; `token` opens the service. */
export function requestOf(
  { traceparent }: BoundCall,
  target: Target,
  { body, token }: { readonly body: string; readonly token: string | undefined },
): RequestOptions {
  const { url, proxy } = target
  const viaProxy = isPassedOn(target)
  const trace = traceparent === undefined ? undefined : continued(traceparent)
  return {
    method: 'POST',
    path: viaProxy ? `${url.origin}${url.pathname}${url.search}` : `${url.pathname}${url.search}`,
    headers: {
      Host: url.host,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Content-Length': String(Buffer.byteLength(body)),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(trace === undefined ? {} : { traceparent: trace }),
      ...(viaProxy && proxy?.authorization !== undefined ? { 'Proxy-Authorization': proxy.authorization } : {}),
    },
  }
}

/** The same trace and flags with a span of our own (W3C Trace Context 2.2); undefined for what is no traceparent. */
function continued(traceparent: string): string | undefined {
  const known = parseTraceparent(traceparent)
  return known && `00-${known.trace}-${newSpanId()}-${known.flags}`
}

function newSpanId(): string {
  const id = randomBytes(8).toString('hex')
  return /^0+$/.test(id) ? newSpanId() : id
}
