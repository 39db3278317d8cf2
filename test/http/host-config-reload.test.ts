import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HostClient } from '../support/host-client.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'
import { HELLO, jsonAnswer, RawService, STREAM_HEAD } from '../support/tool-service-lab.ts'

const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

let before: RawService
let after: RawService
let server: TestServer

const bindingAt = ({ origin }: RawService, more: object = {}): object => ({
  name: 'echo',
  description: 'Says hello.',
  input_schema: { type: 'object' },
  url: `${origin}/`,
  token_env: 'SERVICE_KEY',
  ...more,
})

beforeAll(async () => {
  ;[before, after] = await Promise.all([RawService.open(answerHello), RawService.open(answerHello)])
  const env = { A_OLD: 'old-of-a', A_NEW: 'new-of-a', B: 'of-b', SERVICE_KEY: 'key-1', SERVICE_KEY_NEW: 'key-2' }
  server = await startServer(
    { ...env, BRAIN_ENV_SECRET_ALLOW: 'HOME' },
    {
      tenants: [
        { id: 'a', token_env: ['A_OLD', 'A_NEW'] },
        { id: 'b', token_env: 'B' },
      ],
      tools: [bindingAt(before), bindingAt(before, { name: 'other' })],
    },
  )
  server.token = 'new-of-a'
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await before[Symbol.asyncDispose]()
  await after[Symbol.asyncDispose]()
})

const answerHello: RawService['script'] = (socket) => void socket.write(jsonAnswer(HELLO))

/** Writes a host config, tells the server, and waits for what it says of it. @returns the line of its log */
async function reread(config: object | string): Promise<string> {
  const text = typeof config === 'string' ? config : JSON.stringify(config, null, 1)
  await writeFile(join(server.directory, 'brain.json'), text)
  const from = server.log.length
  process.kill(server.pid, 'SIGHUP')
  for (;;) {
    const line = /^.*"msg":"[^"]*host config.*$/m.exec(server.log.slice(from))?.[0]
    if (line !== undefined) return line
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function session(tools: readonly string[] = ['echo', 'other']): Promise<TestSession> {
  const created = await server.post('/v1/sessions', {
    model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] },
    config: { tools },
  })
  expect(created.status, created.text).toBe(200)
  return new TestSession(server, created.body.session_id as string, 'echo')
}

const namesIn = async (): Promise<string[]> =>
  (await server.get('/catalog')).body.tools.map(({ name }: { name: string }) => name)

it('a host config that lists tenants is served, and the log says which variables have no effect', () => {
  expect(JSON.parse(/^.*has no effect.*$/m.exec(server.log)?.[0] ?? '')).toMatchObject({
    level: 40,
    warning: expect.stringMatching(/^BRAIN_ENV_SECRET_ALLOW: has no effect/),
  })
})

