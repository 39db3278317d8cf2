import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'

const MAX_BODY_BYTES = 8 * 1024 * 1024
const MAX_CALLS = 256

/** A failure that the model is told of: the call ends with `is_error`, and Brain knows that nothing is in doubt. */
export class ToolFailure extends Error {}

/** A result of text. @param {string} words */
export const text = (words) => ({ content: [{ type: 'text', text: words }] })

/**
 * Runs a service until SIGINT or SIGTERM; one that cannot start says why and ends with 1.
 *
 * @param {string} title @param {(stopped: AbortSignal) => Promise<void>} open
 */
export async function startService(title, open) {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => stop.abort())
  try {
    await open(stop.signal)
  } catch (error) {
    console.error(`Cannot start ${title}: ${error.message}`)
    process.exit(1)
  }
}

/**
 * Serves tools at `POST /tools/NAME` in the way that Brain calls them, and prints where.
 *
 * A tool is a function of one call: `{ tenantId, sessionId, callId, arguments, inspection, signal, progress }`. It returns a
 * result object. The first `progress(data)` makes the answer an event stream, so its headers are sent at once. `signal`
 * aborts when Brain no longer waits or the service stops: what was begun is the tool's to clean up.
 *
 * What a tool throws beside a `ToolFailure` is answered with 500, after which Brain says that the work may have been done.
 *
 * @param {{ title: string, listen: string, token: string | undefined, stopped: AbortSignal,
 *   tools: Record<string, (call: object) => unknown> }} options
 */
export async function serveTools({ title, listen, token, stopped, tools }) {
  if (!token) throw new Error('BRAIN_TOOLS_KEY is not set: give it and Brain the same one')
  const expected = digest(`Bearer ${token}`)
  const byName = new Map(Object.entries(tools))
  let running = 0

  const server = createServer((request, response) => {
    serve(request, response).catch((error) => {
      // The message and not the request: its arguments are the session's, and its inspection token is nobody's to keep.
      console.error(`${title}: ${request.url}: ${printable(String(error))}`)
      if (response.headersSent) response.destroy()
      else refuse(response, 500)
    })
  })
  server.requestTimeout = 30_000
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(listen) ?? []
  if (host === undefined) throw new Error(`cannot listen on ${JSON.stringify(listen)}: use HOST:PORT`)
  server.listen(Number(port), host)
  await once(server, 'listening')
  stopped.addEventListener('abort', () => {
    server.close()
    server.closeAllConnections()
  })
  console.log(`${title} listens on http://${host}:${server.address().port}`)

  async function serve(request, response) {
    // Its headers first: who has no token learns nothing, not even which tools there are.
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) return refuse(response, 401)
    const tool = byName.get(/^\/tools\/([\w-]{1,64})$/.exec(request.url ?? '')?.[1] ?? '')
    if (tool === undefined) return refuse(response, 404)
    if (request.method !== 'POST') return refuse(response, 405)
    if (running >= MAX_CALLS) return refuse(response, 429)
    running++
    try {
      await answer(tool, request, response, stopped)
    } finally {
      running--
    }
  }
}

async function answer(tool, request, response, stopped) {
  const call = await readCall(request)
  if (call === undefined) return refuse(response, 400)
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  call.signal = AbortSignal.any([gone.signal, stopped])
  call.progress = (data) => {
    if (!response.headersSent)
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    response.write(`event: progress\ndata: ${JSON.stringify(data)}\n\n`)
  }
  const result = await resultOf(tool, call)
  if (response.destroyed) return
  if (response.headersSent) return response.end(`event: result\ndata: ${JSON.stringify(result)}\n\n`)
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(result))
}

async function resultOf(tool, call) {
  try {
    return await tool(call)
  } catch (error) {
    if (error instanceof ToolFailure) return { ...text(error.message), is_error: true }
    throw error
  }
}

/** @returns the call, or `undefined` for what Brain would not send */
async function readCall(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  let body
  try {
    body = JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
  const { tenant_id, session_id, call_id, arguments: given, inspection_token: token, brain_url: url } = body ?? {}
  if (![tenant_id, session_id, call_id].every((id) => typeof id === 'string' && id !== '')) return undefined
  if (typeof given !== 'object' || given === null) return undefined
  const inspection = token === undefined ? undefined : { token, url }
  return { tenantId: tenant_id, sessionId: session_id, callId: call_id, arguments: given, inspection }
}

const digest = (words) => createHash('sha256').update(words).digest()

function refuse(response, status) {
  // A body that was not read would be in the way of the next request.
  response.writeHead(status, { Connection: 'close' }).end()
}

/** Text of a stranger for a terminal: ASCII alone, so that it moves no cursor and turns no line around. */
export const printable = (words) =>
  words.replaceAll(/[^\x20-\x7e]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
