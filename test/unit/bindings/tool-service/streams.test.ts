import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { streamEvents } from '../../../../src/bindings/tool-service/event-stream.ts'
import {
  echoAt,
  HELLO,
  headOf,
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
  lab = openToolLab(echoAt(`${service.origin}/tools/echo`, { max_output_bytes: 70_000 }))
})
afterAll(() => service[Symbol.asyncDispose]())

const PROGRESS = 'event: progress\ndata: {"status":"waiting"}\n\n'
const RESULT = `event: result\ndata: ${HELLO}\n\n`

/** One stream in the dialects that Server-Sent Events allow (cases D-12). */
const DIALECTS: readonly (readonly [string, string])[] = [
  ['LF', PROGRESS + RESULT],
  ['CRLF', (PROGRESS + RESULT).replaceAll('\n', '\r\n')],
  ['CR', (PROGRESS + RESULT).replaceAll('\n', '\r')],
  ['mixed ends', `event: progress\r\ndata: {"status":"waiting"}\r\r\nevent: result\rdata: ${HELLO}\n\r\n`],
  ['no space after the colon', (PROGRESS + RESULT).replaceAll(': ', ':').replaceAll('":"', '": "')],
  [
    'data in three lines',
    `${PROGRESS}event: result\ndata: {"content":[\ndata: {"type":"text","text":"hello"}\ndata: ]}\n\n`,
  ],
  ['data before its event', `data: {"status":"waiting"}\nevent: progress\n\ndata: ${HELLO}\nevent: result\n\n`],
  [
    'comments',
    `: hi\n\n:\nevent: progress\n:keepalive\ndata: {"status":"waiting"}\n\n:keepalive\n\nevent: result\n: x: y\ndata: ${HELLO}\n\n: bye\n`,
  ],
  [
    'ids, retries and unknown fields',
    `id: 7\nretry: 5\n\nfoo\nid\nevent: progress\nfoo: bar\ndata: {"status":"waiting"}\n\nid: 8\nevent: result\nretry: 1\ndata: ${HELLO}\n\n`,
  ],
  ['a byte order mark, and empty lines', `\ufeff\n\n${PROGRESS}\n\n\n${RESULT}\n\n`],
  ['an event that has no end after the result', `${PROGRESS}${RESULT}event: prog`],
]

async function* chunksOf(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  for (const [index, from] of [0, ...cuts].entries()) yield bytes.subarray(from, cuts[index])
}

