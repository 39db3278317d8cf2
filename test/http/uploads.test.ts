import { randomUUID } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixture, rssOf, startServer, type TestServer } from '../support/server.ts'

const LIMIT = 8 * 1024 * 1024
let server: TestServer
beforeAll(async () => {
  server = await startServer({ BRAIN_MAX_PACKAGE_BYTES: String(LIMIT) })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A good component made longer by a custom section; the section's size takes a LEB128 number of five bytes. */
async function componentOf(size: number): Promise<Buffer> {
  const component = await fixture('wordcount')
  const name = Buffer.from([3, 0x70, 0x61, 0x64])
  const padding = size - component.length - 1 - 5
  const leb = Buffer.from(
    [0, 7, 14, 21, 28].map((shift, index) => ((padding >>> shift) & 0x7f) | (index < 4 ? 0x80 : 0)),
  )
  return Buffer.concat([component, Buffer.from([0]), leb, name, Buffer.alloc(padding - name.length)])
}

const upload = (bytes: Uint8Array | ReadableStream, type = 'application/wasm') =>
  server.request('POST', '/v1/tools', { bytes, type })

/** Everything below the data directory that an upload may leave behind. */
async function stored(): Promise<string[]> {
  const root = join(server.directory, 'data')
  const all = await readdir(root, { recursive: true })
  return all.filter((path) => path.startsWith('components') || path.startsWith('artifacts')).toSorted()
}

describe('POST /v1/tools', () => {
  it('takes exactly the limit, in all its types', async () => {
    const bytes = await componentOf(LIMIT)
    for (const type of ['application/wasm', 'application/octet-stream']) {
      const { status, body } = await upload(bytes, type)
      expect([status, body.status, body.bytes]).toEqual([200, 'admitted', LIMIT])
    }
  })

  it('refuses one byte more: announced, before it is sent; unannounced, as soon as it is crossed', async () => {
    const before = await stored()
    const memory = await rssOf(server.pid)
    const announced = await upload(await componentOf(LIMIT + 1))
    expect([announced.status, announced.body.code]).toEqual([413, 'invalid_request'])
    const chunk = Buffer.alloc(256 * 1024)
    const endless = new ReadableStream({
      async pull(controller) {
        controller.enqueue(chunk)
        await new Promise((resolve) => setTimeout(resolve, 1))
      },
    })
    expect((await upload(endless)).status).toBe(413)
    expect((await rssOf(server.pid)) - memory).toBeLessThan(2 * LIMIT)
    expect(await stored()).toEqual(before)
  })

  it('refuses other types with 415 and a body that is shorter than announced with nothing stored', async () => {
    const before = await stored()
    expect((await upload(await fixture('wordcount'), 'text/plain')).status).toBe(415)
    const { port } = new URL(server.url)
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    socket.write(
      `POST /v1/tools HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: short\r\nContent-Type: application/wasm\r\nContent-Length: 100000\r\n\r\n`,
    )
    socket.write(Buffer.alloc(50_000))
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    await expect.poll(stored).toEqual(before)
  })

  it('tells bad uploads apart and keeps nothing of them; the good one after them works (D-05)', async () => {
    const good = await fixture('wordcount')
    const longer = Buffer.from(good)
    longer[9] = (longer[9] ?? 0) + 1
    const before = await stored()
    const faults: [Uint8Array, RegExp][] = [
      [Buffer.alloc(0), /empty/],
      [Buffer.from('hello'), /WebAssembly|wasm/i],
      [Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), /core module/],
      [good.subarray(0, good.length >> 1), /malformed|cut|end/i],
      [longer, /./],
    ]
    const messages = new Set<string>()
    for (const [bytes, pattern] of faults) {
      const { status, body } = await upload(bytes)
      expect([status, body.code]).toEqual([400, 'invalid_request'])
      expect(body.message).toMatch(pattern)
      expect(body.message).not.toContain(server.directory)
      messages.add(body.message as string)
    }
    expect(messages.size).toBe(faults.length)
    expect(await stored()).toEqual(before)
    expect((await upload(good)).status).toBe(200)
  })

  it('answers the same key again, refuses it for other bytes, and releases it after a refusal', async () => {
    const key = randomUUID()
    const post = async (bytes: Uint8Array) =>
      server.request('POST', '/v1/tools', { bytes, type: 'application/wasm', key })
    expect((await post(Buffer.from('hello'))).status).toBe(400)
    const first = await post(await fixture('wordcount'))
    expect(first.status).toBe(200)
    expect((await post(await fixture('wordcount'))).text).toBe(first.text)
    expect((await post(await fixture('inspect'))).status).toBe(409)
  })
})

describe('POST /v1/brain-env/prepare', () => {
  const prepare = (json: object) =>
    server.request('POST', '/v1/brain-env/prepare', { json, headers: { 'idempotency-key': '' } })

  it('loads what is admitted, and says which is not there or cannot be loaded', async () => {
    const id = await server.admit(await fixture('wordcount'))
    const loop = await server.admit(await fixture('agentloop'), 'agentloops')
    const statuses = await Promise.all(
      [
        {},
        { tools: [id, id], agentloops: [loop], programs: [] },
        { tools: [loop] },
        { tools: ['0'.repeat(64)] },
        { tools: ['x'] },
        { tools: id },
        { programs: [id] },
      ].map(async (body) => (await prepare(body)).status),
    )
    expect(statuses).toEqual([204, 204, 404, 404, 400, 422, 400])
    await server.kill()
    for (const path of await stored())
      if (path.includes(id) && /\.(wasm|js|mjs)$/.test(path))
        await writeFile(join(server.directory, 'data', path), 'damaged')
    await server.start()
    const failed = await prepare({ tools: [id] })
    expect([failed.status, failed.body]).toEqual([
      409,
      {
        code: 'preparation_failed',
        message: expect.stringContaining('upload it again'),
        retryable: false,
        details: { id, code: 'environment_not_ready' },
      },
    ])
    await server.admit(await fixture('wordcount'))
    expect((await prepare({ tools: [id] })).status).toBe(204)
  })
})
