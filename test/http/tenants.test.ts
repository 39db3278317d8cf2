import { readFileSync } from 'node:fs'
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
      // It begins as those do that read one session while a tool is called.
      TOKEN_A_NEW: 'bin_new-token-of-a',
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

/** Every route that names something by its id, as docs/api.md lists them, which a test compares with the source. */
function routesWithIds(): readonly string[] {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  const routes = [...page.matchAll(/^\| `((?:GET|POST|PUT|DELETE) \/[^`]*:[^`]*)` \|/gm)].map(([, route = '']) => route)
  if (routes.length < 25) throw new Error(`docs/api.md lists ${routes.length} routes with ids`)
  return routes
}

/** What a route takes, so that nothing else than whose it is can be wrong with a request. */
function bodyFor(template: string): unknown {
  if (template.endsWith('/messages')) return { input: { message: 'hi' } }
  if (template.endsWith('/tools/:name/calls')) return { input: { text: 'one two' } }
  if (template.endsWith('/calls/:method')) return { input: 1 }
  if (template.endsWith('/environments')) return { operation: 'list' }
  if (template.startsWith('/mcp/')) return { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  return {}
}

/** Does something as one tenant. */
async function acting<Result>(token: string, work: () => Promise<Result>): Promise<Result> {
  server.token = token
  return work()
}

describe('tenants', () => {
  let session: TestSession
  let component: string
  let agentloop: string
  let called: number
  let host: HostClient
  beforeAll(async () => {
    await acting('token-of-a', async () => {
      session = await server.sessionWith('wordcount')
      component = await server.admit(await fixture('wordcount'))
      host = await HostClient.register(server)
      await session.put('kept.txt', 'of a')
      agentloop = await server.admit(await fixture('agentloop'), 'agentloops')
      called = (await session.call({ text: 'one two' }, { wait: 'finished', key: 'key-of-a' })).sequence
    })
  })

  it('are who their tokens say; one that is replaced goes on meanwhile', async () => {
    for (const token of ['token-of-a', 'bin_new-token-of-a'])
      for (const path of [session.path, `${session.path}/events`, `${session.path}/tool-events`])
        expect((await server.get(path, as(token))).status).toBe(200)
    for (const token of ['', 'token-of-', 'token-of-bb', 'service-token'])
      expect((await server.get('/v1/sessions', as(token))).status).toBe(401)
  })

  it('see nothing of each other: whatever one has made is not there for the other', async () => {
    const pathOf = (template: string): string =>
      template
        .replace(/(?<=\/sessions\/|\/mcp\/):id/, session.id)
        .replace(/(?<=\/hosts\/):id/, host.id)
        .replace(/(?<=\/tools\/):id/, component)
        .replace(/(?<=\/agentloops\/):id/, agentloop)
        .replace(/:env|(?<=environments\/):name/, 'box')
        .replace(/(?<=tools\/):name/, 'tool')
        .replace(':method', 'm')
        .replace(':sequence', String(called))
        .replace('*', 'kept.txt')
    await acting('token-of-b', async () => {
      for (const route of routesWithIds()) {
        const [method = '', template = ''] = route.split(' ')
        const path = pathOf(template)
        // What another kind of token opens, a tenant's does not open at all.
        const isOfOtherToken = template.includes('/hosts/')
        const content = method === 'PUT' ? { bytes: Buffer.from('x') } : { json: bodyFor(template) }
        const body = method === 'GET' ? {} : content
        for (const accept of ['application/json', 'application/json, text/event-stream']) {
          const { status } = await server.request(method, path, { ...body, key: 'key-of-a', headers: { accept } })
          expect([route, status]).toEqual([route, isOfOtherToken ? 401 : 404])
        }
      }
      const prepared = await server.post('/v1/brain-env/prepare', { tools: [component] })
      expect([prepared.status, prepared.body.message]).toEqual([404, expect.stringContaining(component)])
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
    // All of it is there for its own tenant, as it was.
    await acting('token-of-a', async () => {
      for (const route of routesWithIds().filter((each) => each.startsWith('GET ') && !each.includes('/hosts/'))) {
        const { status } = await server.get(pathOf(route.slice('GET '.length)))
        expect([route, status]).toEqual([route, route.includes('/mcp/') ? 405 : 200])
      }
      expect(await session.file('kept.txt')).toMatchObject({ status: 200, text: 'of a' })
    })
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
