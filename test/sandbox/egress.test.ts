// HTTP requests of guests in real boxes, to real servers on this machine.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CallOptions, type Lab, openLab, scripted } from './lab.ts'

const MIB = 1024 * 1024

// What a guest's libc or SDK does with wasi:http, as its imports see it.
const GUEST = `
const T = imports['wasi:http/types'], { handle } = imports['wasi:http/outgoing-handler']
const text = (bytes) => { let out = ''; for (const byte of bytes) out += String.fromCharCode(byte); return out }
const bytesOf = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0))
const codeOf = (payload) => payload.tag === 'last-operation-failed' ? T.httpErrorCode(payload.val) : payload
const plain = (code) => JSON.parse(JSON.stringify(code, (key, value) => typeof value === 'bigint' ? Number(value) : value))
function send(url) {
  const [, scheme, authority, path] = /^(\\w+):\\/\\/([^/]*)(.*)$/.exec(url.to)
  const fields = T.Fields.fromList(Object.entries(url.headers ?? {}).map(([name, value]) => [name, bytesOf(value)]))
  const request = new T.OutgoingRequest(fields)
  request.setMethod({ tag: url.method ?? 'get' })
  request.setScheme({ tag: scheme.toUpperCase() })
  request.setAuthority(authority)
  request.setPathWithQuery(path)
  const body = url.body === undefined && url.bytes === undefined ? undefined : request.body()
  const write = () => {
    if (body === undefined) return
    const stream = body.write()
    if (url.body !== undefined) stream.blockingWriteAndFlush(bytesOf(url.body))
    for (let left = url.bytes ?? 0; left > 0; left -= 65536)
      stream.blockingWriteAndFlush(new Uint8Array(Math.min(left, 65536)).fill(97))
    T.OutgoingBody.finish(body, undefined)
  }
  if (url.early) write()
  const future = handle(request, undefined)
  if (!url.early) write()
  return future
}
function receive(future, url) {
  future.subscribe().block()
  const answer = future.get().val
  if (answer.tag === 'err') throw Object.assign(new Error(), { payload: answer.val })
  const response = answer.val
  const out = { status: response.status(), headers: {} }
  for (const [name, value] of response.headers().entries()) out.headers[name.toLowerCase()] = text(value)
  const body = response.consume(), stream = body.stream()
  out.size = 0
  let kept = ''
  try {
    for (;;) {
      const bytes = stream.blockingRead(1000000n)
      out.size += bytes.length
      if (kept.length < 1000) kept += text(bytes)
    }
  } catch (error) {
    if (error.payload?.tag !== 'closed') { out.broken = plain(codeOf(error.payload)) }
  }
  out.body = kept.slice(0, 1000)
  T.IncomingBody.finish(body)
  return out
}
const attempt = (run) => { try { return run() } catch (error) {
  if (error.payload === undefined) throw error
  return { error: plain(codeOf(error.payload)) }
} }
const input = JSON.parse(invocation.inputJson)
`
const one = scripted(`${GUEST}\nreturn JSON.stringify(attempt(() => receive(send(input), input)))`)
const parallel = scripted(`${GUEST}
const futures = Array.from({ length: input.count }, () => send(input))
const { poll } = imports['wasi:io/poll']
const waiting = new Map(futures.map((future) => [future, future.subscribe()]))
const order = []
while (waiting.size > 0) {
  const entries = [...waiting]
  for (const index of poll(entries.map(([, pollable]) => pollable))) {
    order.push(receive(entries[index][0], input).body)
    waiting.delete(entries[index][0])
  }
}
return JSON.stringify(order)`)
const timed = scripted(`${GUEST}
const future = send(input), pollable = future.subscribe()
const timer = imports['wasi:clocks/monotonic-clock'].subscribeDuration(30000000n)
const { poll } = imports['wasi:io/poll']
return JSON.stringify([[...poll([pollable, timer])], pollable.ready(), future.get() === undefined])`)
const held = scripted(`${GUEST}
const all = []
for (let i = 0; i < input.count; i++) all.push(attempt(() => { all.push(send(input)); return 'sent' }))
return JSON.stringify(all.filter((entry) => entry === 'sent' || entry.error !== undefined))`)

