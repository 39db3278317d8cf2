import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sendEventStream, type StreamEvent } from '../../../src/http/event-stream.ts'

/** A reader's socket and the writer's end of it, over a real connection. */
async function connection(): Promise<{
  readonly reader: Socket
  readonly reply: FastifyReply
  readonly response: ServerResponse
}> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1')
  reader.on('error', () => undefined)
  reader.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  onTestFinished(() => {
    reader.destroy()
    server.close()
  })
  const reply = { raw: response, getHeaders: () => ({}), hijack: () => undefined } as unknown as FastifyReply
  return { reader, reply, response }
}

const never = new AbortController().signal
const times = { keepAliveMs: 60_000, stalledMs: 60_000, laggedMs: 60_000 }

async function* endless(): AsyncGenerator<StreamEvent> {
  for (let id = 1; ; id++) yield { id, event: 'big', data: 'x'.repeat(100_000) }
}

describe('sendEventStream()', () => {
  it('frames records with ids and live events without, and tells those between that it lives', async () => {
    const { reader, reply } = await connection()
    let text = ''
    reader.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    async function* events(): AsyncGenerator<StreamEvent> {
      yield { id: 3, event: 'turn_started', data: { text: 'a\nb\u2028' } }
      yield { event: 'assistant_delta', data: 1 }
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
    await sendEventStream(reply, events(), never, { ...times, keepAliveMs: 10 })
    await expect.poll(() => text).toContain('\r\n0\r\n')
    expect(text).toContain('id: 3\nevent: turn_started\ndata: {"text":"a\\nb\u2028"}\n\n')
    expect(text).toContain('\nevent: assistant_delta\ndata: 1\n\n')
    expect(text).not.toContain('id: 1')
    expect(text).toContain(': keep-alive\n\n')
  })

  it('waits for a reader that pauses', async () => {
    const { reader, reply, response } = await connection()
    const sending = sendEventStream(reply, endless(), never, times)
    await expect.poll(() => response.writableNeedDrain).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(response.writableLength).toBeLessThan(500_000)
    reader.resume()
    await expect.poll(() => reader.bytesRead).toBeGreaterThan(20_000_000)
    reader.destroy()
    await sending
  })

  it('cuts off a reader that takes nothing, without holding more for it', async () => {
    const { reply, response } = await connection()
    await sendEventStream(reply, endless(), never, { ...times, keepAliveMs: 1, stalledMs: 50 })
    expect(response.destroyed).toBe(true)
  })

  it('does not wait long for one that lags, whether it lagged before or while it was waited for', async () => {
    for (const isLate of [false, true]) {
      const { reply, response } = await connection()
      const lag = new AbortController()
      if (!isLate) lag.abort()
      const sending = sendEventStream(reply, endless(), lag.signal, { ...times, laggedMs: 50 })
      await expect.poll(() => response.writableNeedDrain || response.destroyed).toBe(true)
      lag.abort()
      await sending
      expect(response.destroyed).toBe(true)
    }
  })
})
