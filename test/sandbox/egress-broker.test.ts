// The egress broker against servers that do what servers should not, and names that mean what they should not.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, setDefaultCACertificates, getCACertificates, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { EgressBroker } from '../../src/sandbox/supervisor/egress/broker.ts'
import type { EgressLimits } from '../../src/sandbox/supervisor/egress/request-head.ts'
import { FairLookups } from '../../src/sandbox/supervisor/egress/fair-lookups.ts'
import { type Lookup, systemLookup } from '../../src/sandbox/supervisor/egress/resolve.ts'
import { EGRESS_OP, EGRESS_REPLY, NO_TIMEOUT, START_HEAD, UNKNOWN_LENGTH } from '../../src/sandbox/wire/egress.ts'
import { packTexts, unpackTexts } from '../../src/sandbox/wire/texts.ts'

const LIMITS: EgressLimits = {
  requests: 100,
  openRequests: 3,
  requestBytes: 1000,
  responseBytes: 200_000,
  timeoutMs: 10_000,
}

type Asked = {
  readonly method?: string
  readonly authority?: string
  readonly scheme?: string
  readonly path?: string
  readonly fields?: readonly string[]
  readonly length?: number
  readonly timeouts?: readonly [number, number, number]
}

const brokers: EgressBroker[] = []
const servers: Server[] = []
afterEach(() => {
  for (const broker of brokers.splice(0)) broker.close()
  for (const server of servers.splice(0)) server.close()
})

function open(network: readonly string[], lookup: Lookup = systemLookup, limits: Partial<EgressLimits> = {}) {
  const broker = new EgressBroker({ network, lookup, limits: { ...LIMITS, ...limits } })
  brokers.push(broker)
  const ask = async (...parts: Uint8Array[]) => Buffer.concat(await broker.answer(Buffer.concat(parts)))
  const step = (op: number, handle: number, more: Uint8Array = new Uint8Array()) => {
    const head = Buffer.alloc(5)
    head[0] = op
    head.writeUInt32LE(handle, 1)
    return ask(head, more)
  }
  const start = (asked: Asked): Promise<Buffer> => {
    const head = Buffer.alloc(START_HEAD)
    head[0] = EGRESS_OP.START
    for (const [index, ms] of (asked.timeouts ?? [NO_TIMEOUT, NO_TIMEOUT, NO_TIMEOUT]).entries())
      head.writeUInt32LE(ms, 1 + 4 * index)
    head.writeDoubleLE(asked.length ?? 0, 13)
    const { method = 'GET', scheme = 'http', authority = '', path = '/', fields = [] } = asked
    return ask(head, packTexts([method, scheme, authority, path, ...fields]))
  }
  /** The whole of a request: an error of it, or status, fields and body, with the error that ended it. */
  async function get(asked: Asked) {
    const started = await start(asked)
    if (started[0] === EGRESS_REPLY.ERROR) return started.toString('utf8', 1)
    const handle = started.readUInt32LE(1)
    const wait = Buffer.alloc(9)
    wait[0] = EGRESS_OP.POLL
    wait.writeDoubleLE(Number.POSITIVE_INFINITY, 1)
    await ask(wait, started.subarray(1), Buffer.of(0))
    const head = await step(EGRESS_OP.RESPONSE, handle)
    if (head[0] === EGRESS_REPLY.ERROR) return head.toString('utf8', 1)
    const pieces: Buffer[] = []
    for (;;) {
      const reply = await step(EGRESS_OP.READ, handle, Buffer.of(1))
      if (reply[0] === EGRESS_REPLY.OK) {
        expect(reply.length).toBeLessThanOrEqual(65_537)
        pieces.push(reply.subarray(1))
        continue
      }
      await step(EGRESS_OP.CLOSE, handle)
      const end = reply[0] === EGRESS_REPLY.END ? 'end' : reply.toString('utf8', 1)
      return { status: head.readUInt16LE(1), fields: unpackTexts(head, 3), body: Buffer.concat(pieces), end }
    }
  }
  return { broker, ask, step, start, get }
}

