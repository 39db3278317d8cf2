import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Brain } from '../../src/sdk/index.ts'
import { HostClient } from '../support/host-client.ts'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  const binding = { description: 'd', input_schema: { type: 'object' }, url: 'http://127.0.0.1:9/secret-place' }
  server = await startServer(
    {
      TOKEN_A: 'token-of-a',
      TOKEN_A_NEW: 'new-token-of-a',
      TOKEN_B: 'token-of-b',
      SERVICE_TOKEN: 'service-token',
      KEY: 'v',
    },
    {
      tenants: [
        {
          id: 'a',
          token_env: ['TOKEN_A', 'TOKEN_A_NEW'],
          allow: { secrets: ['KEY'], filesystem: ['workspace', 'scratch'] },
        },
        { id: 'b', token_env: 'TOKEN_B' },
      ],
      tools: [
        { ...binding, name: 'for_all', output_schema: { type: 'object' }, token_env: 'SERVICE_TOKEN' },
        { ...binding, name: 'for_a', tenants: ['a'] },
      ],
    },
  )
})
afterAll(() => server[Symbol.asyncDispose]())

const as = (token: string) => ({ authorization: `Bearer ${token}` })

/** Does something as one tenant. */
async function acting<Result>(token: string, work: () => Promise<Result>): Promise<Result> {
  server.token = token
  return work()
}

describe('tenants', () => {
  let session: TestSession
  let component: string
  let host: HostClient
  beforeAll(async () => {
    await acting('token-of-a', async () => {
      session = await server.sessionWith('wordcount')
      component = await server.admit(await fixture('wordcount'))
      host = await HostClient.register(server)
      await session.put('kept.txt', 'of a')
      await session.call({ text: 'one two' }, { wait: 'finished' })
    })
  })

  it('are who their tokens say; one that is replaced goes on meanwhile', async () => {
    for (const token of ['token-of-a', 'new-token-of-a'])
      expect((await server.get(session.path, as(token))).status).toBe(200)
    for (const token of ['', 'token-of-', 'token-of-bb', 'service-token'])
      expect((await server.get('/v1/sessions', as(token))).status).toBe(401)
  })

  it('see nothing of each other: whatever one has made is not there for the other', async () => {
    const { path } = session
    const calls: [string, string, unknown?][] = [
      ['GET', path],
      ['GET', `${path}/transcript`],
      ['GET', `${path}/events`],
      ['GET', `${path}/tool-events`],
      ['POST', `${path}/messages`, { input: { message: 'hi' } }],
      ['POST', `${path}/cancel`],
      ['POST', `${path}/end`],
      ['DELETE', path],
      ['POST', `${path}/tools/tool/calls`, { input: { text: 'a' } }],
      ['GET', `${path}/calls/4/log`],
      ['GET', `${path}/environments/box/files`],
      ['GET', `${path}/environments/box/files/kept.txt`],
      ['PUT', `${path}/environments/box/files/new.txt`],
      ['DELETE', `${path}/environments/box/files/kept.txt`],
      ['POST', `${path}/environments`, { operation: 'list' }],
      ['POST', `/mcp/${session.id}`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
      ['POST', `${path}/environments/box/calls/m`, { input: 1 }],
      ['GET', `/v1/tools/${component}`],
      ['DELETE', `/v1/tools/${component}`],
    ]
    await acting('token-of-b', async () => {
      for (const [method, route, json] of calls) {
        const bytes = method === 'PUT' ? { bytes: Buffer.from('x') } : {}
        const { status } = await server.request(method, route, { ...bytes, ...(json === undefined ? {} : { json }) })
        expect([method, route, status]).toEqual([method, route, 404])
      }
      expect((await server.get('/v1/sessions')).body.sessions).toEqual([])
      expect((await server.get('/v1/tools')).body.tools).toEqual([])
      const created = await host.create()
      expect([created.status, created.body.message]).toEqual([400, expect.stringContaining('not registered')])
      const placed = await server.post('/v1/sessions', {
        model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] },
        tools: [
          {
            name: 't',
            placements: {
              box: { implementation: { type: 'brain_component', entrypoint: 'run', id: component, configuration: {} } },
            },
          },
        ],
        environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic' }],
      })
      expect([placed.status, placed.body.message]).toEqual([400, expect.stringContaining('no tool')])
    })
    expect(await acting('token-of-a', () => session.file('kept.txt'))).toMatchObject({ status: 200, text: 'of a' })
  })

  it('have idempotency keys of their own', async () => {
    const body = { model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] } }
    const ids = []
    for (const token of ['token-of-a', 'token-of-b', 'token-of-a'])
      ids.push((await server.post('/v1/sessions', body, { key: 'the-same', headers: as(token) })).body.session_id)
    expect(ids[0]).toBe(ids[2])
    expect(ids[0]).not.toBe(ids[1])
  })

  it('are granted what their own list allows', async () => {
    const ask = (configuration: object, token: string) =>
      server.post(
        '/v1/sessions',
        {
          model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] },
          environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic', configuration }],
        },
        { headers: as(token) },
      )
    for (const configuration of [{ secrets: ['KEY'] }, { filesystem: { workspace: 'read' } }]) {
      expect((await ask(configuration, 'token-of-a')).status).toBe(200)
      expect((await ask(configuration, 'token-of-b')).status).toBe(400)
    }
    const elsewhere = { name: 'e', driver: 'http', url: 'http://127.0.0.1:9', lifecycle: 'manual' }
    const refused = await server.post(
      '/v1/sessions',
      {
        model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] },
        environments: [elsewhere],
      },
      { headers: as('token-of-a') },
    )
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('URL_ALLOW')])
  })
})

