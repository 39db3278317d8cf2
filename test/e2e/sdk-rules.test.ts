import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, brainEnv, component, tool, type PlacedTool, type SessionHandle } from '../../src/sdk/index.ts'
import { ModelServer, responsesAnswer, stream } from '../support/model-server.ts'
import { fixture, startServer, TestSession, type TestServer } from '../support/server.ts'

// Rules of the seed that no other test shows. docs/seed-rules.md says which test shows which rule.

const model = (...script: object[]) => ({
  provider: 'scripted',
  name: 'script',
  apiKey: 'none',
  script: (script.length === 0 ? [{ text: 'done' }] : script) as never,
})

const probe = (run: (input: any, ctx: any) => unknown, schemas: object = {}): PlacedTool =>
  tool({ name: 'probe', description: 'Does what a test says.', input: z.object({}).loose(), run, ...schemas })()

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const forever = (): Promise<never> => new Promise(() => {})

describe.concurrent('an application tool', () => {
  let provider: ModelServer
  let server: TestServer
  /** Gives a call in a turn one second, which others must not depend on. */
  let hasty: TestServer
  let brain: Brain
  beforeAll(async () => {
    provider = await ModelServer.open()
    ;[server, hasty] = await Promise.all([
      startServer({ BRAIN_OPENAI_BASE_URL: provider.url }),
      startServer({ BRAIN_MAX_TOOL_SECS: '1' }),
    ])
    brain = new Brain({ baseUrl: server.url })
  })
  afterAll(async () => {
    await brain.close()
    await Promise.all([server[Symbol.asyncDispose](), hasty[Symbol.asyncDispose]()])
    await provider[Symbol.asyncDispose]()
  })

  const direct = (session: SessionHandle): TestSession => new TestSession(server, session.id, 'probe')
  const sessionOf = (...tools: PlacedTool[]): Promise<SessionHandle> => brain.sessions.create({ model: model(), tools })
  const outcomeOf = async (placed: PlacedTool, input: object = {}, deadlineMs?: number) =>
    direct(await sessionOf(placed)).call(input, { wait: 'finished', ...(deadlineMs !== undefined && { deadlineMs }) })
  const resultsOf = (events: readonly { type: string; data: any }[]): unknown[] =>
    events.filter(({ type }) => type === 'tool_result_emitted').map(({ data }) => data.result.output)

  it('runs in the process that declared it: same id, folder, environment and memory', async () => {
    const memory = new Set<string>()
    const { results } = await outcomeOf(
      probe((_, ctx) => {
        memory.add(ctx.sessionId)
        return ctx.finish({ pid: process.pid, cwd: process.cwd(), path: process.env['PATH'] ?? '' })
      }),
    )
    expect(results).toMatchObject([
      { output: { pid: process.pid, cwd: process.cwd(), path: process.env['PATH'] ?? '' } },
    ])
    expect(memory.size).toBe(1)
  })

  it('with a strict input schema is not called with more members', async () => {
    let runs = 0
    const run = (_: unknown, ctx: any) => ctx.finish(++runs)
    const refused = await outcomeOf(probe(run, { input: z.strictObject({ a: z.string() }) }), { a: 'x', b: 1 })
    expect(refused.outcome).toMatchObject({ status: 'error', error: { code: 'invalid_input' } })
    expect(runs).toBe(0)
  })

  it('gets what asynchronous checks, defaults and transforms of its input make', async () => {
    const text = z.string().refine(async (value) => Promise.resolve(value !== ''))
    const input = z.object({
      s: text.transform(async (value) => Promise.resolve(value.length)),
      d: z.number().default(3),
    })
    const run = (given: unknown, ctx: any) => ctx.finish(given)
    expect((await outcomeOf(probe(run, { input }), { s: 'four' })).results).toMatchObject([{ output: { s: 4, d: 3 } }])
    expect((await outcomeOf(probe(run, { input }), { s: '' })).outcome).toMatchObject({
      error: { code: 'invalid_input' },
    })
  })

  it('publishes nothing whose asynchronous check ends after the deadline', async () => {
    const output = z.number().refine(() => forever())
    const { outcome, results } = await outcomeOf(
      probe((_, ctx) => ctx.finish(1), { output }),
      {},
      100,
    )
    expect([outcome, results]).toEqual([{ status: 'timeout' }, []])
  })

  it('that returns nothing publishes nothing, shows what it emitted before, and goes on', async () => {
    const go = Promise.withResolvers<void>()
    const session = await sessionOf(
      probe(async (_, ctx) => {
        await ctx.emitResult('seen')
        void go.promise.then(async () => {
          await ctx.emit('later', {})
          await ctx.emitResult('later')
          await ctx.finish('last')
        })
      }),
    )
    expect(await direct(session).call({})).toMatchObject({ finished: false, results: [{ output: 'seen' }] })
    go.resolve()
    const events = []
    for await (const event of session.stream()) {
      events.push(event)
      if (event.type === 'tool_call_ended') break
    }
    expect(resultsOf(events)).toEqual(['seen', 'later', 'last'])
    expect(events.map(({ type }) => type)).toContain('later')
  })

  it('that awaits finish() and returns has no further result', async () => {
    const { outcome, results } = await outcomeOf(
      probe(async (_, ctx) => {
        await ctx.emitResult(1)
        await ctx.finish()
      }),
    )
    expect(outcome).toMatchObject({ status: 'ok' })
    expect(results).toMatchObject([{ output: 1 }])
  })

  it.each(['its deadline', 'a cancellation', 'the end of the connection'])(
    'that forgets to finish stays open until %s',
    async (what) => {
      await using own = new ClosedAtTheEnd(server.url)
      const session = await own.brain.sessions.create({ model: model(), tools: [probe(() => 'returned')] })
      const limit = what === 'its deadline' ? { deadlineMs: 1000 } : {}
      const call = direct(session).call({}, { wait: 'finished', ...limit })
      for await (const { type } of session.stream()) if (type === 'tool_call_returned') break
      if (what === 'a cancellation') await session.interrupt()
      if (what === 'the end of the connection') await own.brain.close()
      const status = { 'its deadline': 'timeout', 'a cancellation': 'cancelled' }[what] ?? 'unknown'
      expect(await call).toMatchObject({ outcome: { status }, results: [{ output: 'returned' }] })
    },
  )

  it.each<[string, object, object?]>([
    ['ok', { status: 'ok', value: 1 }, { results: [{ output: 1 }] }],
    ['error', { status: 'error', error: { code: 'x', message: 'y' } }],
    ['timeout', { status: 'timeout' }],
    ['cancelled', { status: 'cancelled' }],
    ['unknown', { status: 'unknown', message: 'who knows' }],
  ])('that gives an object of status %s gives an outcome', async (status, value, more = { results: [] }) => {
    const output = z.number()
    const finished = await outcomeOf(probe((_, ctx) => ctx.finish(value), { output }))
    expect(finished).toMatchObject({ outcome: { status }, ...more })
    const returned = await direct(await sessionOf(probe(() => value, { output }))).call({})
    expect(returned).toMatchObject({ finished: status !== 'ok', ...more })
  })

  it('whose output schema makes no JSON ends with invalid_output', async () => {
    const output = z
      .string()
      .transform((text) => ({ at: new Date(text) }))
      .pipe(z.any())
    expect((await outcomeOf(probe((_, ctx) => ctx.finish('2026-01-01'), { output }))).outcome).toMatchObject({
      status: 'error',
      error: { code: 'invalid_output' },
    })
  })

  it('has the sequence of its event, which stands before its result', async () => {
    const session = await sessionOf(
      probe(async (input, ctx) => {
        const sequence = await ctx.emit('import_started', { source: input.source })
        return ctx.finish({ eventSequence: sequence })
      }),
    )
    const { results } = await direct(session).call({ source: 'file' }, { wait: 'finished' })
    const events = await Array.fromAsync(session.events())
    const event = events.find(({ type }) => type === 'import_started')
    expect(event?.data).toEqual({ source: 'file' })
    expect(results).toMatchObject([{ output: { eventSequence: event?.sequence } }])
    const result = events.find(({ type }) => type === 'tool_result_emitted')
    expect(event?.sequence).toBeLessThan(result?.sequence ?? 0)
  })

  it('that ran into its deadline is a failed result in front of the model, and what it did stays done', async () => {
    await using own = new ClosedAtTheEnd(hasty.url)
    let done = 0
    const session = await own.brain.sessions.create({
      model: model({ tool_calls: [{ name: 'probe', input: {} }] }, { text: 'It took too long.' }),
      tools: [
        probe(() => {
          done++
          return forever()
        }),
      ],
    })
    await session.send('Go')
    const { messages } = await session.transcript()
    const blocks = messages.flatMap(({ content }) => content)
    expect(blocks.find(({ type }) => type === 'tool_result')).toMatchObject({ is_error: true })
    expect(messages.at(-1)?.content).toEqual([{ type: 'text', text: 'It took too long.' }])
    expect(done).toBe(1)
  })

  it('gives the model text for a result, a failed one too, without changing value, check or status', async () => {
    const content = 'In short.'
    const run = (input: any, ctx: any) => ctx.finish(input.value, { content })
    const of = (value: unknown) => outcomeOf(probe(run, { output: z.number() }), { value })
    expect((await of(7)).results).toMatchObject([{ output: 7, content, is_error: false }])
    expect((await of('seven')).outcome).toMatchObject({ error: { code: 'invalid_output' } })
    const error = { code: 'gone', message: 'It is gone', retryable: false }
    expect(await of({ status: 'error', error })).toMatchObject({
      outcome: { status: 'error', error },
      results: [{ is_error: true, content }],
    })
    const emitted = await outcomeOf(
      probe(async (_, ctx) => {
        await ctx.emitResult(8, { content })
        await ctx.finish()
      }),
    )
    expect(emitted.results).toMatchObject([{ output: 8, content }])
  })

  it('asks the model of the session, with its key and without its system prompt, tools and response format', async () => {
    provider.says(stream(responsesAnswer('A summary.')))
    const session = await brain.sessions.create({
      model: { provider: 'openai', name: 'gpt-of-the-session', apiKey: 'key-of-the-session' },
      system: 'Be kind.',
      responseFormat: { type: 'json_object' },
      tools: [
        probe(async (_, ctx) => {
          const { message } = await ctx.model({
            messages: [{ role: 'user', content: [{ type: 'text', text: 'Sum up' }] }],
          })
          return ctx.finish(message.content[0].text)
        }),
      ],
    })
    expect((await direct(session).call({}, { wait: 'finished' })).results).toMatchObject([{ output: 'A summary.' }])
    const [{ headers, body }] = provider.asked as [(typeof provider.asked)[0]]
    expect(headers.authorization).toBe('Bearer key-of-the-session')
    expect(body.model).toBe('gpt-of-the-session')
    expect(JSON.stringify(body)).toContain('Sum up')
    expect(JSON.stringify(body)).not.toMatch(/Be kind|json_object|probe/)
    const events = await Array.fromAsync(session.events())
    const asked = events.find(({ type }) => type === 'model_call_started')
    expect(asked).toMatchObject({ data: { system: '', tools: [] }, origin: { kind: 'tool' } })
    const answered = events.find(({ type }) => type === 'model_call_ended')
    expect(answered?.data).toMatchObject({ result: { usage: expect.anything() } })
    expect(answered?.sequence).toBeLessThan(events.find(({ type }) => type === 'tool_result_emitted')?.sequence ?? 0)
  })

  it.each(['ends', 'deletes'])('is let go by a client that %s its session', async (what) => {
    await using own = new ClosedAtTheEnd(server.url)
    const create = async () => {
      const placed = probe((_, ctx) => ctx.finish('here'))
      const session = await own.brain.sessions.create({ model: model(), tools: [placed] })
      expect(await direct(session).value({})).toBe('here')
      return { session, held: new WeakRef(placed) }
    }
    const { session, held } = await create()
    if (what === 'deletes') await server.post(`/v1/sessions/${session.id}/end`)
    collect()
    expect(held.deref()).toBeDefined()
    await (what === 'ends' ? session.end() : session.delete())
    await expect
      .poll(() => {
        collect()
        return held.deref() === undefined
      })
      .toBe(true)
  })

  it('whose descriptor the environment does not understand is refused, and no session is created', async () => {
    const described = tool({
      name: 'described',
      description: 'x',
      input: z.object({}),
      implementation: { type: 'http_json', method: 'GET', path: '/' },
    })
    const labels = { of: 'descriptors' }
    await expect(
      brain.sessions.create({ model: model(), labels, tools: [described({ env: brainEnv({ name: 'desk' }) })] }),
    ).rejects.toMatchObject({ name: 'BrainError', status: 400 })
    expect((await server.get('/v1/sessions?label=of:descriptors')).body.sessions).toEqual([])
  })

  it('of a session that the application ends is told to stop, and others of the connection go on', async () => {
    const requests: string[] = []
    await using own = new ClosedAtTheEnd(server.url, requests)
    const running = Promise.withResolvers<AbortSignal>()
    const twin = tool({ name: 'twin', description: 'x', input: z.object({}), run: (_, ctx) => ctx.finish('here') })
    const tools = [
      probe((_, ctx) => {
        running.resolve(ctx.signal)
        return forever()
      }),
      twin(),
    ]
    const [ending, staying] = await Promise.all([1, 2].map(() => own.brain.sessions.create({ model: model(), tools })))
    const call = direct(ending!).call({}, { wait: 'finished' })
    const signal = await running.promise
    await ending!.end()
    await expect.poll(() => signal.aborted).toBe(true)
    expect((await call).outcome).toMatchObject({ status: 'cancelled' })
    expect(await new TestSession(server, staying!.id, 'twin').value({})).toBe('here')
    expect(requests.filter((path) => path.endsWith('/commands'))).toHaveLength(1)
  })

  it('has after a restart what its new process gives it, not what it had in memory', async () => {
    const counter = () => {
      let count = 0
      return probe((_, ctx) => ctx.finish(++count))
    }
    await using first = new ClosedAtTheEnd(server.url)
    const session = await first.brain.sessions.create({ model: model(), tools: [counter()] })
    expect([await direct(session).value({}), await direct(session).value({})]).toEqual([1, 2])
    const credentials = await first.brain.credentials()
    await first.brain.close()
    await using second = new ClosedAtTheEnd(server.url, [], { credentials })
    const again = await second.brain.sessions.get(session.id, { tools: [counter()] })
    expect(await direct(again).value({})).toBe(1)
  })

  it('whose session cannot be created keeps no program alive that closes its client', async () => {
    const program = `
      import { Brain, tool } from ${JSON.stringify(new URL('../../src/sdk/index.ts', import.meta.url).href)}
      import { z } from 'zod'
      const brain = new Brain({ baseUrl: ${JSON.stringify(server.url)} })
      const noop = tool({ name: 'noop', description: 'Nothing', input: z.object({}), run: (_, ctx) => ctx.finish() })
      try {
        await brain.sessions.create({ model: { provider: 'nobody', name: 'x', apiKey: 'k' }, tools: [noop()] })
      } catch (error) {
        process.exitCode = error.name === 'BrainError' ? 7 : 8
      } finally {
        await brain.close()
      }`
    const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', program]
    expect(await once(spawn(process.execPath, flags), 'exit')).toEqual([7, null])
  })

  it('that is a component is uploaded when its first session is created, and once', async () => {
    const requests: string[] = []
    await using own = new ClosedAtTheEnd(server.url, requests)
    const uploads = (): number => requests.filter((path) => path === '/v1/tools').length
    const words = tool({
      name: 'wordcount',
      description: 'Counts words',
      input: z.object({ text: z.string() }),
      implementation: component(await fixture('wordcount')),
    })
    const placed = words({ env: brainEnv({ name: 'desk' }) })
    expect(uploads()).toBe(0)
    for (const _ of [1, 2]) await own.brain.sessions.create({ model: model(), tools: [placed] })
    expect(uploads()).toBe(1)
  })

  it('in an environment has all that this environment was granted, and nothing of another', async () => {
    const implementation = component(await fixture('files'))
    const named = (name: string) => tool({ name, description: 'x', input: z.object({}).loose(), implementation })
    const [desk, shelf] = (['write', 'read'] as const).map((workspace) =>
      brainEnv({ name: workspace, filesystem: { workspace } }),
    )
    const session = await brain.sessions.create({
      model: model(),
      tools: [named('one')({ env: desk! }), named('two')({ env: desk! }), named('three')({ env: shelf! })],
    })
    const call = (name: string, input: object) =>
      new TestSession(server, session.id, name).call(input, { wait: 'finished' })
    expect((await call('one', { op: 'put', path: 'a', text: 'x' })).outcome).toMatchObject({ status: 'ok' })
    expect((await call('two', { op: 'get', path: 'a' })).results).toMatchObject([{ output: { text: 'x' } }])
    expect((await call('three', { op: 'get', path: 'a' })).outcome).toMatchObject({ status: 'error' })
    expect((await call('three', { op: 'put', path: 'a', text: 'y' })).outcome).toMatchObject({ status: 'error' })
  })
})

/** A client of its own, which notes the paths that it asks for. */
class ClosedAtTheEnd {
  readonly brain: Brain

  constructor(baseUrl: string, requests: string[] = [], options: object = {}) {
    this.brain = new Brain({
      baseUrl,
      fetch: (url, init) => {
        requests.push(new URL(url).pathname)
        return fetch(url, init)
      },
      ...options,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.brain.close()
  }
}
