import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, hostEnv, tool, type BrainError, type PlacedTool, type SessionHandle } from '../../src/sdk/index.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'

const model = (...script: object[]) => ({
  provider: 'scripted',
  name: 'script',
  apiKey: 'none',
  script: (script.length === 0 ? [{ text: 'done' }] : script) as never,
})

const records = new Map([['customer:7', { value: 'Ada' }]])

/** The seed's first example, with a map for a database. */
const lookup = tool({
  name: 'lookup',
  description: 'Looks one record up.',
  input: z.object({ id: z.string() }),
  output: z.object({ value: z.string() }).nullable(),
  options: z.object({ prefix: z.string() }),
  run: async ({ id }, ctx) => {
    await ctx.emit('lookup_started', { id })
    return ctx.finish(records.get(`${ctx.options.prefix}${id}`) ?? null)
  },
})

describe('application tools', () => {
  let server: TestServer
  let brain: Brain
  const started = new Set<Brain>()

  beforeAll(async () => {
    server = await startServer()
    brain = client()
  })
  afterAll(async () => {
    for (const one of started) await one.close()
    await server[Symbol.asyncDispose]()
  })

  const client = (options: Partial<ConstructorParameters<typeof Brain>[0]> = {}): Brain => {
    const made = new Brain({ baseUrl: server.url, ...options })
    started.add(made)
    return made
  }
  const direct = (session: SessionHandle, name = 'probe'): TestSession => new TestSession(server, session.id, name)
  const probe = (run: (input: any, ctx: any) => unknown, output?: z.ZodType): PlacedTool =>
    tool({
      name: 'probe',
      description: 'Does what a test says.',
      input: z.object({}).loose(),
      run,
      ...(output && { output }),
    })()
  const sessionOf = (...tools: PlacedTool[]): Promise<SessionHandle> => brain.sessions.create({ model: model(), tools })
  /** Calls a tool of its own that does what a test says. */
  const outcomeOf = async (run: (input: any, ctx: any) => unknown, output?: z.ZodType, input: object = {}) => {
    const session = await sessionOf(probe(run, output))
    return direct(session).call(input, { wait: 'finished' })
  }

  it('run in the application, with options, events before results and null as a result (seed: Application functions)', async () => {
    const session = await brain.sessions.create({
      model: model({ tool_calls: [{ name: 'lookup', input: { id: '7' } }] }, { text: 'It is Ada.' }),
      tools: [lookup({ prefix: 'customer:' })],
    })
    await session.send('Who is 7?')
    const events = await Array.fromAsync(session.events())
    const call = events.find(({ type }) => type === 'tool_call_started')
    const ofTool = events.filter(({ origin }) => origin?.['sequence'] === call?.sequence && origin?.kind === 'tool')
    expect(ofTool.map(({ type }) => type)).toEqual(['lookup_started', 'tool_result_emitted', 'tool_call_ended'])
    expect(ofTool[1]?.data).toMatchObject({ result: { output: { value: 'Ada' }, is_error: false } })
    expect(await direct(session, 'lookup').value({ id: '8' })).toBe(null)
  })

  it('are placed in a named host, and in the default host beside it', async () => {
    const session = await sessionOf(
      lookup({ env: hostEnv({ name: 'brain-sdk-host' }), prefix: 'customer:' }),
      probe((_, ctx) => ctx.finish(1)),
    )
    expect(await direct(session, 'lookup').value({ id: '7' })).toEqual({ value: 'Ada' })
    expect(await direct(session).value({})).toBe(1)
    const [created] = await Array.fromAsync(session.events())
    const { environments } = created!.data as any
    expect(environments).toMatchObject([
      { name: 'brain-sdk-host' },
      { name: 'brain-sdk-host-1', configuration: { sdk_default: true } },
    ])
  })

  it('get parsed input, and never what the schema refuses (cases D-22)', async () => {
    const seen: unknown[] = []
    const length = z.string().transform((text) => text.length)
    const d22 = tool({
      name: 'probe',
      description: 'Shows its input.',
      input: z.object({
        s: length.default(5),
        p: z.string().default('x'),
        f: length.prefault('hello'),
        q: z.coerce.number(),
        o: z.string().optional(),
      }),
      run: (input, ctx) => {
        seen.push(input)
        return ctx.finish()
      },
    })
    const session = await sessionOf(d22())
    for (const input of [{ q: '7' }, { s: 'abc', q: 7, extra: 1 }])
      await direct(session).call(input, { wait: 'finished' })
    expect(seen).toEqual([
      { s: 5, p: 'x', f: 5, q: 7 },
      { s: 3, p: 'x', f: 5, q: 7 },
    ])
    const refused = await direct(session).call({ s: 5, q: 7 }, { wait: 'finished' })
    expect(refused.outcome).toMatchObject({ status: 'error', error: { code: 'invalid_input' } })
    // The schema says nothing of what q must be; Zod does.
    const wrong = await direct(session).call({ q: 'x' }, { wait: 'finished' })
    expect(wrong.outcome).toMatchObject({ status: 'error', error: { code: 'invalid_input' } })
    expect(seen).toHaveLength(2)
  })

  describe('end as they say (seed: Return values and outcomes)', () => {
    it('with structured errors that keep their members', async () => {
      const error = { code: 'gone', message: 'It is gone', retryable: true, details: { id: 7 } }
      const finished = await outcomeOf((_, ctx) => ctx.finish({ status: 'error', error }), z.string())
      expect(finished.outcome).toEqual({ status: 'error', error })
      const returned = await outcomeOf(() => ({ status: 'error', error }), z.string())
      expect(returned.outcome).toEqual({ status: 'error', error })
    })

    it.each(['timeout', 'cancelled'])('with the outcome %s', async (status) => {
      expect((await outcomeOf((_, ctx) => ctx.finish({ status }))).outcome).toEqual({ status })
    })

    it('with what was thrown as tool_error', async () => {
      const { outcome } = await outcomeOf(() => {
        throw new Error('no luck')
      })
      expect(outcome).toMatchObject({ status: 'error', error: { code: 'tool_error', message: 'no luck' } })
    })

    it('with nothing for finish(), null for finish(null)', async () => {
      expect(await outcomeOf((_, ctx) => ctx.finish())).toMatchObject({ outcome: { status: 'ok' }, results: [] })
      expect((await outcomeOf((_, ctx) => ctx.finish(undefined))).results).toEqual([])
      expect((await outcomeOf((_, ctx) => ctx.finish(null))).results).toMatchObject([{ output: null }])
    })

    it('with an explicit ok value that is never looked at, and other statuses as data', async () => {
      const data = { status: 'error', note: 'of the business' }
      const explicit = await outcomeOf((_, ctx) => ctx.finish({ status: 'ok', value: data }))
      expect(explicit.results).toMatchObject([{ output: data, is_error: false }])
      expect((await outcomeOf((_, ctx) => ctx.finish({ status: 'open' }))).results).toMatchObject([
        { output: { status: 'open' } },
      ])
    })

    it.each<[string, unknown]>([
      ['ok without value', { status: 'ok' }],
      ['error without message', { status: 'error', error: { code: 'x' } }],
      ['an unknown member', { status: 'timeout', after: 3 }],
      ['undefined inside', { a: [undefined] }],
      ['NaN', { a: NaN }],
      ['a BigInt', 1n],
      ['a Date', { at: new Date() }],
      ['a Date in an ok value', { status: 'ok', value: { at: new Date() } }],
      ['a Map', new Map()],
    ])('with invalid_output for %s', async (_name, value) => {
      expect((await outcomeOf((_, ctx) => ctx.finish(value))).outcome).toMatchObject({
        status: 'error',
        error: { code: 'invalid_output' },
      })
    })

    it('with invalid_output for what the output schema refuses, and with what it makes of the rest', async () => {
      const output = z.object({
        n: z.number().default(3),
        s: z
          .string()
          .transform(async (text) => text.length)
          .pipe(z.number()),
      })
      expect((await outcomeOf((_, ctx) => ctx.finish({ s: 'four', more: 1 }), output)).results).toMatchObject([
        { output: { n: 3, s: 4 } },
      ])
      expect((await outcomeOf((_, ctx) => ctx.finish({ s: 4 }), output)).outcome).toMatchObject({
        error: { code: 'invalid_output' },
      })
      expect((await outcomeOf(() => ({ s: 4 }), output)).outcome).toMatchObject({ error: { code: 'invalid_output' } })
      expect(
        (await outcomeOf((_, ctx) => ctx.finish({ status: 'ok', value: { s: 4 } }), output)).outcome,
      ).toMatchObject({ error: { code: 'invalid_output' } })
    })

    it('after everything that was emitted before, awaited or not, and before nothing else', async () => {
      const late: unknown[] = []
      const { events } = await outcomeOf(async (_, ctx) => {
        void ctx.emit('one', {})
        void ctx.emitResult('two')
        void ctx.emit('three', {})
        const finishing = ctx.finish('four', { content: 'The fourth' })
        for (const again of [ctx.emit('five', {}), ctx.emitResult(6), ctx.finish(7), ctx.model({ messages: [] })])
          late.push(await again.catch((error: unknown) => error))
        return finishing
      })
      expect(events.map(({ event_type, data }: any) => data?.result?.output ?? event_type)).toEqual([
        'one',
        'two',
        'three',
        'four',
        'tool_call_ended',
      ])
      expect(events.find(({ data }: any) => data?.result?.output === 'four')?.data).toMatchObject({
        result: { content: 'The fourth' },
      })
      for (const error of late)
        expect(error).toMatchObject({ name: 'BrainError', message: expect.stringContaining('is finished') })
    })

    it('later than they return: return publishes, finish ends (seed: background tools)', async () => {
      const go = Promise.withResolvers<void>()
      const session = await sessionOf(
        probe((_, ctx) => {
          void go.promise.then(async () => {
            await ctx.emitResult('later')
            await ctx.finish()
          })
          return 'now'
        }),
      )
      const answer = await direct(session).call({})
      expect(answer).toMatchObject({ finished: false, results: [{ output: 'now' }] })
      go.resolve()
      await followUntil(session, 'tool_call_ended')
      const results = (await Array.fromAsync(session.events())).filter(({ type }) => type === 'tool_result_emitted')
      expect(results.map(({ data }: any) => data.result.output)).toEqual(['now', 'later'])
    })

    it('when a refused event or result leaves them open', async () => {
      const { outcome, results } = await outcomeOf(async (_, ctx) => {
        const refused = await ctx.emit('turn_started', {}).catch((error: BrainError) => error.status)
        const wrong = await ctx.emitResult(3).catch((error: BrainError) => error.code)
        return ctx.finish(`${refused} ${wrong}`)
      }, z.string())
      expect(outcome).toMatchObject({ status: 'ok' })
      expect(results).toMatchObject([{ output: '400 invalid_output' }])
    })
  })

  describe('know their call (seed: Context)', () => {
    it('by session, sequence, deadline and frozen options', async () => {
      const session = await sessionOf(
        tool({
          name: 'probe',
          description: 'Shows its context',
          input: z.object({}),
          options: z.object({ list: z.array(z.number()) }),
          run: (_input, { sessionId, sequence, deadline, options, signal, finish }) =>
            finish({
              sessionId,
              sequence,
              deadline: deadline?.getTime(),
              frozen: Object.isFrozen(options.list),
              aborted: signal.aborted,
            }),
        })({ list: [1] }),
      )
      const before = Date.now()
      const answer = await direct(session).call({}, { wait: 'finished', deadlineMs: 50_000 })
      const { deadline, ...shown } = answer.results[0]!.output as any
      expect(shown).toEqual({ sessionId: session.id, sequence: answer.sequence, frozen: true, aborted: false })
      expect(deadline).toBeGreaterThan(before + 45_000)
      expect(deadline).toBeLessThan(before + 60_000)
    })

    it('and ask the model beside the conversation (seed: independent model calls)', async () => {
      const session = await brain.sessions.create({
        model: model({ text: 'A summary.' }),
        tools: [
          probe(async (_, ctx) => {
            const { message } = await ctx.model({
              messages: [{ role: 'user', content: [{ type: 'text', text: 'Sum up' }] }],
            })
            return ctx.finish({ full: 'document' }, { content: message.content[0].text })
          }),
        ],
      })
      expect((await direct(session).call({}, { wait: 'finished' })).results).toMatchObject([
        { output: { full: 'document' }, content: 'A summary.' },
      ])
      expect((await session.transcript()).messages).toEqual([])
    })

    it('and reach the control of environments, as far as the server grants it', async () => {
      const { results } = await outcomeOf(async (_, ctx) =>
        ctx.finish(await ctx.environments.list().catch((error: BrainError) => error.status)),
      )
      expect(results).toHaveLength(1)
    })
  })

  describe('stop (cases D-30)', () => {
    it('at the deadline, whatever they do later', async () => {
      const late = Promise.withResolvers<unknown[]>()
      const session = await sessionOf(
        probe(async (_, ctx) => {
          await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
          const all = await Promise.allSettled([ctx.finish('late'), ctx.emit('late', {}), ctx.emitResult(1)])
          late.resolve([ctx.signal.reason.name, ...all.map(({ status }) => status)])
          throw new Error('late')
        }),
      )
      const { outcome, sequence } = await direct(session).call({}, { wait: 'finished', deadlineMs: 150 })
      expect(outcome).toMatchObject({ status: 'timeout' })
      expect(await late.promise).toEqual(['TimeoutError', 'rejected', 'rejected', 'rejected'])
      const ends = (await direct(session).records()).filter(
        ({ event_type, data }: any) => event_type === 'tool_call_ended' && data.sequence === sequence,
      )
      expect(ends).toHaveLength(1)
    })

    it('while async validation takes too long', async () => {
      let runs = 0
      const slow = tool({
        name: 'probe',
        description: 'x',
        input: z.object({ a: z.string().refine(() => sleep(3000).then(() => true)) }),
        run: (_, ctx) => {
          runs++
          return ctx.finish()
        },
      })
      const { outcome } = await direct(await sessionOf(slow())).call({ a: 'x' }, { wait: 'finished', deadlineMs: 100 })
      expect(outcome).toMatchObject({ status: 'timeout' })
      expect(runs).toBe(0)
    })

    it('when the session is interrupted, and hear of it once', async () => {
      let aborts = 0
      const running = Promise.withResolvers<void>()
      const session = await sessionOf(
        probe((_, ctx) => {
          ctx.signal.addEventListener('abort', () => aborts++)
          running.resolve()
          return new Promise(() => {})
        }),
      )
      const answer = direct(session).call({}, { wait: 'finished' })
      await running.promise
      await session.interrupt()
      expect((await answer).outcome).toMatchObject({ status: 'cancelled' })
      await until(() => aborts === 1)
    })

    it.each([0, 2])('when the message that led to them is given up, after %i streams that were cut', async (cuts) => {
      let left = cuts
      const cutting = client({
        fetch: async (url, init) => {
          const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream' && url.includes('/events')
          if (!isStream || left-- <= 0) return fetch(url, init)
          if (left === 0) throw new TypeError('fetch failed')
          return new Response(': cut\n\n')
        },
      })
      const running = Promise.withResolvers<void>()
      const session = await cutting.sessions.create({
        model: model({ tool_calls: [{ name: 'probe', input: {} }] }, { text: 'never' }),
        tools: [
          probe(() => {
            running.resolve()
            return new Promise(() => {})
          }),
        ],
      })
      const stop = new AbortController()
      const sent = session.send('Go', { signal: stop.signal })
      await running.promise
      stop.abort()
      expect(await sent).toMatchObject({ status: 'idle' })
      const types = (await Array.fromAsync(session.events())).map(({ type }) => type)
      expect(types.filter((type) => type === 'session_interrupted')).toHaveLength(1)
      expect(types.at(-1)).toBe('turn_failed')
    })
  })

  describe('share one connection (seed: The host)', () => {
    it('of all sessions and tools of a client, until it is closed', async () => {
      const asked: string[] = []
      const one = client({
        fetch: (url, init) => {
          asked.push(`${init?.method} ${new URL(url).pathname.replace(/host_\w+/, 'ID')}`)
          return fetch(url, init)
        },
      })
      const tools = [probe((_, ctx) => ctx.finish('ok'))]
      const sessions = await Promise.all([1, 2, 3].map(() => one.sessions.create({ model: model(), tools })))
      await sessions[0]?.end()
      expect(await direct(sessions[1]!).value({})).toBe('ok')
      expect(asked.filter((request) => request === 'POST /v1/hosts')).toHaveLength(1)
      expect(asked.filter((request) => request === 'GET /v1/hosts/ID/commands')).toHaveLength(1)
      expect(asked.indexOf('GET /v1/hosts/ID/commands')).toBeLessThan(asked.indexOf('POST /v1/sessions'))
      await one.close()
      const ends = asked.filter((request) => /\/(cancel|end)$|^DELETE/.test(request))
      expect(ends, 'closing ends no session').toEqual([`POST /v1/sessions/${sessions[0]?.id}/end`])
      expect((await brain.sessions.get(sessions[1]!.id)).state.status).toBe('idle')
      const lost = await direct(sessions[2]!).call({}, { wait: 'finished' })
      expect(lost.outcome).toMatchObject({ status: 'error', error: { code: 'executor_failed' } })
    })

    it('and come back after it broke, without a replay', async () => {
      const cut: AbortController[] = []
      const one = client({
        fetch: (url, init) => {
          if (!url.endsWith('/commands')) return fetch(url, init)
          const controller = new AbortController()
          cut.push(controller)
          return fetch(url, { ...init, signal: AbortSignal.any([controller.signal, init!.signal!]) })
        },
      })
      let runs = 0
      const reasons: string[] = []
      const session = await one.sessions.create({
        model: model(),
        tools: [
          probe((input, ctx) => {
            runs++
            ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason.message))
            return input.wait === true ? new Promise(() => {}) : ctx.finish('here')
          }),
        ],
      })
      const lost = direct(session).call({ wait: true }, { wait: 'finished' })
      await until(() => runs === 1)
      cut[0]?.abort()
      expect((await lost).outcome).toMatchObject({ status: 'unknown' })
      await until(() => cut.length === 2)
      await until(async () => (await direct(session).call({}, { wait: 'finished' })).outcome?.status === 'ok')
      expect(reasons).toEqual(['The connection to the server was lost'])
    })

    it('and are refused before anything is created when there is no connection', async () => {
      const asked: string[] = []
      const one = client({
        credentials: { hostId: `host_${'0'.repeat(32)}`, token: 'bht_x' },
        fetch: (url, init) => {
          asked.push(new URL(url).pathname)
          return fetch(url, init)
        },
      })
      await expect(one.sessions.create({ model: model(), tools: [probe(() => {})] })).rejects.toMatchObject({
        status: 404,
      })
      expect(asked.some((path) => path === '/v1/sessions')).toBe(false)
    })
  })

  it('are given up with the client: nothing late is published, and nothing hangs', async () => {
    const posting = Promise.withResolvers<void>()
    const one = client({
      fetch: (url, init) => {
        if (init?.method !== 'POST' || !url.endsWith('/events')) return fetch(url, init)
        posting.resolve()
        return new Promise((_, reject) =>
          init.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)),
        )
      },
    })
    const release = Promise.withResolvers<void>()
    const emitted = Promise.withResolvers<string>()
    const running = Promise.withResolvers<AbortSignal>()
    const late = Promise.withResolvers<unknown>()
    const session = await one.sessions.create({
      model: model(),
      tools: [
        probe(async (_, ctx) => {
          running.resolve(ctx.signal)
          ctx.emit('never_taken', {}).catch((error: Error) => emitted.resolve(error.name))
          await release.promise
          late.resolve(await ctx.finish('late').catch((error: Error) => error.message))
        }),
      ],
    })
    const call = direct(session).call({}, { wait: 'finished' })
    const signal = await running.promise
    await posting.promise
    await one.close()
    expect(await emitted.promise).toMatch(/^(AbortError|BrainError)$/)
    expect(signal.reason).toMatchObject({ name: 'AbortError', message: 'The client was closed' })
    expect((await call).outcome).toMatchObject({ status: 'unknown' })
    release.resolve()
    expect(await late.promise).toContain('is finished')
    await expect(one.sessions.create({ model: model(), tools: [probe(() => {})] })).rejects.toMatchObject({
      name: 'AbortError',
    })
  })

  it('are called for a session whose creation is not answered yet, and say so when it is not theirs', async () => {
    const answered = Promise.withResolvers<void>()
    const made = Promise.withResolvers<string>()
    const one = client({
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        if (!url.endsWith('/v1/sessions')) return response
        made.resolve(((await response.clone().json()) as { session_id: string }).session_id)
        await answered.promise
        return response
      },
    })
    const creating = one.sessions.create({ model: model(), tools: [probe((_, ctx) => ctx.finish('early'))] })
    const early = new TestSession(server, await made.promise, 'probe')
    const call = early.call({}, { wait: 'finished' })
    await until(async () => (await early.records()).some(({ event_type }) => event_type === 'tool_call_started'))
    answered.resolve()
    expect((await call).results).toMatchObject([{ output: 'early' }])
    const credentials = await one.credentials()
    const { id } = await creating
    await one.close()
    const other = client({ credentials })
    await other.sessions.create({ model: model(), tools: [probe((_, ctx) => ctx.finish('other'))] })
    const stranger = await new TestSession(server, id, 'probe').call({}, { wait: 'finished' })
    expect(stranger.outcome).toMatchObject({ status: 'error', error: { code: 'unknown_session' } })
  })

  it('are created once under a key: the same host, the same body, and a call that runs is still theirs', async () => {
    const bodies: unknown[] = []
    let registrations = 0
    const one = client({
      fetch: (url, init) => {
        if (url.endsWith('/v1/hosts')) registrations++
        if (url.endsWith('/v1/sessions')) bodies.push(init?.body)
        return fetch(url, init)
      },
    })
    const running = Promise.withResolvers<AbortSignal>()
    const tools = [
      probe((_, ctx) => {
        running.resolve(ctx.signal)
        return new Promise(() => {})
      }),
    ]
    const create = () => one.sessions.create({ model: model(), tools }, { idempotencyKey: 'one-of-a-kind' })
    const session = await create()
    const call = session.call('probe', {}, { wait: 'finished' })
    const signal = await running.promise
    const again = await create()
    expect(again.id).toBe(session.id)
    expect([bodies.length, new Set(bodies).size, registrations]).toEqual([2, 1, 1])
    await again.interrupt()
    expect((await call).outcome).toMatchObject({ status: 'cancelled' })
    await until(() => signal.aborted)
  })

  it('create nothing when the client is closed while it connects', async () => {
    const asked: string[] = []
    const connecting = Promise.withResolvers<void>()
    const one = client({
      fetch: (url, init) => {
        asked.push(new URL(url).pathname)
        if (!url.endsWith('/commands')) return fetch(url, init)
        connecting.resolve()
        return new Promise((_, reject) =>
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)),
        )
      },
    })
    const creating = one.sessions.create({ model: model(), tools: [probe(() => {})] })
    await connecting.promise
    await one.close()
    await expect(creating).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked).not.toContain('/v1/sessions')
  })

  it('come back to their sessions after a restart of the application (seed: Reattaching after restart)', async () => {
    const first = client()
    const session = await first.sessions.create({
      model: model(),
      tools: [lookup({ prefix: 'none:' }), lookup({ env: hostEnv({ name: 'app' }), prefix: 'none:' })],
    })
    const credentials = await first.credentials()
    expect(Object.isFrozen(credentials)).toBe(true)
    await first.close()

    let registrations = 0
    const second = client({
      credentials,
      fetch: (url, init) => {
        if (url.endsWith('/v1/hosts')) registrations++
        return fetch(url, init)
      },
    })
    const placed = [lookup({ prefix: 'customer:' }), lookup({ env: hostEnv({ name: 'app' }), prefix: 'customer:' })]
    const other = tool({ name: 'lookup', description: 'x', input: z.object({ id: z.number() }), run: () => {} })
    await expect(second.sessions.get(session.id, { tools: [placed[0]!] })).rejects.toThrow(
      'tools are missing: "lookup"',
    )
    await expect(second.sessions.get(session.id, { tools: [...placed, placed[0]!] })).rejects.toThrow('given twice')
    await expect(second.sessions.get(session.id, { tools: [other(), placed[1]!] })).rejects.toThrow('other schemas')
    await expect(brain.sessions.get(session.id, { tools: placed })).rejects.toThrow('give the client the credentials')
    const again = await second.sessions.get(session.id, { tools: placed })
    const answer = await server.post(`/v1/sessions/${again.id}/tools/lookup/calls?wait=finished`, {
      input: { id: '7' },
      environment: 'app',
    })
    expect(answer.body).toMatchObject({ results: [{ output: { value: 'Ada' } }] })
    // A handle alone has no functions, and a session of another client is none of ours.
    expect((await second.sessions.get(session.id)).state).toMatchObject({ status: 'idle' })
    expect(registrations).toBe(0)
  })

  it('rest when nothing is to do, if the client wants that, and come back for the next message', async () => {
    const asked: string[] = []
    const one = client({
      connectionIdleTimeoutMs: 50,
      fetch: (url, init) => {
        asked.push(new URL(url).pathname.split('/').at(-1) ?? '')
        return fetch(url, init)
      },
    })
    const session = await one.sessions.create({
      model: model({ tool_calls: [{ name: 'probe', input: {} }] }, { text: 'ok' }),
      tools: [probe((_, ctx) => ctx.finish('ok'))],
    })
    const count = (what: string): number => asked.filter((path) => path === what).length
    await until(() => count('suspend') === 1)
    await sleep(200)
    await session.transcript()
    expect(count('commands')).toBe(1)
    await session.send('Go')
    expect(count('commands')).toBe(2)
    const events = await Array.fromAsync(session.events())
    expect(events.find(({ type }) => type === 'tool_result_emitted')?.data).toMatchObject({ result: { output: 'ok' } })
  })

  it('rest also when the end of the connection is seen before the answer that allows it', async () => {
    const asked: string[] = []
    const one = client({
      connectionIdleTimeoutMs: 50,
      fetch: async (url, init) => {
        const path = new URL(url).pathname.split('/').at(-1) ?? ''
        asked.push(path)
        const response = await fetch(url, init)
        if (path === 'suspend') await sleep(300)
        return response
      },
    })
    const session = await one.sessions.create({
      model: model({ tool_calls: [{ name: 'probe', input: {} }] }, { text: 'ok' }),
      tools: [probe((_, ctx) => ctx.finish('ok'))],
    })
    const count = (what: string): number => asked.filter((path) => path === what).length
    await until(() => count('suspend') === 1)
    await sleep(600)
    expect(count('commands')).toBe(1)
    await session.send('Go')
    expect(count('commands')).toBe(2)
    const events = await Array.fromAsync(session.events())
    expect(events.find(({ type }) => type === 'tool_result_emitted')?.data).toMatchObject({ result: { output: 'ok' } })
  })
})

