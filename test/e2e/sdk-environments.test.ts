import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { application, applicationTool, http, httpTool } from '../../src/sdk/http.ts'
import { createToolHandler } from '../../src/sdk/http-handler.ts'
import { createHttpEnvironment, serveEnvironment, type ServedEnvironment } from '../../src/sdk/http-server.ts'
import {
  agentloop,
  Brain,
  BrainError,
  environment,
  environmentHandler,
  environmentReporter,
  tool,
  type EnvironmentHandler,
  type EnvironmentRef,
  type EnvironmentServices,
  type ExecuteContext,
  type PlacedTool,
  type SessionHandle,
} from '../../src/sdk/index.ts'
import { bodyOf } from '../support/environment-services.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'

const model = (...script: object[]) => ({
  provider: 'scripted',
  name: 'script',
  apiKey: 'none',
  script: (script.length === 0 ? [{ text: 'done' }] : script) as never,
})

let server: TestServer
let brain: Brain
beforeAll(async () => {
  server = await startServer()
  brain = new Brain({ baseUrl: server.url })
})
afterAll(async () => {
  await brain.close()
  await server[Symbol.asyncDispose]()
})

const eventsOf = async (session: SessionHandle, type: string): Promise<any[]> =>
  (await Array.fromAsync(session.events())).filter((event) => event.type === type).map(({ data }) => data)

/** The first record of a kind after others, when it is there. */
async function untilEvent(session: SessionHandle, type: string, after = 0): Promise<{ sequence: number; data: any }> {
  for await (const { sequence, type: kind, data } of session.stream(after))
    if (kind === type && sequence !== undefined) return { sequence, data }
  throw new Error(`the stream ended before ${type}`)
}

