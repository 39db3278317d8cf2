import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parseProxyRules } from '../../../../src/kernel/net/proxy-rules.ts'
import {
  echoAt,
  headOf,
  HELLO,
  jsonAnswer,
  type Lab,
  openToolLab,
  RawService,
  STREAM_HEAD,
} from '../../../support/tool-service-lab.ts'

let service: RawService
let lab: Lab
beforeAll(async () => {
  service = await RawService.open(() => undefined)
  lab = openToolLab(echoAt(service.origin, { max_output_bytes: 100_000 }))
})
afterEach(() => lab.close())
afterAll(() => service[Symbol.asyncDispose]())

const JSON_TYPE = 'Content-Type: application/json'
const LENGTH = `Content-Length: ${HELLO.length}`

/** A body in one chunk, and what follows its last one. */
const chunked = (body: string, { extension = '', trailer = '', coding = 'chunked' } = {}): string =>
  `${headOf('200 OK', [JSON_TYPE, `Transfer-Encoding: ${coding}`])}${body.length.toString(16)}${extension}\r\n${body}\r\n0\r\n${trailer}\r\n`

const nested = (depth: number): string => `{"structured_content":${'['.repeat(depth)}${']'.repeat(depth)}}`

describe('an answer in a form that HTTP allows', () => {
  it.each<[string, string | Buffer]>([
    ['100 Continue before it', `HTTP/1.1 100 Continue\r\n\r\n${jsonAnswer(HELLO).toString()}`],
    ['many hints before it', `${headOf('103 Early Hints', ['Link: </x>']).repeat(50)}${jsonAnswer(HELLO).toString()}`],
    ['a trailer', chunked(HELLO, { trailer: 'Is-Error: true\r\n' })],
    [
      'many headers',
      headOf('200 OK', [...Array.from({ length: 900 }, (_, at) => `X${at}: y`), JSON_TYPE, LENGTH]) + HELLO,
    ],
    ['an encoding that changes nothing', headOf('200 OK', [JSON_TYPE, 'Content-Encoding: Identity', LENGTH]) + HELLO],
    ['a type in capital letters', jsonAnswer(HELLO, 'APPLICATION/JSON ; charset=UTF-8')],
    ['a byte order mark', jsonAnswer(`\ufeff${HELLO}`)],
    ['depth of exactly 64 levels', jsonAnswer(nested(63))],
  ])('is taken: %s', async (_, bytes) => {
    service.script = (socket) => socket.write(bytes)
    expect(await lab.call().end).toMatchObject({ status: 'ok' })
  })

  it('is taken: HTTP/1.0, which ends with its connection', async () => {
    service.script = (socket) => socket.end(`HTTP/1.0 200 OK\r\n${JSON_TYPE}\r\n\r\n${HELLO}`)
    expect(await lab.call().end).toMatchObject({ status: 'ok' })
  })

  it.each([
    ['another answer', jsonAnswer('{"structured_content":"poison"}')],
    ['what is no HTTP', Buffer.from('garbage')],
  ])('is taken alone when it is followed by %s, and its connection is not used again', async (_, more) => {
    service.script = (socket) => socket.write(Buffer.concat([jsonAnswer(HELLO), more]))
    const before = service.connections
    expect(await lab.call().end).toMatchObject({ content: 'hello' })
    service.script = (socket) => socket.write(jsonAnswer(HELLO))
    expect(await lab.call().end).toMatchObject({ content: 'hello' })
    expect(service.connections - before).toBe(2)
  })
})

describe('an answer that cannot be used', () => {
  const zipped = gzipSync(HELLO)
  it.each<[string, string | Buffer, string]>([
    ['a part', jsonAnswer(HELLO, 'application/json', '206 Partial Content'), 'HTTP 206, not 200'],
    ['a status that nobody knows', jsonAnswer(HELLO, 'application/json', '600 X'), 'HTTP 600, not 200'],
    [
      'a trailer without end',
      chunked(HELLO, { trailer: `X: ${'y'.repeat(1000)}\r\n`.repeat(100) }),
      'connection broke',
    ],
    ['an endless extension of a chunk', chunked(HELLO, { extension: `;${'x'.repeat(100_000)}` }), 'connection broke'],
    [
      'two lengths',
      headOf('200 OK', [JSON_TYPE, LENGTH, 'Content-Length: 45']) + HELLO,
      'no HTTP that can be read (HPE_',
    ],
    ['a length and chunks', headOf('200 OK', [JSON_TYPE, 'Transfer-Encoding: chunked', LENGTH]) + HELLO, '(HPE_'],
    ['a length that is none', headOf('200 OK', [JSON_TYPE, `Content-Length: ${'9'.repeat(20)}`]) + HELLO, '(HPE_'],
    ['less than its length', headOf('200 OK', [JSON_TYPE, 'Content-Length: 99999']) + HELLO, 'the connection broke'],
    ['no head', HELLO, '(HPE_'],
    ['HTTP/2', Buffer.from('000000040000000000', 'hex'), '(HPE_'],
    [
      'one of two encodings',
      headOf('200 OK', [JSON_TYPE, 'Content-Encoding: identity', 'Content-Encoding: gzip']),
      'compressed',
    ],
    [
      'a coding that HTTP does not undo',
      Buffer.from(chunked(zipped.toString('latin1'), { coding: 'gzip, chunked' }), 'latin1'),
      'not valid UTF-8',
    ],
    [
      'UTF-16',
      jsonAnswer(Buffer.from(`\ufeff${HELLO}`, 'utf16le'), 'application/json; charset=utf-16'),
      'not valid UTF-8',
    ],
    [
      'Latin 1',
      jsonAnswer(Buffer.from('{"structured_content":"\xe9"}', 'latin1'), 'application/json; charset=iso-8859-1'),
      'not valid UTF-8',
    ],
    ['another kind of JSON', jsonAnswer(HELLO, 'application/problem+json'), 'content type is neither'],
    [
      'a member of every object',
      jsonAnswer('{"structured_content":1,"__proto__":{"is_error":true}}'),
      'a member besides content',
    ],
    ['more than 64 levels', jsonAnswer(nested(64)), 'no JSON that can be carried'],
    ['as many levels as there is room for', jsonAnswer('['.repeat(100_000)), 'no JSON that can be carried'],
    ['nothing', headOf('200 OK', [JSON_TYPE, 'Content-Length: 0']), 'no JSON that can be carried'],
    [
      'a name with a NUL',
      `${STREAM_HEAD}event: result\0\ndata: ${HELLO}\n\n`,
      'event 1 of its stream is neither progress nor result',
    ],
    [
      'two byte order marks',
      `${STREAM_HEAD}\ufeff\ufeffevent: result\ndata: ${HELLO}\n\n`,
      'event 1 of its stream has no name',
    ],
  ])('leaves it unknown what was done: %s', async (_, bytes, reason) => {
    service.script = (socket) => socket.end(bytes)
    expect(await lab.call().end).toMatchObject({ type: 'unknown', message: expect.stringContaining(reason) })
  })

  it('may go on for ever after a status that is no result: nothing more of it is read', async () => {
    const cut = Promise.withResolvers<void>()
    service.script = (socket) => {
      socket.once('close', () => cut.resolve())
      socket.write(headOf('500 X', ['Content-Type: text/plain']))
      const more = (): void => void (socket.writable && socket.write('x'.repeat(65_536), more))
      more()
    }
    expect(await lab.call().end).toMatchObject({ type: 'unknown', message: expect.stringContaining('HTTP 500') })
    await cut.promise
  })
})

