import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventFrames, type EventFrame } from '../../../src/sdk/client/event-frames.ts'

async function read(chunks: readonly Uint8Array[]): Promise<EventFrame[]> {
  const frames: EventFrame[] = []
  for await (const frame of eventFrames(ReadableStream.from(chunks))) frames.push(frame)
  return frames
}

/** Cuts bytes at the given places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return sorted.slice(1).map((end, index) => bytes.slice(sorted[index], end))
}

describe('event frames', () => {
  it.each(['\n', '\r\n', '\r'])('are the same wherever their bytes are cut, with lines ended by %j', async (end) => {
    const lines = [': connected', '', 'id: 7', 'event: tool.call', 'data: {"a":"ü😀"}', '', 'data', 'data:  two', '']
    const text = [...lines, ': keep-alive', '', 'event: none', '', 'data: last', '', '', ''].join(end)
    const bytes = new TextEncoder().encode(text)
    const expected = [
      { id: '7', event: 'tool.call', data: '{"a":"ü😀"}' },
      { id: undefined, event: 'message', data: '\n two' },
      { id: undefined, event: 'message', data: 'last' },
    ]
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (places) => {
        expect(await read(cut(bytes, places))).toEqual(expected)
      }),
    )
    expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected)
  })

  it('without their end are not events', async () => {
    expect(await read([new TextEncoder().encode('data: a\n\ndata: b\n')])).toHaveLength(1)
  })

  it('cancel the body when nobody reads on', async () => {
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: a\n\n')),
      cancel: () => void (isCancelled = true),
    })
    for await (const _ of eventFrames(body)) break
    expect(isCancelled).toBe(true)
  })
})