const endless = scripted(`${GUEST}
const future = send(input); for (;;) future.get()`)

let lab: Lab
let server: Server
let base: string

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'http://x')
  if (pathname === '/echo') {
    const { method, url, rawHeaders } = request
    let size = 0
    let body = ''
    request.on('data', (bytes: Buffer) => {
      size += bytes.length
      if (body.length < 100) body += bytes.toString('latin1')
    })
    request.on('end', () => response.end(JSON.stringify({ method, url, rawHeaders, size, body: body.slice(0, 100) })))
  } else if (pathname === '/redirect') response.writeHead(302, { location: '/echo' }).end('moved')
  else if (pathname === '/big') {
    response.writeHead(200, { 'content-encoding': 'gzip' })
    for (let i = 0; i < 16; i++) response.write(Buffer.alloc(65_536, 98))
    response.end()
  } else if (pathname === '/bytes') response.end(Buffer.alloc(Number(request.url?.split('?')[1]), 99))
}

beforeAll(async () => {
  server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  lab = await openLab({
    egressRequests: 20,
    egressOpenRequests: 20,
    egressRequestBytes: MIB,
    egressResponseBytes: MIB,
    hostCalls: 2000,
  })
})
afterAll(async () => {
  await lab[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
})

async function run(script: string, input: object, options: CallOptions = {}): Promise<any> {
  const network = options.network ?? [base]
  const { end } = await lab.call(lab.plant(script), { input: JSON.stringify(input), ...options, network })
  if (end.type !== 'returned') expect.unreachable(JSON.stringify(end))
  return JSON.parse(end.text)
}

describe('a guest with a network grant', () => {
  it('gets an answer; the headers between us and the server are ours', async () => {
    const { status, headers, body } = await run(one, { to: `${base}/echo?a=b`, headers: { 'X-A': 'b', Accept: '*' } })
    const seen = JSON.parse(body)
    expect(status).toBe(200)
    expect(Object.keys(headers)).toEqual(['date', 'content-length'])
    expect(seen).toMatchObject({ method: 'GET', url: '/echo?a=b', size: 0 })
    expect(seen.rawHeaders).toEqual(['Host', base.slice(7), 'X-A', 'b', 'Accept', '*', 'Connection', 'close'])
  })

  it.each(['post', 'put', 'get'])('sends a body with %s, written before or after the request', async (method) => {
    for (const early of [true, false]) {
      const { body } = await run(one, { to: `${base}/echo`, method, body: 'hello', early })
      expect(JSON.parse(body)).toMatchObject({ method: method.toUpperCase(), size: 5, body: 'hello' })
      expect(body.toLowerCase()).toContain(early ? '"content-length","5"' : '"transfer-encoding","chunked"')
    }
  })

  it('sends and receives 1 MiB, which is the limit here; compressed bytes come as they are', async () => {
    const sent = await run(one, { to: `${base}/echo`, method: 'post', bytes: MIB })
    expect(JSON.parse(sent.body).size).toBe(MIB)
    const received = await run(one, { to: `${base}/big` })
    expect(received).toMatchObject({ status: 200, size: MIB, headers: { 'content-encoding': 'gzip' } })
    expect(received.broken).toBeUndefined()
  })

  it('gets an error one byte past the limit, in both directions', async () => {
    const error = { tag: 'HTTP-request-body-size', val: MIB + 1 }
    for (const early of [true, false])
      expect(await run(one, { to: `${base}/echo`, method: 'post', bytes: MIB + 1, early })).toEqual({ error })
    const received = await run(one, { to: `${base}/bytes?${MIB + 1}` })
    expect(received.broken).toEqual({ tag: 'HTTP-response-body-size', val: MIB })
    expect(received.size).toBeLessThanOrEqual(MIB)
    expect(await run(one, { to: `${base}/bytes?${MIB}` })).toMatchObject({ size: MIB })
  })

  it('is handed a redirect', async () => {
    expect(await run(one, { to: `${base}/redirect` })).toMatchObject({
      status: 302,
      headers: { location: '/echo' },
      body: 'moved',
    })
  })

  it('polls 20 requests at once', async () => {
    expect(await run(parallel, { count: 20, to: `${base}/bytes?3` })).toEqual(Array.from({ length: 20 }, () => 'ccc'))
  })

  it('has 20 requests here, and no more', async () => {
    const answers = await run(held, { count: 21, to: `${base}/bytes?3` })
    expect(answers.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'sent'))
    expect(answers[20].error).toMatchObject({
      tag: 'internal-error',
      val: expect.stringContaining('BRAIN_MAX_EGRESS_REQUESTS'),
    })
  })

  it('has as many steps as host calls, whatever it asks for', async () => {
    await using silent = await silentServer()
    const input = JSON.stringify({ to: silent.url })
    const { end, facts } = await lab.call(lab.plant(endless), { network: [silent.url], input })
    expect(end).toMatchObject({
      type: 'trapped',
      code: 'host_call_limit',
      message: expect.stringMatching(/2000 .*BRAIN_MAX_HOST_CALLS/),
    })
    expect(facts.hostCalls).toBe(2001)
  })

  it('pays for what its answers cost the supervisor: pieces of a byte end at the limit of CPU time', async () => {
    await using drip = await drippingServer()
    await using strict = await openLab({ guestCpuSecs: 1 })
    const input = JSON.stringify({ to: drip.url })
    const { end, facts } = await strict.call(strict.plant(one), { network: [drip.url], input })
    expect(end).toMatchObject({ type: 'trapped', code: 'compute_limit' })
    // Of that second its box used a part, the supervisor the rest.
    expect(facts.cpuMs).toBeLessThan(900)
  })

  it('waits for an answer and a clock at once', async () => {
    await using silent = await silentServer()
    expect(await run(timed, { to: silent.url }, { network: [silent.url] })).toEqual([[1], false, true])
  })
})