describe('the catalog', () => {
  it('lists what a tenant may enable, and never where it is or how it is opened', async () => {
    for (const path of ['/catalog', '/v1/catalog']) {
      const { body, text } = await server.get(path, as('token-of-a'))
      expect(body.tools).toEqual([
        { name: 'for_all', description: 'd', input_schema: { type: 'object' }, output_schema: { type: 'object' } },
        { name: 'for_a', description: 'd', input_schema: { type: 'object' } },
      ])
      expect(text).not.toMatch(/secret-place|SERVICE_TOKEN|service-token/)
    }
    const { body } = await server.get('/catalog', as('token-of-b'))
    expect(body.tools.map(({ name }: { name: string }) => name)).toEqual(['for_all'])
    expect((await server.get('/catalog', as('x'))).status).toBe(401)
  })

  it('is read by the client, whose sessions have what they name of it', async () => {
    const brain = new Brain({ baseUrl: server.url, token: 'token-of-b' })
    try {
      const catalog = await brain.catalog()
      expect(catalog.map(({ name }) => name)).toEqual(['for_all'])
      const model = { provider: 'scripted', name: 'script', apiKey: 'k', script: [{ text: 'done' }] }
      const config = { tools: catalog.map(({ name }) => name) }
      const session = await brain.sessions.create({ model, config })
      const [first] = await Array.fromAsync(session.events())
      expect(first?.data).toMatchObject({ config })
      await expect(brain.sessions.create({ model, config: { tool: [] } as never })).rejects.toThrow(TypeError)
    } finally {
      await brain.close()
    }
  })

  it('is what sessions enable tools of, by name', async () => {
    const create = (request: object, token = 'token-of-a') =>
      server.post(
        '/v1/sessions',
        { model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] }, ...request },
        { headers: as(token) },
      )
    const { body } = await create({ config: { tools: ['for_a', 'for_all'] } })
    const events = (await server.get(`/v1/sessions/${body.session_id}/events`, as('token-of-a'))).body.events
    expect(events[0].data).toMatchObject({ config: { tools: ['for_a', 'for_all'] }, tools: [], environments: [] })
    expect(JSON.stringify(events)).not.toMatch(/secret-place|SERVICE_TOKEN|service-token/)
    expect((await create({ config: { tools: [] } })).status).toBe(200)
    const offered = await server.post(
      `/mcp/${body.session_id}`,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { headers: { ...as('token-of-a'), accept: 'application/json, text/event-stream' } },
    )
    expect([...offered.text.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name)).toEqual(['for_a', 'for_all'])
    const reasonOf = async (request: object, token?: string): Promise<string> => {
      const refused = await create(request, token)
      expect(refused.status).toBe(400)
      return refused.body.message as string
    }
    expect(await reasonOf({ config: { tools: ['none'] } })).toContain('"none"')
    expect(await reasonOf({ config: { tools: ['for_a'] } }, 'token-of-b')).toContain('"for_a"')
    expect(await reasonOf({ config: { tools: ['for_a', 'for_a'] } })).toContain('twice')
    const environments = [{ name: 'brain-http', driver: 'brain', lifecycle: 'automatic' }]
    expect(await reasonOf({ environments })).toContain('brain-http')
    const host = await acting('token-of-a', () => HostClient.register(server))
    const stream = await host.connect()
    const collision = await host.create([{ name: 'for_a' }], { config: { tools: ['for_a'] } })
    expect([collision.status, collision.body.message]).toEqual([400, expect.stringContaining('declared tool too')])
    stream.close()
  })
})