describe('a host config that is read again at SIGHUP (contract A4, A16)', () => {
  it('counts for calls that begin then; those under way keep their binding', async () => {
    const one = await session()
    const asked = Promise.withResolvers<() => void>()
    before.script = (socket) => {
      socket.write(STREAM_HEAD)
      asked.resolve(() => socket.end(`event: result\ndata: ${HELLO}\n\n`))
    }
    const underWay = one.call({})
    const answer = await asked.promise
    const tenants = [{ id: 'a', token_env: 'A_NEW', allow: { filesystem: ['scratch'] } }]
    const input_schema = { type: 'object', required: ['text'] }
    const line = await reread({ tenants, tools: [bindingAt(after, { token_env: 'SERVICE_KEY_NEW', input_schema })] })
    expect(JSON.parse(line)).toMatchObject({ level: 30, tenants: 1, tools: 1, msg: 'the host config was read again' })
    expect(await one.call({})).toMatchObject({ outcome: { status: 'ok' } })
    expect(after.requests.map(({ head }) => /^Authorization: (.*)$/m.exec(head)?.[1])).toEqual(['Bearer key-2'])
    // Schemas are those that a session was made with.
    expect(await (await session(['echo'])).call({})).toMatchObject({
      outcome: { status: 'error', error: { code: 'invalid_input' } },
    })
    answer()
    before.script = answerHello
    expect(await underWay).toMatchObject({ outcome: { status: 'ok' } })
    expect(before.requests.map(({ head }) => /^Authorization: (.*)$/m.exec(head)?.[1])).toEqual(['Bearer key-1'])
    // A binding that is gone is in no catalog; a session that has it is told so at each call, and nothing is sent.
    expect(await namesIn()).toEqual(['echo'])
    expect(await one.call({}, { tool: 'other' })).toMatchObject({
      outcome: { status: 'error', error: { code: 'tool_unavailable' } },
    })
    expect(before.requests).toHaveLength(1)
    // What a tenant may grant follows as well.
    const environments = [
      { name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: { filesystem: { scratch: 'read' } } },
    ]
    const model = { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'done' }] }
    expect((await server.post('/v1/sessions', { model, environments })).status).toBe(200)
  })

  it('lets nobody in any more whose token it does not name, and ends their streams', async () => {
    const tools = [bindingAt(before)]
    const both = [
      { id: 'a', token_env: ['A_OLD', 'A_NEW'] },
      { id: 'b', token_env: 'B' },
    ]
    await reread({ tenants: both, tools })
    const one = await session(['echo'])
    server.token = 'of-b'
    const host = await HostClient.register(server)
    const commands = await host.connect()
    server.token = 'new-of-a'
    const follow = (token: string): Promise<Response> =>
      fetch(`${server.url}${one.path}/events`, { headers: { accept: 'text/event-stream', ...bearer(token) } })
    const [withdrawn, kept] = await Promise.all([follow('old-of-a'), follow('new-of-a')])
    await reread({ tenants: [{ id: 'a', token_env: 'A_NEW' }], tools })
    await withdrawn.text()
    for (const token of ['old-of-a', 'of-b']) expect((await server.get('/v1/sessions', bearer(token))).status).toBe(401)
    expect((await server.get('/v1/sessions')).status).toBe(200)
    // Its applications neither: what a tenant that is gone had made is there when it comes back.
    await commands.ended
    expect((await server.get(`/v1/hosts/${host.id}/commands`, bearer(host.token))).status).toBe(401)
    await one.call({})
    const reader = kept.body!.pipeThrough(new TextDecoderStream()).getReader()
    let shown = ''
    while (!shown.includes('tool_call_ended')) shown += (await reader.read()).value ?? expect.fail('its stream ended')
    await reader.cancel()
    await reread({ tenants: both, tools })
    expect((await server.get('/v1/sessions', bearer('of-b'))).status).toBe(200)
  })

  it.each([
    ['is no JSON', '{\n "tools": [', 'brain.json:2: tools[0]: a value is expected here'],
    ['has an invalid binding', { tools: [{ name: 'echo' }] }, 'tools[0].url: is missing'],
    [
      'names a variable that is not set',
      { tenants: [{ id: 'a', token_env: 'A_NEWER' }] },
      'tenants[0].token_env: the variable A_NEWER is not set, or empty',
    ],
    [
      'names an unknown tenant',
      {
        tenants: [{ id: 'c', token_env: 'A_NEW' }],
        tools: [{ name: 'x', description: 'x', input_schema: {}, url: 'http://x', tenants: ['a'] }],
      },
      'tools[0].tenants[0]: there is no tenant "a"',
    ],
  ])('changes nothing when it %s, and the log says so', async (_, config, problem) => {
    const names = await namesIn()
    const line = await reread(config)
    expect(JSON.parse(line)).toMatchObject({
      level: 50,
      problems: expect.arrayContaining([expect.stringContaining(problem)]),
    })
    expect(await namesIn()).toEqual(names)
    expect(names).toEqual(['echo'])
  })

  it('may come many times at once: the last change counts', async () => {
    const tenants = [{ id: 'a', token_env: 'A_NEW' }]
    for (let round = 0; round < 20; round++) process.kill(server.pid, 'SIGHUP')
    await reread({ tenants, tools: [bindingAt(after, { name: 'last' })] })
    for (let round = 0; (await namesIn())[0] !== 'last'; round++) {
      if (round > 500) throw new Error('the last change does not count')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    for (const canary of ['key-1', 'key-2', 'old-of-a', 'new-of-a', 'of-b']) expect(server.log).not.toContain(canary)
  })
})