/** A server that does this with each connection once it has read a request's head. */
async function serve(act: (socket: Socket, head: string) => void) {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.on('error', () => {})
    socket.once('data', (bytes) => act(socket, bytes.toString('latin1')))
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, authority: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}`, connections: () => connections }
}

const HEAD = 'HTTP/1.1 200 OK\r\n'
const answering = (text: string | Buffer) => serve((socket) => socket.end(text))

describe('names and addresses', () => {
  const to =
    (...addresses: string[]): Lookup =>
    () =>
      Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))

  it.each([
    ['127.0.0.1'],
    ['10.0.0.1'],
    ['169.254.169.254'],
    ['100.64.0.1'],
    ['0.0.0.0'],
    ['::1'],
    ['::'],
    ['fd00:ec2::254'],
    ['fe80::1'],
    ['::ffff:127.0.0.1'],
    ['::ffff:8.8.8.8'],
    ['64:ff9b::7f00:1'],
    ['2002:7f00:1::'],
    ['8.8.8.8', '127.0.0.1'],
    ['224.0.0.1'],
  ])('a granted name that means %s is refused, and nobody is connected to', async (...addresses) => {
    const server = await answering(`${HEAD}\r\n`)
    const { get } = open([`http://api.example:${server.port}`], to(...addresses))
    expect(await get({ authority: `api.example:${server.port}` })).toBe('destination-IP-prohibited')
    expect(server.connections()).toBe(0)
  })

  it('a name is looked up once, after it was found granted; localhost may only mean loopback', async () => {
    const server = await answering(`${HEAD}Content-Length: 2\r\n\r\nok`)
    const asked: string[] = []
    const rebinding: Lookup = (name) => {
      asked.push(name)
      return to(asked.length === 1 ? '127.0.0.1' : '8.8.8.8')(name)
    }
    const { get } = open([`http://localhost:${server.port}`], rebinding)
    expect(await get({ authority: `other.example:${server.port}` })).toBe('HTTP-request-denied')
    expect(asked).toEqual([])
    expect(await get({ authority: `LOCALHOST.:${server.port}` })).toMatchObject({ status: 200, end: 'end' })
    expect(asked).toEqual(['localhost'])
    expect(await get({ authority: `localhost:${server.port}` })).toBe('destination-IP-prohibited')
  })

  it('a name that is not there is a DNS error', async () => {
    const missing: Lookup = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }))
    expect(await open(['http://a.example'], missing).get({ authority: 'a.example' })).toBe('DNS-error\nENOTFOUND')
    expect(await open(['http://a.example'], to()).get({ authority: 'a.example' })).toBe('DNS-error\nENODATA')
    expect(await open(['http://a.invalid']).get({ authority: 'a.invalid' })).toMatch(/^DNS-error\n/)
  })

  it.each([
    'user@127.0.0.1:PORT',
    '127.0.0.1:PORT@evil.example',
    'evil.example\\@127.0.0.1:PORT',
    '127.0.0.1:PORT/',
    '127.0.0.1:PORT#',
    '127.0.0.1:PORT?',
    '127.1:PORT',
    '0177.0.0.1:PORT',
    '0x7f000001:PORT',
    '2130706433:PORT',
    '１２７.0.0.1:PORT',
    '[::ffff:127.0.0.1]:PORT',
    '127.0.0.1 :PORT',
    '127.0.0.1',
    '',
  ])('%j is denied where 127.0.0.1 is granted', async (authority) => {
    const server = await answering(`${HEAD}\r\n`)
    const { get } = open([server.origin])
    expect(await get({ authority: authority.replace('PORT', String(server.port)) })).toBe('HTTP-request-denied')
    expect(server.connections()).toBe(0)
  })

  it('a closed port is refused', async () => {
    const { get } = open(['http://127.0.0.1:1'])
    expect(await get({ authority: '127.0.0.1:1' })).toBe('connection-refused')
  })
})

