import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  // Not `no-referrer`, with which browsers would send `Origin: null` with the answer.
  'Referrer-Policy': 'same-origin',
}

/**
 * The page of questions, on loopback. Its address holds a key that is new at each start and is printed on the terminal: who
 * has it is the operator. Sites that the operator's browser visits meanwhile have it not, cannot send the page's origin, and
 * cannot pretend to be it by a name that leads to loopback.
 * @returns {Promise<string>} the address
 */
export async function openPage(approvals, { port, stopped }) {
  const key = randomBytes(24).toString('base64url')
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  server.requestTimeout = 10_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  stopped.addEventListener('abort', () => {
    server.close()
    server.closeAllConnections()
  })
  const host = `127.0.0.1:${server.address().port}`
  const path = `/${key}/`
  return `http://${host}${path}`

  async function serve(request, response) {
    const say = (status, words) => response.writeHead(status, HEADERS).end(document(`<p>${escape(words)}</p>`))
    if (request.headers.host !== host) return say(421, 'Not the host of this page')
    if (!same(request.url ?? '', path)) return say(404, 'Not found: open the address that the service printed')
    if (request.method === 'GET') return response.writeHead(200, HEADERS).end(document(questions(approvals.waiting)))
    if (request.method !== 'POST') return say(405, 'Not a method of this page')
    const site = request.headers['sec-fetch-site'] ?? 'same-origin'
    if (request.headers.origin !== `http://${host}` || site !== 'same-origin') return say(403, 'Not sent by this page')
    const form = new URLSearchParams(await read(request))
    const answer = form.get('answer')
    if (answer !== 'yes' && answer !== 'no') return say(400, 'An answer is yes or no')
    if (!approvals.answer(form.get('digest') ?? '', answer)) return say(409, 'This question waits no longer')
    response.writeHead(303, { ...HEADERS, Location: path }).end()
  }
}

async function read(request) {
  let body = ''
  for await (const chunk of request.setEncoding('latin1')) {
    body += chunk
    if (body.length > 1024) throw new Error('too long')
  }
  return body
}

const hash = (words) => createHash('sha256').update(words).digest()
const same = (left, right) => timingSafeEqual(hash(left), hash(right))

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
/** Signs that turn text around or hide in it are shown as what they are. */
const escape = (words) =>
  words
    .replaceAll(/[&<>"']/g, (one) => ENTITIES[one])
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, '0')}`)

const questions = (waiting) =>
  waiting.length === 0
    ? '<p>No question waits. <a href="">Look again</a></p>'
    : waiting
        .map(
          ({ digest, tenantId, sessionId, arguments: given }) => `<form method="post">
<p>Session ${escape(sessionId)} of ${escape(tenantId)} asks:</p>
<p><code>${escape(JSON.stringify(given))}</code></p>
<p>sha256 ${digest}</p>
<input type="hidden" name="digest" value="${digest}">
<button name="answer" value="yes">yes</button> <button name="answer" value="no">no</button>
</form>`,
        )
        .join('<hr>')

const document = (body) => `<!doctype html><html lang="en"><title>Approvals</title><h1>Approvals</h1>${body}</html>`
