import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { guardedRequest, type GuardedRequest } from '../../../../src/kernel/net/guarded-request.ts'
import { isLoopbackAddress, isPublicAddress } from '../../../../src/kernel/net/public-address.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

const portOf = (server: { address(): AddressInfo | string | null }): number => (server.address() as AddressInfo).port

async function listening(listener: RequestListener): Promise<{ url: URL; server: Server }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: new URL(`http://127.0.0.1:${portOf(server)}/v1/operations`), server }
}

/** Answers a request with bytes of its own choice. */
async function answering(bytes: string, onRequest: (socket: Socket) => void = () => undefined): Promise<URL> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(bytes)
      onRequest(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return new URL(`http://127.0.0.1:${portOf(server)}/`)
}

const ask = (url: URL, more: Partial<GuardedRequest> = {}): ReturnType<typeof guardedRequest> =>
  guardedRequest({
    url,
    headers: { 'content-type': 'application/json' },
    body: '{"a":"é"}',
    isFit: isLoopbackAddress,
    connectMs: 5000,
    totalMs: 5000,
    mostBytes: 1000,
    ...more,
  })

it('sends once and gives the answer, whatever its status', async () => {
  const seen: unknown[] = []
  const { url } = await listening((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      seen.push([request.method, request.url, request.headers['content-length'], Buffer.concat(chunks).toString()])
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end('elsewhere')
    })
  })
  const answer = await ask(url)
  expect([answer.status, answer.headers.location, answer.body.toString()]).toEqual([
    307,
    'http://127.0.0.1:1/',
    'elsewhere',
  ])
  expect(seen).toEqual([['POST', '/v1/operations', '10', '{"a":"é"}']])
})

it.each(['127.0.0.1', 'localhost'])('never connects to %s where its address is not fit', async (host) => {
  const { url, server } = await listening((_request, response) => response.end())
  const connections: Socket[] = []
  server.on('connection', (socket) => connections.push(socket))
  url.hostname = host
  await expect(ask(url, { isFit: isPublicAddress })).rejects.toMatchObject({ reason: 'prohibited', isSent: false })
  expect(connections).toEqual([])
})

it('refuses a name of which one address is not fit', async () => {
  const { url } = await listening((_request, response) => response.end())
  url.hostname = 'localhost'
  await expect(ask(url, { isFit: () => false })).rejects.toMatchObject({ reason: 'prohibited' })
})

it('says that nothing was sent where nobody listens and where a name means nothing', async () => {
  const { url, server } = await listening(() => undefined)
  await new Promise((resolve) => server.close(resolve))
  await expect(ask(url)).rejects.toMatchObject({ reason: 'unreachable', isSent: false })
  await expect(ask(new URL('http://nobody.invalid/'))).rejects.toMatchObject({ reason: 'unreachable', isSent: false })
})

it.each([
  ['a body that is cut', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', 'broken'],
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', 'broken'],
  ['nothing', '', 'broken'],
  ['another protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'broken'],
  ['a body over the limit', `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(1001)}`, 'too_large'],
])('does not know what was done when it is answered %s', async (_what, bytes, reason) => {
  const url = await answering(bytes, (socket) => socket.end())
  await expect(ask(url)).rejects.toMatchObject({ reason, isSent: true })
})

it('takes a body of just the limit', async () => {
  const url = await answering(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(1000)}`, (socket) => socket.end())
  expect((await ask(url)).body).toHaveLength(1000)
})

it('ends when its time is over and when its caller gives it up, and closes its connection', async () => {
  const closed = Promise.withResolvers<void>()
  const url = await answering('HTTP/1.1 200 OK\r\n\r\nendless', (socket) =>
    socket.once('close', () => closed.resolve()),
  )
  await expect(ask(url, { totalMs: 50 })).rejects.toMatchObject({ reason: 'timeout', isSent: true })
  await closed.promise
  const stop = new AbortController()
  const asked = ask(await answering('', () => stop.abort()), { totalMs: undefined, signal: stop.signal })
  await expect(asked).rejects.toMatchObject({ reason: 'aborted', isSent: true })
  await expect(ask(url, { signal: AbortSignal.abort() })).rejects.toMatchObject({ reason: 'aborted', isSent: false })
})

it('gives up a connection that does not come to be: TLS that is never answered', async () => {
  const sockets: Socket[] = []
  const silent = createTcpServer((socket) => void sockets.push(socket.on('error', () => undefined)))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  })
  const url = new URL(`https://127.0.0.1:${portOf(silent)}/`)
  await expect(ask(url, { connectMs: 50 })).rejects.toMatchObject({ reason: 'timeout', isSent: false })
})
