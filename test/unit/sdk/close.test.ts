import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, component, tool } from '../../../src/sdk/index.ts'

const probe = tool({ name: 'probe', description: 'Does nothing.', input: z.object({}), run: () => {} })
const model = { provider: 'scripted', name: 'script', apiKey: 'none' }

describe('close() (contract 10.1 G)', () => {
  /** A server that begins to answer and never ends: of each kind of request the first bytes, or nothing at all. */
  const server = createServer((request, response) => {
    request.resume()
    asked.push(`${request.method} ${request.url}`)
    if (request.method === 'GET') response.writeHead(200, { 'content-type': contentType(request.url) })
    if (request.method === 'GET') response.write(request.url?.includes('/events') === true ? 'data: {}\n\n' : '{')
    waiting.resolve(response)
  })
  const contentType = (url = ''): string => (url.includes('/events') ? 'text/event-stream' : 'application/json')
  let asked: string[] = []
  let waiting = Promise.withResolvers<ServerResponse>()
  let baseUrl = ''

  beforeAll(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    asked = []
    waiting = Promise.withResolvers()
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  it.each<[string, (brain: Brain) => Promise<unknown>]>([
    ['the registration of its host', (brain) => brain.credentials()],
    ['a session that waits for it', (brain) => brain.sessions.create({ model, tools: [probe()] })],
    ['the reading of an answer', (brain) => brain.models()],
    ['the download of a component', (brain) => brain.admitTool(component(new URL(`${baseUrl}/tool.wasm`)))],
    ['the upload of a component', (brain) => brain.admitTool(component(new Uint8Array(8)))],
    ['a request of any kind', (brain) => brain.request('POST', '/v1/anything', {})],
  ])('ends %s, and asks for nothing else', async (_what, work) => {
    const brain = new Brain({ baseUrl })
    const working = work(brain)
    const response = await waiting.promise
    const gone = once(response, 'close')
    await brain.close()
    await expect(working).rejects.toMatchObject({ name: 'AbortError' })
    await gone
    expect(asked).toHaveLength(1)
  })

  it('lets go of a stream that nobody reads just now', async () => {
    const brain = new Brain({ baseUrl })
    const stream = brain.stream('ses_1')
    expect(await stream.next()).toMatchObject({ value: { data: {} } })
    const gone = once(await waiting.promise, 'close')
    await brain.close()
    await gone
    await expect(stream.next()).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('is of one client: another one with another token goes on', async () => {
    const brain = new Brain({ baseUrl, token: 'one' })
    const other = brain.withToken('two')
    await brain.close()
    await expect(brain.models()).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked).toEqual([])
    const going = other.models()
    await waiting.promise
    await other.close()
    await expect(going).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked).toEqual(['GET /v1/models'])
  })
})