describe('a program', () => {
  it('ends by itself while its connection rests, and not before it is closed otherwise', async () => {
    await using server = await startServer()
    const program = `
      import { Brain, tool } from ${JSON.stringify(new URL('../../src/sdk/index.ts', import.meta.url).href)}
      import { z } from 'zod'
      const brain = new Brain({ baseUrl: ${JSON.stringify(server.url)}, connectionIdleTimeoutMs: 100 })
      const noop = tool({ name: 'noop', description: 'Nothing', input: z.object({}), run: (_, ctx) => ctx.finish() })
      await brain.sessions.create({ model: ${JSON.stringify(model())}, tools: [noop()] })
      console.log('created')`
    const start = (text: string): ChildProcess =>
      spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', text])
    const resting = start(program)
    expect(await once(resting, 'exit')).toEqual([0, null])
    const open = start(program.replace('100 }', '0 }'))
    const exited = once(open, 'exit')
    for await (const chunk of open.stdout ?? []) if (String(chunk).includes('created')) break
    await sleep(500)
    expect(open.exitCode).toBe(null)
    open.kill()
    expect(await exited).toEqual([null, 'SIGTERM'])
  })
})

async function followUntil(session: SessionHandle, type: string): Promise<void> {
  for await (const event of session.stream()) if (event.type === type) return
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 500; round++) {
    if (await isSo()) return
    await sleep(10)
  }
  throw new Error('it did not come to that')
}