describe('what is denied', () => {
  it.each([
    ['no grant', [], '/echo'],
    ['another port', ['http://127.0.0.1:1'], '/echo'],
    ['another scheme', ['https://127.0.0.1'], '/echo'],
    ['another name of it', ['http://localhost'], '/echo'],
  ])('%s', async (_, network, path) => {
    expect(await run(one, { to: base + path }, { network })).toEqual({ error: { tag: 'HTTP-request-denied' } })
  })

  it.each(['Host', 'connection', 'Transfer-Encoding', 'proxy-authorization', 'TE', 'upgrade', 'expect'])(
    'the header %s',
    async (name) => {
      expect(await run(one, { to: `${base}/echo`, headers: { [name]: 'x' } })).toEqual({ error: { tag: 'forbidden' } })
    },
  )
})

describe('a server that never answers', () => {
  it.each(['deadline', 'cancel'])('loses its connection within a second of the %s', async (how) => {
    await using silent = await silentServer()
    const execution = lab.start(lab.plant(one), {
      input: JSON.stringify({ to: silent.url }),
      network: [silent.url],
      ...(how === 'deadline' ? { deadlineInMs: 1500 } : {}),
    })
    const socket = await silent.connected
    const closing = once(socket, 'close')
    if (how === 'cancel') execution.stop('cancelled')
    const { end } = await execution.ended
    const began = performance.now()
    expect(end).toEqual({ type: 'stopped', reason: how === 'cancel' ? 'cancelled' : 'timeout' })
    await closing
    expect(performance.now() - began).toBeLessThan(1000)
  })
})

async function silentServer() {
  const { promise: connected, resolve } = Promise.withResolvers<Socket>()
  const tcp = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.resume()
    resolve(socket)
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  return {
    url: `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`,
    connected,
    async [Symbol.asyncDispose]() {
      tcp.close()
      ;(await connected).destroy()
    },
  }
}

/** Sends a body that never ends, in chunks of a byte, as quickly as they are taken. */
async function drippingServer() {
  const chunks = Buffer.from('1\r\na\r\n'.repeat(4096))
  const tcp = createTcpServer((socket) => {
    socket.on('error', () => {})
    const pour = () => {
      while (!socket.destroyed && socket.write(chunks));
    }
    socket.on('drain', pour)
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      pour()
    })
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  return {
    url: `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      tcp.close()
      await once(tcp, 'close')
    },
  }
}
