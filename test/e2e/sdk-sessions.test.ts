import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentloop, Brain, brainEnv, component, hostEnv, tool, type BrainOptions } from '../../src/sdk/index.ts'
import { fixture, startServer, type TestServer } from '../support/server.ts'

const model = (...script: object[]) => ({
  provider: 'scripted',
  name: 'script',
  apiKey: 'none',
  script: script as never,
})
const box = brainEnv({ name: 'reader', filesystem: { workspace: 'write' } })

describe('the client', () => {
  let server: TestServer
  let brain: Brain
  /** Every request of every client that `spying` made, as `POST /v1/tools`. */
  let requests: string[] = []
  const spying = (options: Partial<BrainOptions> = {}): Brain =>
    new Brain({
      baseUrl: server.url,
      fetch: (url, init) => {
        requests.push(`${init?.method} ${new URL(url).pathname}`)
        return fetch(url, init)
      },
      ...options,
    })

  const inspectUrl = new URL('../fixtures/components/inspect.wasm', import.meta.url)
  const inspect = tool({
    name: 'inspect',
    description: 'Lists what is below one path.',
    input: z.object({ path: z.string() }),
    options: z.object({ depth: z.number().int().positive() }),
    implementation: component(inspectUrl),
  })

  beforeAll(async () => {
    server = await startServer()
    brain = spying()
  })
  afterAll(async () => {
    await brain.close()
    await server[Symbol.asyncDispose]()
  })

  it('runs a component from a file in a named environment (seed: A Component)', async () => {
    const session = await brain.sessions.create({
      model: model({ tool_calls: [{ name: 'inspect', input: { path: 'notes' } }] }, { text: 'One note.' }),
      tools: [inspect({ env: box, depth: 2 })],
      labels: { team: 'sdk' },
    })
    await server.request('PUT', `/v1/sessions/${session.id}/environments/reader/files/notes/today.txt`, {
      bytes: Buffer.from('milk'),
    })
    expect(await session.send('What is there?')).toMatchObject({ id: session.id, status: 'idle' })
    const events = await Array.fromAsync(session.events())
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1))
    expect(events[0]?.recordedAt).toBeInstanceOf(Date)
    expect(events.find(({ type }) => type === 'tool_result_emitted')?.data).toMatchObject({
      result: { is_error: false },
    })
    const started = events.find(({ type }) => type === 'turn_started')?.sequence ?? 0
    expect(await session.outcome(started)).toMatchObject({
      sequence: started,
      status: 'ended',
      terminal: { type: 'turn_ended' },
      answer: { role: 'assistant', content: [{ type: 'text', text: 'One note.' }] },
    })
    expect((await session.transcript()).messages.at(-1)?.content).toEqual([{ type: 'text', text: 'One note.' }])
    await expect(session.outcome(1)).rejects.toMatchObject({ name: 'BrainError', code: 'invalid_request' })
  })

  it('admits a component once for each object, and forgets that it failed', async () => {
    requests = []
    const client = spying()
    const bytes = await fixture('wordcount')
    const words = component(bytes)
    const ids = await Promise.all([client.admitTool(words), client.admitTool(words)])
    expect(ids[0]).toBe(ids[1])
    expect(requests).toEqual(['POST /v1/tools'])
    const path = join(server.directory, 'late.wasm')
    const late = component(new URL(`file://${path}`))
    await expect(client.admitTool(late)).rejects.toMatchObject({ code: 'ENOENT' })
    await writeFile(path, bytes)
    expect(await client.admitTool(late)).toBe(ids[0])
    const files = createServer((_, response) => response.end(bytes)).listen(0, '127.0.0.1')
    await once(files, 'listening')
    const { port } = files.address() as AddressInfo
    expect(await client.admitTool(component(new URL(`http://127.0.0.1:${port}/wordcount.wasm`)))).toBe(ids[0])
    files.close()
    const loop = component(await fixture('agentloop'))
    await expect(client.admitTool(loop)).rejects.toMatchObject({ name: 'BrainError', status: 400 })
    const junk = component(new Uint8Array([1, 2, 3]))
    await expect(client.admitTool(junk)).rejects.toMatchObject({ name: 'BrainError', status: 400 })
    expect(
      await client.admitTool(component(new URL(`${server.url.replace(/\/$/, '')}/none.wasm`))).catch((e) => e),
    ).toMatchObject({ code: 'http_error', status: 404 })
    await client.close()
  })

  it('uploads loop and tools before it creates, as bytes (contract 10.1 B)', async () => {
    const sent: string[] = []
    const client = new Brain({
      baseUrl: server.url,
      fetch: (url, init) => {
        sent.push(`${new URL(url).pathname} ${new Headers(init?.headers).get('content-type')}`)
        return fetch(url, init)
      },
    })
    const loop = agentloop({ implementation: component(await fixture('agentloop')) })
    const session = await client.sessions.create({
      model: model({ text: 'done' }),
      agentloop: loop({ env: brainEnv({ name: 'loops' }) }),
      tools: [inspect({ env: box, depth: 1 })],
    })
    expect(sent).toEqual([
      '/v1/agentloops application/octet-stream',
      '/v1/tools application/octet-stream',
      '/v1/sessions application/json',
    ])
    await session.send('Go')
    expect((await session.transcript()).messages.at(-1)?.content).toEqual([{ type: 'text', text: 'done' }])
    await client.close()
  })

  it('prepares components ahead: looks before it uploads, and creates as it would have without (contract 10.1 L)', async () => {
    requests = []
    const client = spying()
    const loop = agentloop({ implementation: component(await fixture('agentloop')) })({
      env: brainEnv({ name: 'loops' }),
    })
    // Bytes that no other test has uploaded.
    const words = tool({
      name: 'wordcount',
      description: 'Counts words',
      input: z.object({ text: z.string() }),
      implementation: component(
        Buffer.concat([await fixture('wordcount'), Buffer.from([0, 5, 4, 0x6d, 0x69, 0x6e, 0x65])]),
      ),
    })({ env: box })
    const prepared = await client.prepareEnvironment({
      agentloop: loop,
      tools: [words, inspect({ env: box, depth: 1 })],
    })
    const uploads = (): string[] => requests.filter((request) => request === 'POST /v1/tools')
    expect(uploads().length).toBeLessThanOrEqual(2)
    expect(requests.at(-1)).toBe('POST /v1/brain-env/prepare')
    const before = uploads().length
    const again = spying()
    const same = await again.prepare(words)
    expect(uploads().length).toBe(before)
    const { tools } = await client.sessions.prepare({ model: model(), agentloop: loop, tools: [words] })
    expect((await again.sessions.prepare({ model: model(), tools: [same] })).tools).toEqual(tools)
    expect(await client.admit(loop)).toMatch(/^[0-9a-f]{64}$/)
    const session = await client.sessions.create({ model: model({ text: 'done' }), ...prepared })
    await session.send('Go')
    expect((await session.transcript()).messages.at(-1)?.content).toEqual([{ type: 'text', text: 'done' }])
    await expect(client.prepare(inspect as never)).rejects.toThrow(/call their factory/)
    const { hostId } = await client.register()
    expect(await client.credentials()).toMatchObject({ hostId })
    await Promise.all([client.close(), again.close()])
  })

  it('composes the request that the contract describes (contract 2.3)', async () => {
    const words = tool({
      name: 'wordcount',
      description: 'Counts words',
      input: z.object({ text: z.string() }),
      implementation: component(await fixture('wordcount')),
    })
    const loop = agentloop({
      implementation: component(await fixture('agentloop')),
      options: z.object({ rounds: z.number() }),
    })
    const other = brainEnv({ name: 'other' })
    const grant = { environment: 'later', permissions: ['create', 'call'], methods: ['ping'] } as const
    const transcript = [{ role: 'user', content: [{ type: 'text', text: 'Before' }] }] as const
    const request = await brain.sessions.prepare({
      model: { provider: 'scripted', name: 'script', apiKey: 'k' },
      agentloop: loop({ env: brainEnv({ name: 'loops' }), rounds: 3 }),
      environments: [other],
      environment: { lifecycle: { default: 'manual', bindings: { loops: 'automatic' } } },
      tools: [
        words({ env: box, environments: [grant] }),
        words({ env: brainEnv({ name: 'other' }), environments: [grant] }),
      ],
      system: 'Be brief.',
      transcript,
      responseFormat: { type: 'json_object' },
      idleTtlMs: 0,
    })
    expect(request).toMatchObject({
      agentloop: { implementation: { entrypoint: 'turn' }, configuration: { rounds: 3 }, environment: 'loops' },
      model: { api_key: 'k' },
      system: 'Be brief.',
      transcript,
      response_format: { type: 'json_object' },
      tools: [{ name: 'wordcount', placements: { reader: {}, other: {} }, environments: [grant] }],
      environments: [
        { name: 'loops', driver: 'brain', lifecycle: 'automatic' },
        { name: 'other', lifecycle: 'manual' },
        { name: 'reader', lifecycle: 'manual', configuration: { filesystem: { workspace: 'write' } } },
      ],
      idle_ttl_ms: 0,
    })
    expect(Object.keys(request)).not.toContain('labels')
    // A grant is a permission: it brings neither a tool nor an environment with it.
    expect([request.tools.length, request.environments.length]).toEqual([1, 3])
  })

  it('refuses what contradicts itself before any request', async () => {
    requests = []
    const run = () => undefined
    const plain = tool({ name: 'plain', description: 'x', input: z.object({}), run })
    const twin = tool({ name: 'plain', description: 'y', input: z.object({}), run })
    const create = (options: object) => brain.sessions.create({ model: model(), ...options } as never)
    await expect(create({ tools: [plain(), plain()] })).rejects.toThrow('two tools named "plain"')
    await expect(create({ tools: [plain(), twin({ env: hostEnv({ name: 'h' }) })] })).rejects.toThrow(
      'two different tools',
    )
    await expect(create({ environments: [box, brainEnv({ name: 'reader' })] })).rejects.toThrow(
      'two different environments',
    )
    await expect(create({ tools: [plain] })).rejects.toThrow('call the factory')
    await expect(create({ metadata: {} })).rejects.toThrow('no member "metadata"')
    await expect(create({ environment: { lifecycle: { bindings: { x: 'manual' } } } })).rejects.toThrow(
      '"x", which is not there',
    )
    await expect(create({ environment: { lifecycle: { default: 'never' } } })).rejects.toThrow(
      '"automatic" or "manual"',
    )
    await expect(create({ environment: { lifecycle: 'manual' } })).rejects.toThrow('with default, bindings')
    await expect(create({ lifecycle: 'manual' })).rejects.toThrow('no member "lifecycle"')
    await expect(brain.sessions.prepare({ model: model(), tools: [plain()] })).rejects.toThrow('give the hostId')
    expect(requests).toEqual([])
  })

  it('repeats create and delete under a key, and refuses another body with it', async () => {
    const options = { model: model({ text: 'done' }) }
    const keys = { idempotencyKey: `create-${Date.now()}` }
    const [one, two] = [await brain.sessions.create(options, keys), await brain.sessions.create(options, keys)]
    expect(one.id).toBe(two.id)
    await expect(brain.sessions.create({ ...options, system: 'x' }, keys)).rejects.toMatchObject({
      status: 409,
      code: 'conflict',
    })
    expect((await brain.sessions.list()).map(({ id }) => id)).toContain(one.id)
    await expect(one.delete()).rejects.toMatchObject({ status: 400 })
    expect(await one.end()).toMatchObject({ status: 'ended' })
    await expect(one.send('more')).rejects.toMatchObject({ status: 400, details: { admission: 'rejected' } })
    await one.delete()
    await expect(brain.sessions.get(one.id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })

  it('submits, streams history and what is new, and knows a pending turn', async () => {
    const session = await brain.sessions.create({ model: model({ text: 'first' }, { text: 'second' }) })
    const seen: string[] = []
    const stopped = new AbortController()
    const following = (async () => {
      for await (const event of session.stream(0, stopped.signal)) {
        seen.push(event.type)
        if (event.sequence === undefined) expect(event.data).toHaveProperty('model_call_sequence')
        if (event.type === 'turn_ended') break
      }
    })()
    const sequence = await session.submit('Go')
    await following
    expect(seen.slice(0, 2)).toEqual(['session_creation_started', 'session_creation_ended'])
    expect(await session.outcome(sequence)).toMatchObject({ status: 'ended' })
    const again = await (await brain.sessions.get(session.id)).submit({ message: 'Go on' })
    expect(again).toBeGreaterThan(sequence)
    expect(['pending', 'ended']).toContain((await session.outcome(again)).status)
  })

  it('sends nothing with a signal that is aborted, and nothing after it is closed', async () => {
    const client = spying()
    const session = await client.sessions.create({ model: model({ text: 'done' }) })
    requests = []
    await expect(session.send('x', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    const stream = session.stream()
    await stream.next()
    expect(client.close()).toBe(client.close())
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ name: 'AbortError' })
    await expect(session.transcript()).rejects.toMatchObject({ name: 'AbortError' })
    expect(requests.filter((request) => !request.endsWith('/events'))).toEqual([])
  })

  it('gives up waiting at its timeout, and neither repeats the message nor cancels its turn (contract 10.3)', async () => {
    const gate = Promise.withResolvers<void>()
    const waits = tool({
      name: 'waits',
      description: 'Waits for the test.',
      input: z.object({}),
      run: async (_, ctx) => {
        await gate.promise
        return ctx.finish('ok')
      },
    })
    const script = model({ tool_calls: [{ name: 'waits', input: {} }] }, { text: 'done' })
    const { id } = await brain.sessions.create({ model: script, tools: [waits()] })
    requests = []
    const hasty = spying({ timeoutMs: 300 })
    const session = await hasty.sessions.get(id)
    await expect(session.send('Go')).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(requests).toEqual([`GET /v1/sessions/${id}`, `POST /v1/sessions/${id}/messages`])
    expect((await hasty.sessions.get(id)).state.status).toBe('running')
    gate.resolve()
    for await (const { type } of session.stream()) if (type === 'turn_ended') break
    await session.interrupt({ idempotencyKey: 'twice' })
    await session.interrupt({ idempotencyKey: 'twice' })
    const types = (await Array.fromAsync(session.events())).map(({ type }) => type)
    expect(types.filter((type) => /^turn_|interrupted/.test(type))).toEqual([
      'turn_started',
      'turn_ended',
      'session_interrupted',
    ])
    expect((await session.send('Again')).status).toBe('idle')
    await hasty.close()
  })

  it('has no timeout but the one it is given, and checks what it is made of', async () => {
    const never = new Brain({
      baseUrl: server.url,
      timeoutMs: 20,
      fetch: (_url, init) =>
        new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error))),
    })
    await expect(never.models()).rejects.toMatchObject({ name: 'TimeoutError' })
    const make = (options: object) => () => new Brain({ baseUrl: server.url, ...options })
    for (const wrong of [
      { baseUrl: 'ftp://x' },
      { baseUrl: 'http://a:b@x' },
      { baseUrl: 'http://x?a' },
      { token: '' },
      { timeoutMs: 0 },
      { connectionIdleTimeoutMs: -1 },
      { connectionIdleTimeoutMs: 2 ** 31 },
      { retries: 3 },
    ])
      expect(make(wrong)).toThrow(TypeError)
    expect((await brain.models('openai')).providers[0]?.id).toBe('openai')
    expect(await brain.request('GET', '/v1/limits')).toBeTypeOf('object')
    await expect(brain.withToken('other').request('GET', '/v1/nowhere')).rejects.toMatchObject({ status: 404 })
  })
})
