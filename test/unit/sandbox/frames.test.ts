import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frame, FrameReader } from '../../../src/sandbox/wire/frames.ts'
import { packTexts, unpackTexts } from '../../../src/sandbox/wire/texts.ts'

type Seen = { type: number; body: string; last: boolean }

function collect(cap: number) {
  const seen: Seen[] = []
  const broken: string[] = []
  const reader = new FrameReader(cap, {
    onFrame: (type, body, last) => seen.push({ type, body: body.toString('hex'), last }),
    onBroken: (reason) => broken.push(reason),
  })
  return { reader, seen, broken }
}

const frames = fc.array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 300 })), {
  maxLength: 20,
})

describe('FrameReader', () => {
  it('`push()` gives every frame once, in order and whole, however the stream is cut', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sent, cuts) => {
        const stream = Buffer.concat(sent.map(([type, body]) => frame(type, body)))
        const { reader, seen, broken } = collect(1024)
        for (let at = 0, i = 0; at < stream.length; i++) {
          const size = cuts[i % cuts.length]!
          // A buffer that is overwritten afterwards, as the shared one of channels is.
          const chunk = Buffer.from(stream.subarray(at, at + size))
          reader.push(chunk)
          chunk.fill(0xee)
          at += size
        }
        expect(broken).toEqual([])
        expect(seen.map(({ type, body }) => [type, body])).toEqual(
          sent.map(([type, body]) => [type, Buffer.from(body).toString('hex')]),
        )
      }),
    )
  })

  it('`push()` tells whether bytes follow a frame, so that a second request before the answer is seen', () => {
    const { reader, seen } = collect(1024)
    const one = frame(1, 'a')
    reader.push(Buffer.concat([one, one.subarray(0, 3)]))
    reader.push(one.subarray(3))
    expect(seen.map(({ last }) => last)).toEqual([false, true])
  })

  it.each([
    ['too long', Buffer.from([1, 4, 0, 0, 9])],
    ['4 GiB', Buffer.from([255, 255, 255, 255, 9])],
    ['empty', Buffer.alloc(5)],
  ])('`push()` gives up for good when a frame is %s', (_name, bytes) => {
    const { reader, seen, broken } = collect(1024)
    reader.push(Buffer.concat([bytes, frame(1, 'after')]))
    reader.push(frame(1, 'after'))
    expect(seen).toEqual([])
    expect(broken).toHaveLength(1)
  })

  it('`push()` does nothing after `close()` in the middle of a chunk', () => {
    let count = 0
    const reader: FrameReader = new FrameReader(1024, {
      onFrame: () => {
        count++
        reader.close()
      },
      onBroken: () => {},
    })
    reader.push(Buffer.concat([frame(1), frame(1)]))
    expect(count).toBe(1)
  })
})

describe('packTexts()', () => {
  it('is undone by `unpackTexts()`, absent texts and lone surrogates included', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string({ unit: 'binary' }), { nil: undefined })), (texts) => {
        expect(unpackTexts(packTexts(texts))).toEqual(texts.map((text) => text?.toWellFormed()))
      }),
    )
  })

  it('`unpackTexts()` throws when a text is cut short, and never reads beyond it', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), fc.nat(), (texts, seed) => {
        const packed = packTexts(texts)
        const cut = packed.subarray(0, 1 + (seed % (packed.length - 1)))
        let read: unknown
        try {
          read = unpackTexts(cut)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
          return
        }
        // Cut exactly between two texts: a shorter list, the same texts.
        expect(read).toEqual(texts.slice(0, (read as string[]).length))
        expect((read as string[]).length).toBeLessThan(texts.length)
      }),
    )
  })
})