describe('an environment over HTTP', () => {
  let handler: EnvironmentHandler
  let served: ServedEnvironment
  const seen: any[] = []
  beforeAll(async () => {
    served = await serveEnvironment(
      (command, signal) => {
        seen.push(command)
        return handler.run(command, signal)
      },
      { token: 'environment-secret' },
    )
  })
  afterAll(() => served.close())

  const remote = (methods = {}) => environment({ url: served.url, credential: 'environment-secret', methods })
  /** What the tool `probe` does, in this environment. */
  const execute = (run: (input: any, ctx: ExecuteContext) => unknown): EnvironmentHandler =>
    environmentHandler({ execute: ({ input }, ctx) => run(input, ctx), cancel: () => undefined })
  const probe = tool({
    name: 'probe',
    description: 'Does what a test says.',
    input: z.object({}).loose(),
    implementation: { type: 'probe' },
  })
  const direct = (session: SessionHandle): TestSession => new TestSession(server, session.id, 'probe')
  const sessionOf = (...tools: PlacedTool[]): Promise<SessionHandle> => brain.sessions.create({ model: model(), tools })

  it('understands descriptors, which it gets as they are with every call', async () => {
    seen.length = 0
    const fetchIssue = tool({
      name: 'fetch_issue',
      description: 'Fetch one issue.',
      input: z.object({ number: z.number().int() }),
      options: z.object({ repository: z.string() }),
      implementation: ({ repository }) => ({
        type: 'http_json',
        method: 'GET',
        path: `/repos/${repository}/issues/{number}`,
      }),
    })
    const github = environment({
      url: served.url,
      credential: 'environment-secret',
      options: z.object({ owner: z.string() }),
    })({ name: 'github', owner: 'aexhq' })
    handler = environmentHandler({
      options: z.object({ owner: z.string() }),
      execute: async ({ implementation, input }, ctx) => {
        const { path } = implementation as { path: string }
        await ctx.execution.finish(`${ctx.options.owner}:${path.replace('{number}', String((input as any).number))}`)
      },
    })
    const calls = [1, 2].map((number) => ({ name: 'fetch_issue', input: { number } }))
    const session = await brain.sessions.create({
      model: model({ tool_calls: calls }, { text: 'Two issues.' }),
      tools: [fetchIssue({ env: github, repository: 'aexhq/brain' })],
    })
    await session.send('Which issues are there?')
    const outputs = (await eventsOf(session, 'tool_result_emitted')).map(({ result }) => result.output)
    expect(new Set(outputs)).toEqual(
      new Set(['aexhq:/repos/aexhq/brain/issues/1', 'aexhq:/repos/aexhq/brain/issues/2']),
    )
    const implementation = { type: 'http_json', method: 'GET', path: '/repos/aexhq/brain/issues/{number}' }
    const requests = seen.map(({ operation }) => operation.request)
    expect(requests.filter(({ type }) => type === 'execute')).toMatchObject([{ implementation }, { implementation }])
    expect(requests[0]).toEqual({ type: 'setup', configuration: { owner: 'aexhq' } })
    await session.end()
    await session.delete()
    expect(seen.map(({ operation }) => operation.request.type)).toEqual([
      'setup',
      'execute',
      'execute',
      'detach',
      'teardown',
    ])
  })

  it('prepares in its setup what its tools need, before any of them is called', async () => {
    const done: string[] = []
    const installed = new Map<string, Set<string>>()
    handler = environmentHandler({
      options: z.object({ lockfile: z.array(z.string()) }),
      setup: async ({ options, sessionId }) => {
        await new Promise(setImmediate)
        installed.set(sessionId, new Set(options.lockfile))
        done.push('set up')
      },
      execute: async ({ input }, { execution, sessionId }) => {
        done.push('executed')
        await execution.finish(installed.get(sessionId)?.has((input as { name: string }).name) ?? null)
      },
    })
    const prepared = environment({
      url: served.url,
      credential: 'environment-secret',
      options: z.object({ lockfile: z.array(z.string()) }),
    })
    const session = await sessionOf(probe({ env: prepared({ name: 'remote', lockfile: ['zod'] }) }))
    expect((await direct(session).call({ name: 'zod' }, { wait: 'finished' })).results).toMatchObject([
      { output: true },
    ])
    expect(done).toEqual(['set up', 'executed'])
  })

  it('names in its setup what is called after every turn', async () => {
    const turns: number[] = []
    const tidy = { description: 'Tidies up', input: z.object({ sequence: z.number() }) }
    handler = environmentHandler({
      methods: { tidy: { ...tidy, run: ({ sequence }) => void turns.push(sequence) } },
      setup: () => ({ onTurnEnd: 'tidy' }),
    })
    const session = await brain.sessions.create({
      model: model(),
      environments: [remote({ tidy })({ name: 'remote' })],
    })
    const turn = await session.submit('Hi')
    await untilEvent(session, 'environment_call_ended')
    expect(turns).toEqual([turn])
  })

  it('whose setup fails fails its calls, and is not set up again', async () => {
    let setups = 0
    handler = environmentHandler({
      setup: () => {
        setups++
        throw new BrainError(0, 'no_such_package', 'There is no such package')
      },
      execute: () => expect.unreachable(),
    })
    const env = remote()({ name: 'remote' })
    const session = await brain.sessions.create({
      model: model(),
      tools: [probe({ env })],
      environment: { lifecycle: { default: 'manual' } },
    })
    const reference = { name: 'remote', sequence: 1 }
    await expect(session.environments.setup(reference)).rejects.toMatchObject({ name: 'BrainError' })
    expect(await session.environments.get(reference)).toMatchObject({ state: 'failed' })
    for (let call = 0; call < 2; call++)
      expect((await direct(session).call({}, { wait: 'finished' })).outcome).toMatchObject({
        status: 'error',
        error: { code: 'environment_not_ready' },
      })
    expect(setups).toBe(1)
    await expect(sessionOf(probe({ env }))).rejects.toMatchObject({ name: 'BrainError', code: 'no_such_package' })
    expect(setups).toBe(2)
  })

  it('says nothing of its credential to whoever reads the session', async () => {
    handler = environmentHandler({})
    const session = await brain.sessions.create({ model: model(), environments: [remote()({ name: 'remote' })] })
    expect(JSON.stringify(await Array.fromAsync(session.events()))).not.toContain('environment-secret')
    const wrong = environment({ url: served.url, credential: 'other' })({ name: 'remote' })
    await expect(brain.sessions.create({ model: model(), environments: [wrong] })).rejects.toMatchObject({
      name: 'BrainError',
    })
  })

  it('asks the model of the session for its tool, by the service that it was granted', async () => {
    handler = execute(async (_, { execution }) => {
      const { message } = await execution.model({
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      })
      await execution.telemetry({ asked: 1 })
      await execution.finish({ said: message.content })
    })
    const session = await sessionOf(probe({ env: remote()({ name: 'remote' }) }))
    const { sequence, outcome, results } = await direct(session).call({}, { wait: 'finished' })
    expect({ outcome, results }).toMatchObject({
      outcome: { status: 'ok' },
      results: [{ output: { said: [{ type: 'text', text: 'done' }] } }],
    })
    expect(await eventsOf(session, 'model_call_started')).toMatchObject([{ tool_sequence: sequence }])
  })

  it('is named in what its tool publishes; a returned tool goes on and wakes the session', async () => {
    const may = Promise.withResolvers<void>()
    handler = execute(async (_, { execution }) => {
      await execution.emit('begun', { at: 1 })
      await execution.returned({ so: 'far' })
      void may.promise.then(async () => {
        await execution.emitResult('later', { content: 'Later.' })
        await execution.finish()
      })
    })
    const session = await brain.sessions.create({
      model: model({ tool_calls: [{ name: 'probe', input: {} }] }, { text: 'Begun.' }, { text: 'Over.' }),
      tools: [probe({ env: remote()({ name: 'remote' }) })],
    })
    await session.send('Begin')
    const types = (await Array.fromAsync(session.events())).map(({ type }) => type)
    expect(types).toEqual(expect.arrayContaining(['begun', 'tool_result_emitted', 'tool_call_returned']))
    expect(types).not.toContain('tool_call_ended')
    may.resolve()
    const ended = await untilEvent(session, 'tool_call_ended')
    expect(ended.data.outcome).toEqual({ status: 'ok', value: null })
    await untilEvent(session, 'turn_ended', ended.sequence)
    expect((await session.transcript()).messages.at(-1)?.content).toEqual([{ type: 'text', text: 'Over.' }])
  })

  it('fails a call with what its function throws, and an outcome is one', async () => {
    handler = execute(({ fail }) => {
      if (fail === true) throw new Error('Not today')
      return { status: 'error', error: { code: 'gone', message: 'It is gone', retryable: true } }
    })
    const session = await sessionOf(probe({ env: remote()({ name: 'remote' }) }))
    expect((await direct(session).call({ fail: true }, { wait: 'finished' })).outcome).toMatchObject({
      status: 'error',
      error: { code: 'environment_error', message: 'Not today' },
    })
    expect((await direct(session).call({}, { wait: 'finished' })).outcome).toMatchObject({
      status: 'error',
      error: { code: 'gone', message: 'It is gone', retryable: true },
    })
  })

  it('is told when a call is cancelled', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    handler = execute((_, { signal }) => {
      begun.resolve(signal)
      return once(signal, 'abort').then(() => signal.throwIfAborted())
    })
    const session = await sessionOf(probe({ env: remote()({ name: 'remote' }) }))
    const call = direct(session).call({}, { wait: 'finished' })
    const signal = await begun.promise
    await session.interrupt()
    expect((await call).outcome).toEqual({ status: 'cancelled' })
    if (!signal.aborted) await once(signal, 'abort')
    await untilEvent(session, 'tool_cancel_ended')
  })

  it('reports with a bearer of its own, also after its operation, and when its reporter was made again', async () => {
    let ctx: any
    handler = environmentHandler({
      setup: async (given) => {
        ctx = given
        await given.emit('made', { by: 'setup' })
      },
    })
    const session = await brain.sessions.create({ model: model(), environments: [remote()({ name: 'remote' })] })
    const observation = { scope: 'environment', availability: 'unavailable', message: 'It is raining' } as const
    const sequence = await ctx.reporter.observe(observation)
    expect(await untilEvent(session, 'environment_observation')).toMatchObject({ sequence, data: { observation } })
    await expect(ctx.emit('late', null)).rejects.toMatchObject({ code: 'invalid_request' })
    const { operation } = seen.at(-1)
    expect(operation.context.token).not.toBe(operation.reporter.token)
    const [view] = await session.environments.list()
    expect(view).toMatchObject({ state: 'ready', availability: 'unavailable' })
    const again = environmentReporter(JSON.parse(JSON.stringify(ctx.reporter.callback)))
    await again.observe({ ...observation, availability: 'available' })
    expect(await session.environments.get(view?.reference as EnvironmentRef)).toMatchObject({
      availability: 'available',
    })
    await session.end()
    await session.delete()
    await expect(again.emit('late', null)).rejects.toMatchObject({ name: 'BrainError', code: 'not_found' })
  })

  describe('is controlled', () => {
    const methods = {
      add: {
        description: 'Adds one',
        input: z.object({ n: z.number() }),
        output: z.object({ sum: z.number() }),
      },
      renew: { description: 'Makes it anew', input: z.object({}), effect: 'replace' as const },
    }
    const pool = () =>
      remote(methods)({ name: 'pool', template: { maxInstances: 1, configuration: z.object({ size: z.number() }) } })
    const grants = ['read', 'create', 'setup', 'update', 'delete', 'call'] as const

    /** Everything that can be done with an environment that is made while the session goes on. */
    async function workThrough(environments: EnvironmentServices): Promise<unknown> {
      const made = await environments.create('pool', 'one', { size: 1 })
      expect(made).toMatchObject({ template: 'pool', state: 'declared', configuration: { size: 1 } })
      await environments.update(made.reference, { size: 2 })
      expect(await environments.setup(made.reference)).toMatchObject({ state: 'ready', configuration: { size: 2 } })
      expect(await environments.call(made.reference, 'add', { n: 3 })).toEqual({ sum: 5 })
      await environments.call(made.reference, 'renew', {})
      const [renewed] = (await environments.list()).filter(({ reference }) => reference.name === 'one')
      expect(renewed?.reference.sequence).toBeGreaterThan(made.reference.sequence)
      await expect(environments.get(made.reference)).rejects.toMatchObject({ code: 'not_found' })
      await environments.delete(renewed?.reference as EnvironmentRef)
      return { name: renewed?.reference.name }
    }

    beforeAll(() => {
      handler = environmentHandler({
        options: z.object({ size: z.number().default(0) }),
        methods: {
          add: { ...methods.add, run: ({ n }, ctx) => ({ sum: n + ctx.options.size }) },
          renew: { ...methods.renew, run: () => null },
        },
      })
    })

    it('by the application, which may do everything, with a key of its own for every request', async () => {
      const keys: (string | null)[] = []
      const client = new Brain({
        baseUrl: server.url,
        fetch: (url, init) => {
          if (url.endsWith('/environments')) keys.push(new Headers(init?.headers).get('idempotency-key'))
          return fetch(url, init)
        },
      })
      const session = await client.sessions.create({ model: model(), environments: [pool()] })
      expect(await workThrough(session.environments)).toEqual({ name: 'one' })
      expect(new Set(keys).size).toBe(8)
      await expect(session.environments.create('pool', 'two', { size: 'big' })).rejects.toMatchObject({
        name: 'BrainError',
        code: 'invalid_request',
      })
      await client.close()
    })

    it('by a function with all that it was granted, and by no other', async () => {
      const manage = tool({
        name: 'probe',
        description: 'Manages environments.',
        input: z.object({}),
        run: async (_, ctx) => ctx.finish((await workThrough(ctx.environments)) as never),
      })
      const granted = manage({
        environments: [{ environment: 'pool', permissions: grants, methods: ['add', 'renew'] }],
      })
      for (const [placed, outcome] of [
        [granted, { status: 'ok' }],
        [manage(), { status: 'error' }],
      ] as const) {
        const session = await brain.sessions.create({ model: model(), tools: [placed], environments: [pool()] })
        expect((await direct(session).call({}, { wait: 'finished' })).outcome).toMatchObject(outcome)
      }
    })
  })

  it('runs agentloops with everything that a loop may ask', async () => {
    const conductor = agentloop({
      options: z.object({ greeting: z.string() }),
      implementation: ({ greeting }) => ({ type: 'loop', greeting }),
    })
    handler = environmentHandler({
      execute: async ({ implementation, input }, { execution }) => {
        const { type, greeting } = implementation as Record<string, string>
        if (type === 'probe') return void (await execution.finish('probed'))
        const { input: given, transcript } = input as any
        const question = { role: 'user', content: [{ type: 'text', text: given.message }] } as const
        const { message } = await execution.model({ messages: [...transcript, question] })
        const count = ((await execution.kv.get('count')) as number | undefined) ?? 0
        await execution.kv.set('count', count + 1)
        const call = { call_id: 'one', name: 'probe', environment: 'remote', input: {} }
        const [returned] = await execution.dispatch([call])
        await execution.setTranscript([...transcript, question, message])
        await execution.events(0)
        return { result: { greeting, count, finished: returned?.finished } }
      },
    })
    const env = remote()({ name: 'remote' })
    const session = await brain.sessions.create({
      model: model({ text: 'Good morning.' }),
      agentloop: conductor({ env, greeting: 'Hello' }),
      tools: [probe({ env })],
    })
    await session.send('Hi')
    await session.send('Hi again')
    expect(await eventsOf(session, 'turn_failed')).toEqual([])
    const results = (await eventsOf(session, 'turn_ended')).map(({ result }) => result)
    expect(results).toEqual([0, 1].map((count) => ({ greeting: 'Hello', count, finished: true })))
    expect((await session.transcript()).messages).toHaveLength(4)
  })
})