describe('a head that does not come', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['1xx without end', (socket) => void socket.write(headOf('102 Processing', []))],
    ['one header after another', (socket) => void socket.write('X: y\r\n')],
  ])('is a timeout, perhaps done: %s', async (name, drip) => {
    const hasty = openToolLab(echoAt(service.origin), { headersMs: 600 })
    service.script = (socket) => {
      if (!name.startsWith('1xx')) socket.write('HTTP/1.1 200 OK\r\n')
      const dripping = setInterval(() => drip(socket), 20)
      socket.once('close', () => clearInterval(dripping))
    }
    expect(await hasty.call().end).toEqual({ type: 'stopped', reason: 'timeout' })
    await service.closed()
  })
})

/** A service that reads nothing: what it answers comes before the call was sent to its end. */
async function withDeaf<Result>(
  answer: (socket: Socket) => void,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const sockets = new Set<Socket>()
  const deaf = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket.on('error', () => undefined))
    answer(socket)
  }).listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  try {
    return await work(`http://127.0.0.1:${(deaf.address() as AddressInfo).port}/`)
  } finally {
    for (const socket of sockets) socket.destroy()
    deaf.close()
  }
}

describe('a service that does not read', () => {
  const input = JSON.stringify({ text: 'x'.repeat(5_000_000) })
  it.each<[string, string | Buffer, object]>([
    ['a refusal', headOf('413 Too Large', ['Content-Length: 0']), { error: { code: 'tool_http_status' } }],
    ['a result', jsonAnswer(HELLO), { status: 'ok', content: 'hello' }],
  ])('may answer before: %s counts', async (_, bytes, end) => {
    await withDeaf(
      (socket) => void socket.write(bytes),
      async (url) => expect(await openToolLab(echoAt(url)).call({ input }).end).toMatchObject(end),
    )
  })

  it('and says nothing is a timeout, perhaps done', async () => {
    await withDeaf(
      () => undefined,
      async (url) => {
        const end = await openToolLab(echoAt(url), { headersMs: 600 }).call({ input }).end
        expect(end).toEqual({ type: 'stopped', reason: 'timeout' })
      },
    )
  })
})

describe('a proxy that answers strangely', () => {
  it.each<[string, string, string]>([
    ['another status than 200', headOf('302 Found', ['Location: https://canary.test/']), 'refuses it with HTTP 302'],
    ['100 Continue', headOf('100 Continue', []), 'refuses it with HTTP 100'],
    ['no HTTP', 'SSH-2.0-canary\r\n\r\n', 'opens no tunnel (HPE_INVALID_CONSTANT)'],
    [
      'a head without end',
      `HTTP/1.1 200 OK\r\n${`X: ${'y'.repeat(1000)}\r\n`.repeat(50)}`,
      'opens no tunnel (HPE_HEADER_OVERFLOW)',
    ],
    [
      'an answer in place of TLS',
      `${headOf('200 OK', [])}canary, and no TLS\r\n\r\n`,
      'its TLS is not accepted (ERR_SSL_',
    ],
  ])('leaves the call unsent, and its words and credentials out: %s', async (_, answer, reason) => {
    service.script = (socket) => socket.end(answer)
    const proxies = parseProxyRules({ https: `http://user:canary@127.0.0.1:${service.port}` })
    const tools = openToolLab(echoAt('https://tools.test/'), { proxies })
    const end = await tools.call().end
    expect(end).toMatchObject({ error: { code: 'tool_unreachable', message: expect.stringContaining(reason) } })
    expect(JSON.stringify([end, tools.logged])).not.toMatch(/canary|dXNlcjpj/)
  })
})