describe('https', () => {
  const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/localhost.${name}`, import.meta.url), 'utf8')

  it('needs a certificate for the granted name from somebody known, and names it', async () => {
    const names: unknown[] = []
    const server = createTlsServer({ key: pem('key'), cert: pem('crt') }, (socket: TLSSocket) => {
      socket.on('error', () => {})
      names.push(socket.servername, socket.alpnProtocol)
      socket.once('data', (bytes) => {
        names.push(/\r\nHost: (\S+)/i.exec(bytes.toString())?.[1])
        socket.end(`${HEAD}Content-Length: 2\r\n\r\nok`)
      })
    }).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { get } = open([`https://localhost:${port}`, `https://127.0.0.1:${port}`])
    const known = getCACertificates('default')
    expect(await get({ scheme: 'https', authority: `localhost:${port}` })).toBe('TLS-certificate-error')
    setDefaultCACertificates([...known, pem('crt')])
    try {
      names.length = 0
      expect(await get({ scheme: 'https', authority: `localhost:${port}` })).toMatchObject({ status: 200, end: 'end' })
      expect(names).toEqual(['localhost', false, `localhost:${port}`])
      expect(await get({ scheme: 'https', authority: `127.0.0.1:${port}` })).toBe('TLS-certificate-error')
    } finally {
      setDefaultCACertificates(known)
    }
    const plain = await answering('not TLS at all\r\n\r\n')
    const other = open([`https://localhost:${plain.port}`])
    expect(await other.get({ scheme: 'https', authority: `localhost:${plain.port}` })).toMatch(/^TLS-|^connection-term/)
  })
})