describe('functions of an application over HTTP', () => {
  let bridge: ServedEnvironment
  const lookup = tool({
    name: 'lookup',
    description: 'Looks up one record.',
    input: z.object({ id: z.string() }),
    output: z.object({ value: z.string() }).nullable(),
    options: z.object({ prefix: z.string() }),
    run: async ({ id }, ctx) => {
      await ctx.emitResult({ value: 'searching' }, { content: 'Searching.' })
      return ctx.finish({ value: `${ctx.options.prefix}${id}` })
    },
  })
  const plain = tool({
    name: 'plain',
    description: 'Gives plain JSON.',
    input: z.object({}),
    run: () => ({ status: 'cancelled' }),
  })
  const greedy = tool({
    name: 'greedy',
    description: 'Asks for what there is not.',
    input: z.object({}),
    run: async (_, ctx) => {
      const asked = [ctx.emit('kind', null), ctx.model({ messages: [] }), ctx.environments.list()]
      const codes = (await Promise.allSettled(asked)).map((one) => one.status === 'rejected' && one.reason.code)
      return ctx.finish(codes)
    },
  })
  const placed = [lookup({ prefix: 'customer:' }), greedy()]
  const authorize = (request: Request): boolean => request.headers.get('authorization') === 'Bearer app-secret'
  const handlers: Record<string, (request: Request) => Promise<Response>> = {
    '/plain': createToolHandler({ tools: [plain()], authorize }),
    '/tools': createToolHandler({ tools: placed, authorize }),
  }
  const app = createServer((request, response) => {
    void (async () => {
      const body = await bodyOf(request)
      const web = new Request(`http://app${request.url}`, { method: 'POST', headers: request.headers as never, body })
      const answer = await handlers[request.url ?? '']?.(web)
      response.writeHead(answer?.status ?? 404).end(await answer?.text())
    })()
  })
  const endpoint = (path: string): string => `http://127.0.0.1:${(app.address() as AddressInfo).port}${path}`

  beforeAll(async () => {
    app.listen(0, '127.0.0.1')
    await once(app, 'listening')
    const { handle, callback } = createHttpEnvironment({
      authorize: ({ configuration }) =>
        'binding' in configuration
          ? { endpoint: endpoint('/plain'), token: 'app-secret', tools: ['plain'] }
          : { token: 'app-secret', tools: ['lookup', 'greedy'] },
      allowPrivateEndpoints: true,
      callbackUrl: () => `${bridge.url}/v1/callback`,
    })
    bridge = await serveEnvironment(handle, { token: 'bridge-secret', callback })
  })
  afterAll(async () => {
    await bridge.close()
    app.close()
  })

  const call = async (session: SessionHandle, name: string, input: object = {}) =>
    new TestSession(server, session.id, name).call(input, { wait: 'finished' })

  it('are ordinary declarations with options, checked output, emitResult and a durable finish', async () => {
    const env = application({
      name: 'app',
      url: bridge.url,
      endpoint: endpoint('/tools'),
      credential: 'bridge-secret',
    })
    const tools = placed.map((one) => applicationTool(one, { env }))
    const session = await brain.sessions.create({
      model: model({ tool_calls: [{ name: 'lookup', input: { id: '7' } }] }, { text: 'Found.' }),
      tools,
    })
    await session.send('Look it up')
    expect((await eventsOf(session, 'tool_result_emitted')).map(({ result }) => result)).toMatchObject([
      { output: { value: 'searching' }, content: 'Searching.' },
      { output: { value: 'customer:7' } },
    ])
    expect(await eventsOf(session, 'tool_call_ended')).toMatchObject([{ outcome: { status: 'ok' } }])
    expect((await call(session, 'greedy')).results).toMatchObject([{ output: Array(3).fill('unsupported') }])
  })

  it('of http() return plain JSON, in which no outcome is looked for; what may be called is told to who may ask', async () => {
    const env = http({ name: 'apps', url: bridge.url, token: 'bridge-secret', binding: 'shop' })
    const session = await brain.sessions.create({ model: model(), tools: [httpTool(plain(), { env })] })
    expect(await call(session, 'plain')).toMatchObject({
      outcome: { status: 'ok' },
      results: [{ output: { status: 'cancelled' }, is_error: false }],
    })
    expect(await session.environments.call({ name: 'apps', sequence: 1 }, 'inspect', {})).toEqual({
      tools: ['plain'],
      timeoutMs: 30_000,
    })
  })
})
