import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { serverSentEvents, StreamFault } from '../../../src/model/remote/wire/server-sent-events.ts'

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const read = (
  bytes: Buffer,
  size = bytes.length,
  maxBytes = 0,
  repeats = { request: 0, earlier: 0 },
): Promise<string[]> =>
  Array.fromAsync(
    serverSentEvents(chunksOf(bytes, Math.max(1, size)), {
      maxBytes,
      requestBytes: repeats.request,
      maxRepeatedBytes: repeats.earlier,
    }),
  )

describe('serverSentEvents()', () => {
  it.each([
    ['LF', 'data: {"a":1}\n\ndata: two\n\n'],
    ['CRLF', 'data: {"a":1}\r\n\r\ndata: two\r\n\r\n'],
    ['CR', 'data: {"a":1}\r\rdata: two\r\r'],
    ['mixed ends', 'data: {"a":1}\r\n\ndata: two\r\r\n'],
    ['no space', 'data:{"a":1}\n\ndata:two\n\n'],
    [
      'comments, names, ids',
      ': hi\nevent: x\nid: 7\nretry: 5\ndata: {"a":1}\n:keepalive\n\n:\n\nfoo: bar\ndata: two\n\n',
    ],
    ['a byte order mark', '\ufeffdata: {"a":1}\n\ndata: two\n\n'],
    ['no blank line at the end', 'data: {"a":1}\n\ndata: two'],
  ])('reads %s, wherever chunks end (cases D-12)', async (_, text) => {
    const bytes = Buffer.from(text)
    for (let size = 1; size <= bytes.length; size++) expect(await read(bytes, size)).toEqual(['{"a":1}', 'two'])
  })

  it('joins several data lines, and passes over events without data', async () => {
    expect(await read(Buffer.from('data: {\ndata: "a":1}\n\nevent: ping\n\ndata:\n\n'))).toEqual(['{\n"a":1}', ''])
  })

  it('decodes characters that chunks cut (cases D-13), and any text in any cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/[\r\n]/.test(text))),
        fc.integer({ min: 1, max: 9 }),
        async (texts, size) => {
          const bytes = Buffer.from(texts.map((text) => `data: ${text}\n\n`).join(''))
          expect(await read(bytes, size)).toEqual(texts)
        },
      ),
      { numRuns: 100 },
    )
  })

  it('refuses bytes that are no UTF-8, also at the end', async () => {
    for (const tail of [[0xff], [0xe4, 0xbd]]) {
      const bytes = Buffer.concat([Buffer.from('data: ok\n\ndata: a'), Buffer.from(tail)])
      await expect(read(bytes)).rejects.toThrow(new StreamFault('not_utf8'))
    }
  })

  it('ends an event that is larger than the bound, whatever the chunks', async () => {
    const event = (size: number): Buffer => Buffer.from(`data: ${'x'.repeat(size - 6)}\n\n`)
    for (const size of [1, 7, 1000]) {
      expect(await read(Buffer.concat([event(100), event(100)]), size, 100)).toHaveLength(2)
      await expect(read(event(101), size, 100)).rejects.toThrow(new StreamFault('frame_too_large'))
    }
  })

  it('lets an event repeat what was asked and what came before, and no more', async () => {
    const events = (...sizes: number[]): Buffer =>
      Buffer.from(sizes.map((size) => `data: ${'x'.repeat(size - 6)}\n\n`).join(''))
    expect(await read(events(90, 90, 150), 50, 100, { request: 0, earlier: 50 })).toHaveLength(3)
    await expect(read(events(90, 90, 151), 50, 100, { request: 0, earlier: 50 })).rejects.toThrow('frame_too_large')
    expect(await read(events(130), 50, 100, { request: 30, earlier: 50 })).toHaveLength(1)
    await expect(read(events(131), 50, 100, { request: 30, earlier: 50 })).rejects.toThrow('frame_too_large')
  })

  it('takes time in proportion to a line that comes byte by byte', async () => {
    const bytes = Buffer.from(`data: ${'x'.repeat(200_000)}\n\n`)
    const began = performance.now()
    expect(await read(bytes, 1)).toHaveLength(1)
    expect(performance.now() - began).toBeLessThan(5000)
  })
})