describe('a stream of events', () => {
  it.each(DIALECTS)('is read in the dialect: %s, cut at any byte', async (_, text) => {
    const bytes = Buffer.from(text)
    const read = async (cuts: readonly number[]): Promise<unknown[]> => {
      const events = await Array.fromAsync(streamEvents(chunksOf(bytes, cuts), ['progress', 'result'], () => 1000))
      return events.map(({ name, data }) => [name, JSON.parse(data)])
    }
    const expected = [
      ['progress', { status: 'waiting' }],
      ['result', JSON.parse(HELLO)],
    ]
    for (let cut = 0; cut <= bytes.length; cut++) expect(await read([cut])).toEqual(expected)
    expect(await read(Array.from(bytes.keys()))).toEqual(expected)
  })

  it.each(DIALECTS)('gives progress and result over HTTP in the dialect: %s', async (_, text) => {
    const type = text.includes('\r') ? 'text/event-stream; charset=utf-8' : 'text/event-stream'
    service.script = (socket) => {
      socket.write(headOf('200 OK', [`Content-Type: ${type}`, 'Connection: close']))
      socket.end(text)
    }
    const { end, services } = lab.call()
    expect(await end).toEqual({ status: 'ok', value: JSON.parse(HELLO), content: 'hello' })
    expect(services.progressed).toEqual([{ status: 'waiting' }])
  })

  it.each([
    [
      'an event named otherwise',
      `${PROGRESS}event: done\ndata: {}\n\n`,
      'event 2 of its stream is neither progress nor result',
    ],
    ['an event without a name', `data: {}\n\n`, 'event 1 of its stream has no name'],
    ['an event with an empty name', `event:\ndata: {}\n\n`, 'event 1 of its stream has no name'],
    ['progress that is no JSON', `event: progress\ndata: waiting\n\n${RESULT}`, 'an event of progress is no JSON'],
    ['progress with an empty data field', `event: progress\ndata:\n\n${RESULT}`, 'an event of progress is no JSON'],
    ['a result without data', `event: result\n\n`, 'its result is no JSON'],
    ['a second result', RESULT + RESULT, 'its stream goes on after the result'],
    ['progress after the result', RESULT + PROGRESS, 'its stream goes on after the result'],
    ['no result', PROGRESS, 'its stream ended without a result'],
    ['a result without its end', RESULT.slice(0, -1), 'its stream ended without a result'],
    ['a result that is cut', RESULT.slice(0, -10), 'its stream ended without a result'],
    ['nothing', '', 'its stream ended without a result'],
    [
      'too large progress',
      `event: progress\ndata: "${'x'.repeat(65_535)}"\n\n${RESULT}`,
      'event "progress" of its stream has more than 65536 bytes',
    ],
    ['a too large result', `event: result\ndata: "${'x'.repeat(70_000)}"\n\n`, 'more than 70000 bytes'],
    [
      'a too large result in many lines',
      `event: result\n${'data: xxxxxxxxx\n'.repeat(7001)}\n`,
      'more than 70000 bytes',
    ],
    ['a line that does not end', `event: result\nfoo: ${'x'.repeat(80_000)}`, 'a line of more than 70000 bytes'],
  ])('fails, perhaps done, with %s', async (_, text, reason) => {
    service.script = (socket) => socket.end(STREAM_HEAD + text)
    expect(await lab.call().end).toEqual({
      type: 'unknown',
      message: expect.stringMatching(new RegExp(`^Cannot use the answer of tool "echo": .*${reason}`)) as string,
    })
  })

  it('may hold comments without end, and progress of exactly 64 KiB', async () => {
    const progress = `event: progress\ndata: "${'x'.repeat(65_534)}"\n\n`
    service.script = (socket) => socket.end(STREAM_HEAD + ':keepalive\n'.repeat(20_000) + progress + RESULT)
    const { end, services } = lab.call()
    expect(await end).toMatchObject({ status: 'ok' })
    expect(services.progressed).toEqual(['x'.repeat(65_534)])
  })

  it('that stays open after its result is closed after a second, and its call ends well', async () => {
    service.script = (socket) => socket.write(STREAM_HEAD + RESULT)
    const started = performance.now()
    expect(await lab.call().end).toMatchObject({ status: 'ok' })
    expect(performance.now() - started).toBeGreaterThan(950)
    await service.closed()
  })

  it('that breaks after its result ends well', async () => {
    service.script = (socket) => {
      socket.write(headOf('200 OK', ['Content-Type: text/event-stream', 'Transfer-Encoding: chunked']))
      // No last chunk: to HTTP this is an answer that was cut off.
      socket.end(`${RESULT.length.toString(16)}\r\n${RESULT}\r\n`)
    }
    expect(await lab.call().end).toMatchObject({ status: 'ok', content: 'hello' })
  })
})

describe('text of an answer (cases D-13)', () => {
  const TEXT = '你好😀'
  const body = Buffer.from(JSON.stringify({ content: [{ type: 'text', text: TEXT }] }))
  const stream = Buffer.concat([Buffer.from('event: result\ndata: '), body, Buffer.from('\n\n')])
  const start = body.indexOf('你')

  it.each([
    ['JSON', body, headOf('200 OK', ['Content-Type: application/json', `Content-Length: ${body.length}`]), start],
    ['a stream', stream, STREAM_HEAD, start + 20],
  ])('is exact wherever it is cut: %s', async (_, bytes, head, from) => {
    for (let cut = from; cut <= from + Buffer.byteLength(TEXT); cut++) {
      service.script = (socket) => {
        socket.write(head)
        socket.write(
          bytes.subarray(0, cut),
          () =>
            void turn().then(() =>
              head === STREAM_HEAD ? socket.end(bytes.subarray(cut)) : socket.write(bytes.subarray(cut)),
            ),
        )
      }
      expect(await lab.call().end).toMatchObject({ status: 'ok', content: TEXT })
    }
  })

  it('that is no UTF-8 fails, in JSON and in a stream alike', async () => {
    const bad = Buffer.from(HELLO)
    bad[bad.indexOf('hello')] = 0xff
    service.script = (socket) => socket.write(jsonAnswer(bad))
    expect(await lab.call().end).toMatchObject({ type: 'unknown', message: expect.stringContaining('not valid UTF-8') })
    service.script = (socket) =>
      socket.end(Buffer.concat([Buffer.from(`${STREAM_HEAD}event: result\ndata: `), bad, Buffer.from('\n\n')]))
    expect(await lab.call().end).toMatchObject({ type: 'unknown', message: expect.stringContaining('not valid UTF-8') })
    // Also at the very end, where half a character is left.
    service.script = (socket) => socket.end(Buffer.concat([Buffer.from(STREAM_HEAD + RESULT), Buffer.from([0xe4])]))
    expect(await lab.call().end).toMatchObject({ type: 'unknown', message: expect.stringContaining('not valid UTF-8') })
  })
})