describe('answers that are none', () => {
  it.each<readonly [string, string, string]>([
    ['nothing', '', 'connection-terminated'],
    ['words', 'hello\r\n\r\n', 'HTTP-protocol-error'],
    ['half a head', `${HEAD}X: y`, 'connection-terminated'],
    ['a name with a blank', `${HEAD}X y: z\r\n\r\n`, 'HTTP-protocol-error'],
    ['a folded line', `${HEAD}X: y\r\n z\r\n\r\n`, 'HTTP-protocol-error'],
    ['a NUL', `${HEAD}X: \0\r\n\r\n`, 'HTTP-protocol-error'],
    ['two lengths', `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 'HTTP-protocol-error'],
    ['a length of words', `${HEAD}Content-Length: many\r\n\r\n`, 'HTTP-protocol-error'],
    [
      'length and chunks',
      `${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      'HTTP-response-transfer-coding',
    ],
    ['a large head', `${HEAD}X: ${'y'.repeat(70_000)}\r\n\r\n`, 'HTTP-response-header-section-size'],
    [
      'many large headers',
      `${HEAD}${`X: ${'y'.repeat(1000)}\r\n`.repeat(70)}\r\n`,
      'HTTP-response-header-section-size',
    ],
    ['257 headers', `${HEAD}${'X: y\r\n'.repeat(257)}\r\n`, 'HTTP-response-header-section-size\n514'],
    ['half a line, for ever', `${HEAD}${'X'.repeat(70_000)}`, 'HTTP-response-header-section-size'],
    ['an upgrade', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', 'HTTP-upgrade-failed'],
  ])('%s', async (_, text, error) => {
    const server = await answering(text)
    expect(await open([server.origin]).get({ authority: server.authority })).toBe(error)
  })

  it.each([
    ['chunks that are none', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nZZ\r\n', 'ok'],
    ['a chunk too long', 'Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n', 'ok'],
    ['a chunk beyond all numbers', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nfffffffffffffffff\r\n', 'ok'],
    ['trailers without end', `Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${'T: t\r\n'.repeat(20_000)}`, 'ok'],
    ['a chunk with endless words', `Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(70_000)}\r\nok`, 'ok'],
    ['an end before the last chunk', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n', 'ok'],
    ['an end before the length', 'Content-Length: 9\r\n\r\nok', 'ok'],
  ])('%s: at most the bytes before it, then an error', async (_, text, body) => {
    const server = await serve((socket) => socket.end(`${HEAD}${text}`))
    const answer = await open([server.origin]).get({ authority: server.authority })
    expect(answer).toMatchObject({
      status: 200,
      end: expect.stringMatching(/^HTTP-(response-incomplete|protocol-error)$/),
    })
    if (typeof answer === 'object') expect(body.startsWith(answer.body.toString())).toBe(true)
  })

  it('256 headers are read, those of the connection and trailers are left out', async () => {
    const fields = `${'X: y\r\n'.repeat(254)}Connection: close\r\nTransfer-Encoding: chunked\r\n`
    const server = await answering(`${HEAD}${fields}\r\n2\r\nok\r\n0\r\nTrailer: t\r\n\r\n`)
    const answer = await open([server.origin]).get({ authority: server.authority })
    expect(answer).toMatchObject({ status: 200, end: 'end', body: Buffer.from('ok') })
    expect((answer as { fields: unknown[] }).fields).toHaveLength(508)
  })

  it('headers that `Connection` names are between us and the server, wherever they stand', async () => {
    const fields = [
      'X-Hop: 1',
      'Connection: close, X-HOP ,, keep-alive',
      'x-hop: 2',
      'Kept: 3',
      'connection: Other',
      'OTHER: 4',
      'Keep-Alive: 5',
      'Proxy-Connection: 6',
      'TE: 7',
      'Upgrade: 8',
      'Trailer: 9',
      'Set-Cookie: a',
      'Set-Cookie: b',
      'Content-Length: 2',
    ]
    const server = await answering(`${HEAD}${fields.join('\r\n')}\r\n\r\nok`)
    expect(await open([server.origin]).get({ authority: server.authority })).toMatchObject({
      fields: ['Kept', '3', 'Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '2'],
      body: Buffer.from('ok'),
    })
  })

  it('what pieces of a byte cost this process is counted, and waiting for them is not', async () => {
    const body = (count: number, size: number) =>
      `${HEAD}Transfer-Encoding: chunked\r\n\r\n${`${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`.repeat(count)}0\r\n\r\n`
    const server = await serve((socket, head) => {
      if (head.includes('/late')) setTimeout(() => socket.end(body(1, 100_000)), 300)
      else socket.end(head.includes('/small') ? body(100_000, 1) : body(1, 100_000))
    })
    const costOf = async (path: string): Promise<number> => {
      const { get, broker } = open([server.origin])
      expect(await get({ authority: server.authority, path })).toMatchObject({ end: 'end', body: { length: 100_000 } })
      return broker.workMs
    }
    const [large, late, small] = [await costOf('/large'), await costOf('/late'), await costOf('/small')]
    expect(large).toBeGreaterThan(0)
    expect(late).toBeLessThan(100)
    expect(small).toBeGreaterThan(10 * large)
  })

  it('a body in pieces of a byte is bounded, and ends one byte past the limit', async () => {
    const pieces = (count: number) => `${HEAD}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(count)}0\r\n\r\n`
    const server = await serve((socket, head) => socket.end(pieces(head.includes('/over') ? 5001 : 5000)))
    const { get } = open([server.origin], systemLookup, { responseBytes: 5000 })
    expect(await get({ authority: server.authority })).toMatchObject({ end: 'end', body: { length: 5000 } })
    expect(await get({ authority: server.authority, path: '/over' })).toMatchObject({
      end: 'HTTP-response-body-size\n5000',
    })
  })
})

describe('servers that take their time', () => {
  const soon = [10_000, 100, 100] as const

  it('no head, and a head byte by byte, end at the timeout of the first byte', async () => {
    const silent = await serve(() => {})
    const { get } = open([silent.origin])
    expect(await get({ authority: silent.authority, timeouts: soon })).toBe('HTTP-response-timeout')
    const slow = await serve((socket) => {
      socket.write(HEAD)
      const timer = setInterval(() => socket.write('X: y\r\n'), 5)
      socket.on('close', () => clearInterval(timer))
    })
    expect(await open([slow.origin]).get({ authority: slow.authority, timeouts: soon })).toBe('HTTP-response-timeout')
  })

  it('a body that stops ends at the timeout between bytes; a guest that does not read does not', async () => {
    const server = await serve((socket) => socket.write(`${HEAD}Content-Length: 9\r\n\r\nok`))
    const answer = await open([server.origin]).get({ authority: server.authority, timeouts: soon })
    expect(answer).toMatchObject({ end: 'connection-read-timeout', body: Buffer.from('ok') })
  })

  it('the longest timeout is that of the server', async () => {
    const server = await serve(() => {})
    const { get } = open([server.origin], systemLookup, { timeoutMs: 100 })
    expect(await get({ authority: server.authority, timeouts: [4e9, 4e9, 4e9] })).toBe('HTTP-response-timeout')
  })

  it('a name that is never found ends at the timeout to connect', async () => {
    const { get } = open(['http://a.example'], () => new Promise(() => {}))
    expect(await get({ authority: 'a.example', timeouts: [100, 1, 1] })).toBe('connection-timeout')
  })

  it('the end of the call closes its sockets', async () => {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    const server = await serve((socket) => resolve(socket))
    const { start, broker } = open([server.origin])
    await start({ authority: server.authority })
    const socket = await promise
    const closing = once(socket, 'close')
    broker.close()
    await closing
    expect((await start({ authority: server.authority })).toString('utf8', 1)).toBe('HTTP-request-denied')
  })
})

describe('names that are looked up for many', () => {
  const BOUNDS = { atOnce: 3, perOwner: 2, heldPerOwner: 5 }

  /** Lookups that end when they are told to; `asked` in the order in which they began. */
  function hanging(bounds = BOUNDS) {
    const asked: string[] = []
    const ends = new Map<string, () => void>()
    const lookup: Lookup = (name) => {
      asked.push(name)
      return new Promise((resolve) => ends.set(name, () => resolve([{ address: '127.0.0.1', family: 4 }])))
    }
    return { asked, ends, lookups: new FairLookups(lookup, bounds) }
  }
  /** Everything that can go on has gone on. */
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  it("one session's names that hang take no more than its share, and leave the rest to others", async () => {
    const { asked, ends, lookups } = hanging()
    const mine = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => lookups.of('a')(name))
    await expect(lookups.of('a')('a6')).rejects.toMatchObject({ error: { tag: 'DNS-timeout' } })
    const other = lookups.of('b')('b1')
    await settled()
    expect(asked).toEqual(['a1', 'a2', 'b1'])
    ends.get('b1')!()
    expect(await other).toHaveLength(1)
    ends.get('a2')!()
    await mine[1]
    await settled()
    expect(asked).toEqual(['a1', 'a2', 'b1', 'a3'])
    for (const name of ['a1', 'a3', 'a4', 'a5']) {
      ends.get(name)!()
      await settled()
    }
    await Promise.all(mine)
    expect(asked).toEqual(['a1', 'a2', 'b1', 'a3', 'a4', 'a5'])
    const again = lookups.of('a')('a7')
    await settled()
    ends.get('a7')!()
    expect(await again).toHaveLength(1)
  })

  it('sessions that wait come in turn, and a lookup that fails gives its place back', async () => {
    const { asked, ends, lookups } = hanging({ ...BOUNDS, atOnce: 1 })
    const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => lookups.of(name[0]!)(name))
    for (let count = 1; count <= 6; count++) {
      await settled()
      expect(asked).toHaveLength(count)
      ends.get(asked.at(-1)!)!()
    }
    await Promise.all(all)
    expect(asked).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
    const failing = new FairLookups(() => Promise.reject(new Error('no')), { ...BOUNDS, atOnce: 1 })
    for (let i = 0; i < 10; i++) await expect(failing.of('a')('x')).rejects.toThrow('no')
  })

  it('a request is answered while another session waits for names that are never found', async () => {
    const server = await answering(`${HEAD}Content-Length: 2\r\n\r\nok`)
    const lookups = new FairLookups(
      (name) => (name === 'localhost' ? systemLookup(name) : new Promise(() => {})),
      BOUNDS,
    )
    const rude = open(['http://hangs.example'], lookups.of('rude'), { openRequests: 20 })
    for (let i = 0; i < 20; i++) await rude.start({ authority: 'hangs.example' })
    const { get } = open([`http://localhost:${server.port}`], lookups.of('other'))
    expect(await get({ authority: `localhost:${server.port}` })).toMatchObject({ status: 200, end: 'end' })
  })
})

describe('requests that are not sent', () => {
  it.each<readonly [string, Asked, string]>([
    ['CONNECT', { method: 'CONNECT' }, 'HTTP-request-method-invalid'],
    ['connect', { method: 'connect' }, 'HTTP-request-method-invalid'],
    ['a method of two words', { method: 'GET /x' }, 'HTTP-request-method-invalid'],
    ['a line in the path', { path: '/ HTTP/1.1\r\nX: y' }, 'HTTP-request-URI-invalid'],
    ['a blank in the path', { path: '/a b' }, 'HTTP-request-URI-invalid'],
    ['a fragment', { path: '/#a' }, 'HTTP-request-URI-invalid'],
    ['another URL as the path', { path: 'http://evil.example/' }, 'HTTP-request-URI-invalid'],
    ['a path of 8193 characters', { path: `/${'a'.repeat(8192)}` }, 'HTTP-request-URI-too-long'],
    ['a line in a value', { fields: ['x', 'a\r\nHost: evil'] }, 'HTTP-protocol-error'],
    ['a line in a name', { fields: ['x\r\nHost', 'a'] }, 'HTTP-protocol-error'],
    ['a Host', { fields: ['Host', 'evil'] }, 'HTTP-request-denied'],
    ['chunks', { fields: ['Transfer-Encoding', 'chunked'] }, 'HTTP-request-denied'],
    ['257 headers', { fields: Array.from({ length: 514 }, () => 'x') }, 'HTTP-request-header-section-size\n514'],
    ['large headers', { fields: ['x', 'y'.repeat(65_536)] }, 'HTTP-request-header-section-size\n65537'],
    ['two lengths', { fields: ['content-length', '1', 'Content-Length', '2'] }, 'HTTP-protocol-error'],
    ['a length of words', { fields: ['content-length', '+1'] }, 'HTTP-protocol-error'],
    ['another length than the body', { fields: ['content-length', '2'], length: 1 }, 'HTTP-request-body-size\n1'],
    ['a body of 1001 bytes', { length: 1001 }, 'HTTP-request-body-size\n1001'],
  ])('%s', async (_, asked, error) => {
    const server = await answering(`${HEAD}\r\n`)
    expect(await open([server.origin]).get({ authority: server.authority, ...asked })).toBe(error)
    expect(server.connections()).toBe(0)
  })

  it('what is exactly at those bounds is', async () => {
    const server = await answering(`${HEAD}Content-Length: 0\r\n\r\n`)
    const { get } = open([server.origin])
    for (const asked of [
      { path: `/${'a'.repeat(8191)}` },
      { path: '' },
      { path: '?a' },
      { fields: Array.from({ length: 512 }, () => 'x') },
      { fields: ['x', 'y'.repeat(65_535)] },
      { method: 'PROPFIND' },
    ])
      expect(await get({ authority: server.authority, ...asked })).toMatchObject({ status: 200, end: 'end' })
  })

  it('a body that is shorter or longer than was said ends the request', async () => {
    const server = await serve(() => {})
    const { start, step } = open([server.origin])
    const short = await start({ method: 'POST', authority: server.authority, length: 5 })
    await step(EGRESS_OP.WRITE, short.readUInt32LE(1), Buffer.from('four'))
    expect((await step(EGRESS_OP.FINISH, short.readUInt32LE(1))).toString('utf8', 1)).toBe('HTTP-request-body-size\n4')
    const long = await start({ method: 'POST', authority: server.authority, length: UNKNOWN_LENGTH })
    expect((await step(EGRESS_OP.WRITE, long.readUInt32LE(1), Buffer.alloc(1000)))[0]).toBe(EGRESS_REPLY.OK)
    const over = await step(EGRESS_OP.WRITE, long.readUInt32LE(1), Buffer.alloc(1))
    expect(over.toString('utf8', 1)).toBe('HTTP-request-body-size\n1001')
  })

  it('three at once are held here; a fourth when one of them is given up', async () => {
    const server = await serve(() => {})
    const { start, step } = open([server.origin])
    const handles: number[] = []
    for (let i = 0; i < 3; i++) handles.push((await start({ authority: server.authority })).readUInt32LE(1))
    expect((await start({ authority: server.authority })).toString('utf8', 1)).toBe('connection-limit-reached')
    await step(EGRESS_OP.CLOSE, handles[0]!)
    expect((await start({ authority: server.authority }))[0]).toBe(EGRESS_REPLY.OK)
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['an unknown step', Buffer.of(99, 0, 0, 0, 0)],
    ['half a head', Buffer.of(EGRESS_OP.START, 0, 0)],
    ['texts that are cut short', Buffer.concat([Buffer.of(EGRESS_OP.START), Buffer.alloc(20), Buffer.of(9, 0, 0, 0)])],
    ['half a handle', Buffer.of(EGRESS_OP.READ, 0)],
    ['half a subject', Buffer.concat([Buffer.of(EGRESS_OP.POLL), Buffer.alloc(8), Buffer.of(1, 0)])],
    ['too many subjects', Buffer.concat([Buffer.of(EGRESS_OP.POLL), Buffer.alloc(8 + 5 * 4097)])],
  ])('%s is no request of a box of ours', async (what, bytes) => {
    const { broker } = open([])
    const answer = broker.answer(bytes)
    if (what === 'an unknown step') expect((await answer)[0]?.[0]).toBe(EGRESS_REPLY.ERROR)
    else await expect(answer).rejects.toThrow(RangeError)
  })
})
