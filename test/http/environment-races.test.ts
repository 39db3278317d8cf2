import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalRecord } from '../../src/journal/record.ts'
import { type Called, EnvironmentController, useCallback } from '../support/environment-controller.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { startServer, TestSession, type Response, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ BRAIN_MAX_ACTIVATION_BYTES: '300000' })
})
afterAll(() => server[Symbol.asyncDispose]())

const OBJECT = { type: 'object' }
const METHODS = {
  echo: { description: 'gives back', input_schema: OBJECT },
  reset: { description: 'starts anew', input_schema: OBJECT, effect: 'replace' },
}

const elsewhere = (controller: EnvironmentController, name: string, more: object = {}): object => ({
  name,
  driver: 'http',
  url: controller.url,
  lifecycle: 'automatic',
  methods: METHODS,
  ...more,
})

const toolIn = (...places: string[]): object => ({
  name: 'work',
  description: 'works',
  input_schema: OBJECT,
  placements: Object.fromEntries(places.map((place) => [place, { implementation: { type: 'x' } }])),
})

const create = (request: object, script: unknown = [{ text: 'done' }]): Promise<Response> =>
  server.post('/v1/sessions', {
    model: { provider: 'scripted', name: 'script', api_key: 'secret-model-key', script },
    ...request,
  })

async function opened(request: object, script?: unknown): Promise<TestSession> {
  const { status, body } = await create(request, script)
  if (status !== 200) throw new Error(`no session: ${status} ${body.message}`)
  return new TestSession(server, body.session_id as string, 'work')
}

const control = (session: TestSession, request: object): Promise<Response> =>
  server.post(`${session.path}/environments`, request, { key: randomUUID() })

const kindsOf = (records: readonly JournalRecord[]): string[] => records.map(({ event_type: kind }) => kind)

const first = (name: string): object => ({ name, sequence: 1 })

const act = (session: TestSession, operation: string, name: string, more: object = {}): Promise<Response> =>
  control(session, { operation, environment: first(name), ...more })

const call = (session: TestSession, name: string, method: string): Promise<Response> =>
  act(session, 'call', name, { method, input: {} })

/** What was asked of a controller, in order. */
const asked = ({ operations }: EnvironmentController): string[] =>
  operations.map(({ request, environment }) => `${request.type} ${environment}`)

const sessionOf = ({ session_id: id }: { readonly session_id: string }): TestSession =>
  new TestSession(server, id, 'work')

describe.concurrent('a session that is being created', () => {
  it('sets up each of its environments once, whoever asks meanwhile', async () => {
    await using controller = await EnvironmentController.listen()
    const gate = Promise.withResolvers<void>()
    controller.answer = async ({ environment }) => {
      if (environment === 'one') await gate.promise
      return { type: 'accepted' }
    }
    const creating = create({ environments: ['one', 'two'].map((name) => elsewhere(controller, name)) })
    const session = sessionOf(await controller.operation('setup'))
    expect((await act(session, 'setup', 'two')).status).toBe(409)
    expect((await act(session, 'delete', 'two')).status).toBe(409)
    expect((await act(session, 'update', 'two', { configuration: 1 })).status).toBe(409)
    expect((await act(session, 'get', 'two')).body.state).toBe('declared')
    gate.resolve()
    expect((await creating).status).toBe(200)
    expect(asked(controller)).toEqual(['setup one', 'setup two'])
  })

  it('is ended when it has been made, and not before', async () => {
    await using controller = await EnvironmentController.listen()
    const gate = Promise.withResolvers<void>()
    controller.answer = async () => {
      await gate.promise
      return { type: 'accepted' }
    }
    const creating = create({ environments: [elsewhere(controller, 'one')] })
    const session = sessionOf(await controller.operation('setup'))
    expect(await server.post(`${session.path}/end`)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    gate.resolve()
    expect((await creating).status).toBe(200)
    expect((await server.post(`${session.path}/end`)).body.status).toBe('ended')
    expectSoundJournal(await session.records())
  })

  it('and fails says why, and gives up everything it had, also where giving up fails; only then can it be deleted', async () => {
    await using controller = await EnvironmentController.listen()
    const gate = Promise.withResolvers<void>()
    const attempts = new Map<string, number>()
    controller.answer = async ({ environment, request }) => {
      if (request.type === 'setup')
        return environment === 'three'
          ? { type: 'failure', code: 'no_room', message: 'full', retryable: false }
          : { type: 'accepted' }
      attempts.set(environment, (attempts.get(environment) ?? 0) + 1)
      await gate.promise
      return environment === 'two' && attempts.get(environment) === 1 ? { status: 500, body: '' } : { type: 'accepted' }
    }
    const creating = create({ environments: ['one', 'two', 'three'].map((name) => elsewhere(controller, name)) })
    const session = sessionOf(await controller.operation('teardown'))
    const deleting = server.request('DELETE', session.path)
    gate.resolve()
    expect(await creating).toMatchObject({ status: 500, body: { code: 'no_room' } })
    expect((await deleting).status).toBe(204)
    expect(asked(controller).slice(3)).toEqual(['teardown two', 'teardown one', 'teardown two'])
  })
})

describe.concurrent('a session that is over', () => {
  it('takes no reports any more, and wakes nobody', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened({ environments: [elsewhere(controller, 'one')] })
    const { reporter = expect.unreachable() } = await controller.operation('setup')
    await server.post(`${session.path}/end`)
    expect((await useCallback(reporter, { type: 'event', event_type: 'late', data: 1 })).status).toBe(404)
    expect(kindsOf(await session.records()).at(-1)).toBe('session_ended')
  })

  it('may be told what became of a teardown that is in doubt', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened({ environments: [elsewhere(controller, 'one')] })
    const { reporter = expect.unreachable() } = await controller.operation('setup')
    await server.post(`${session.path}/end`)
    controller.answer = () => ({ status: 500, body: '' })
    expect((await server.request('DELETE', session.path)).body.code).toBe('ambiguous')
    const { sequence } = await controller.operation('teardown')
    const observation = { scope: 'operation', sequence, resolution: { status: 'deleted' } }
    expect((await useCallback(reporter, { type: 'result', output: { observation } })).status).toBe(200)
    expectSoundJournal(await session.records())
    expect((await server.request('DELETE', session.path)).status).toBe(204)
    expect(asked(controller)).toEqual(['setup one', 'detach one', 'teardown one'])
  })

  it('gives controllers nothing new', async () => {
    await using controller = await EnvironmentController.listen()
    const answers: number[] = []
    controller.answer = async ({ request, context = expect.unreachable(), environment }) => {
      if (environment !== 'boss' || request.type === 'setup') return { type: 'accepted' }
      const make = { operation: 'create', template: 'mould', name: 'made', configuration: {} }
      for (const input of [make, { operation: 'setup', environment: first('mould') }, { operation: 'list' }])
        answers.push((await useCallback(context, { method: 'environments', input })).status)
      return { type: 'accepted' }
    }
    const template = { max_instances: 5, configuration_schema: OBJECT }
    const grant = { environment: 'mould', permissions: ['read', 'create', 'setup'] }
    const environments = [
      elsewhere(controller, 'boss', { environments: [grant] }),
      elsewhere(controller, 'mould', { lifecycle: 'manual', template }),
    ]
    const session = await opened({ environments })
    await server.post(`${session.path}/end`)
    await server.request('DELETE', session.path)
    expect(answers).toEqual([400, 400, 200, 400, 400, 200])
    expect(asked(controller)).toEqual(['setup boss', 'detach boss', 'teardown boss'])
  })
})

describe.concurrent('the workspace of a brain environment', () => {
  /** What the data directory holds of a session's files. */
  async function filesOf({ id }: TestSession): Promise<string[]> {
    const directory = join(server.directory, 'data/native-workspaces', id)
    const paths = await readdir(directory, { recursive: true }).catch(() => [])
    return paths.filter((path) => path.endsWith('note.txt'))
  }

  it('is gone with its session, also when the environment was never set up', async () => {
    const session = await opened({ environments: [{ name: 'box', driver: 'brain', lifecycle: 'manual' }] })
    expect((await session.put('note.txt', 'kept')).status).toBe(200)
    expect(await filesOf(session)).toHaveLength(1)
    await server.post(`${session.path}/end`)
    expect((await server.request('DELETE', session.path)).status).toBe(204)
    expect(await filesOf(session)).toEqual([])
  })

  it('is not made anew when the environment was deleted', async () => {
    const session = await opened({ environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic' }] })
    await session.put('note.txt', 'kept')
    expect((await act(session, 'delete', 'box')).body.state).toBe('deleted')
    expect((await session.put('note.txt', 'kept')).status).toBe(404)
    expect(await filesOf(session)).toEqual([])
  })
})

describe.concurrent('an environment that is used', () => {
  it('is not replaced while its agentloop runs', async () => {
    await using controller = await EnvironmentController.listen()
    controller.answer = ({ request }) => (request.type === 'execute' ? undefined : { type: 'accepted' })
    const agentloop = { implementation: { name: 'mine', id: 'anything' }, environment: 'one' }
    const session = await opened({ agentloop, environments: [elsewhere(controller, 'one')] })
    const sending = session.send('hello')
    await controller.operation('execute')
    expect((await call(session, 'one', 'reset')).status).toBe(409)
    await server.post(`${session.path}/cancel`)
    await sending
    expect((await call(session, 'one', 'reset')).status).toBe(200)
    // An implementation is what its environment understands: an import takes any.
    expectSoundJournal(await session.records())
  })

  it('is not replaced while it is told of the end of a turn', async () => {
    await using controller = await EnvironmentController.listen()
    const gate = Promise.withResolvers<void>()
    controller.answer = async ({ request }) => {
      if (request.type === 'setup') return { type: 'accepted', on_turn_end: 'echo' }
      if (request.type === 'call' && request.name === 'echo') await gate.promise
      return { type: 'accepted' }
    }
    const session = await opened({ environments: [elsewhere(controller, 'one')] })
    await session.send('hello')
    await controller.operation('call')
    expect((await call(session, 'one', 'reset')).status).toBe(409)
    gate.resolve()
    await server.post(`${session.path}/end`)
    expectSoundJournal(await session.records())
  })

  it('gets nothing from the moment on that it is being deleted', async () => {
    await using controller = await EnvironmentController.listen()
    const gate = Promise.withResolvers<void>()
    controller.answer = async ({ request }) => {
      if (request.type === 'execute') return { type: 'returned' }
      if (request.type === 'cancel') await gate.promise
      return { type: 'accepted' }
    }
    const session = await opened({ tools: [toolIn('one')], environments: [elsewhere(controller, 'one')] })
    await session.call({})
    const deleting = act(session, 'delete', 'one')
    await controller.operation('cancel')
    expect((await session.call({})).outcome).toMatchObject({ error: { code: 'environment_not_ready' } })
    expect((await call(session, 'one', 'echo')).status).toBe(409)
    gate.resolve()
    expect((await deleting).body.state).toBe('deleted')
    expect(controller.types).toEqual(['setup', 'execute', 'cancel', 'teardown'])
    expectSoundJournal(await session.records())
  })
})

describe.concurrent('an agentloop elsewhere', () => {
  /** A session whose loop is the test: `work` is done in each turn. */
  async function looping(
    controller: EnvironmentController,
    work: (use: (method: string, input: unknown) => Promise<Called>) => Promise<unknown>,
  ): Promise<TestSession> {
    controller.answer = async ({ request }) => {
      if (request.type !== 'execute' || request.callback === undefined) return { type: 'accepted' }
      const { callback } = request
      await work((method, input) => useCallback(callback, { method, input }))
      return { type: 'result', output: {} }
    }
    const grant = { environment: 'two', permissions: ['call'] }
    const agentloop = { implementation: { name: 'mine' }, environment: 'one', environments: [grant] }
    return opened({ agentloop, environments: ['one', 'two'].map((name) => elsewhere(controller, name)) })
  }

  it('may set its transcript many times at once: each time it is one of them', async () => {
    await using controller = await EnvironmentController.listen()
    const user = (text: string): object => ({ role: 'user', content: [{ type: 'text', text }] })
    const kept = [user('a'), user('b')]
    const longer = [...kept, user('c')]
    const session = await looping(controller, async (use) => {
      await use('set_transcript', kept)
      const both = Array.from({ length: 20 }, (_, index) => use('set_transcript', index % 2 === 0 ? [] : longer))
      await Promise.all(both)
    })
    await session.send('hello')
    let transcript: readonly unknown[] = []
    for (const { event_type: kind, data } of await session.records()) {
      if (kind !== 'transcript_delta') continue
      const { keep, append } = data as { keep: number; append: unknown[] }
      transcript = [...transcript.slice(0, keep), ...append]
      expect([[], kept, longer]).toContainEqual(transcript)
    }
  })

  it('pays for what it has recorded by using environments', async () => {
    await using controller = await EnvironmentController.listen()
    const answers: unknown[] = []
    const session = await looping(controller, async (use) => {
      const input = { text: 'x'.repeat(200_000) }
      for (let round = 0; round < 2; round++) {
        const request = { operation: 'call', environment: first('two'), method: 'echo', input }
        answers.push((await use('environments', request)).body)
      }
    })
    await session.send('hello')
    expect(answers).toEqual([null, expect.objectContaining({ code: 'output_limit' })])
  })
})

describe.concurrent('what a controller answers', () => {
  it('as a failure ends the call, and is paid for or cut', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened({ tools: [toolIn('one')], environments: [elsewhere(controller, 'one')] })
    const failing = (details: unknown): void => {
      controller.answer = () => ({
        type: 'failure',
        code: 'no',
        message: 'm',
        retryable: false,
        details: details as any,
      })
    }
    failing({ why: 'it' })
    expect((await session.call({})).outcome).toMatchObject({ error: { code: 'no', details: { why: 'it' } } })
    failing('x'.repeat(2_000_000))
    expect((await session.call({})).outcome).toEqual({
      status: 'error',
      error: { code: 'no', message: 'm', retryable: false },
    })
  })

  it('with doubt about a replacement may be told by what it was to make', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened({ environments: [elsewhere(controller, 'one')] })
    controller.answer = () => ({ status: 500, body: '' })
    expect((await call(session, 'one', 'reset')).body.code).toBe('ambiguous')
    const { reporter = expect.unreachable(), sequence } = await controller.operation('call')
    const observation = { scope: 'operation', sequence, resolution: { status: 'ready' } }
    expect((await useCallback(reporter, { type: 'result', output: { observation } })).status).toBe(200)
    const now = { name: 'one', sequence }
    expect((await control(session, { operation: 'get', environment: now })).body.state).toBe('ready')
    await server.post(`${session.path}/cancel`)
  })
})

describe.concurrent('what a caller names', () => {
  it('is not what stands for distributed tools', async () => {
    await using controller = await EnvironmentController.listen()
    const template = { max_instances: 1, configuration_schema: OBJECT }
    const session = await opened({ environments: [elsewhere(controller, 'one', { template })] })
    const make = { operation: 'create', template: 'one', name: 'brain-http', configuration: {} }
    expect((await control(session, make)).status).toBe(409)
    expect((await control(session, { ...make, name: 'another' })).status).toBe(200)
  })

  it('is no member of anything else: an environment called "constructor" has no credential', async () => {
    await using controller = await EnvironmentController.listen()
    await opened({ environments: [elsewhere(controller, 'constructor')] })
    expect(controller.authorizations).toEqual([undefined])
  })

  it.each(['a\nb', 'a b', 'é', '\0'])('as a credential must be fit for a header: %j', async (credential) => {
    await using controller = await EnvironmentController.listen()
    const { status, body } = await create({ environments: [elsewhere(controller, 'one', { credential })] })
    expect([status, body.code]).toEqual([422, 'invalid_request'])
    expect(controller.operations).toEqual([])
  })

  it.each([5, null, { secrets: 5 }, { network: ['x'] }, { filesystem: { workspace: 'all' } }, { more: 1 }])(
    'as configuration of a brain environment is checked as at its creation: %j',
    async (configuration) => {
      const environments = [{ name: 'box', driver: 'brain', lifecycle: 'manual' }]
      const session = await opened({ environments })
      expect((await act(session, 'update', 'box', { configuration })).status).toBe(400)
      const right = { filesystem: { workspace: 'write' } }
      expect((await act(session, 'update', 'box', { configuration: right })).body.configuration).toEqual(right)
    },
  )
})

describe('a server that stops', () => {
  it('tells environments of the ends of the turns that it lets come to theirs', async () => {
    await using own = await startServer()
    await using controller = await EnvironmentController.listen()
    const outer = server
    server = own
    try {
      const turn = Promise.withResolvers<void>()
      controller.answer = async ({ request }) => {
        if (request.type === 'setup') return { type: 'accepted', on_turn_end: 'echo' }
        if (request.type === 'execute') await turn.promise
        // A server that does not wait for this answer stops listening meanwhile.
        else for (let round = 0; round < 200; round++) await own.get('/health/live').catch(() => undefined)
        return { type: 'result', output: {} }
      }
      const agentloop = { implementation: { name: 'mine' }, environment: 'one' }
      const session = await opened({ agentloop, environments: [elsewhere(controller, 'one')] })
      const sending = session.send('hello')
      await controller.operation('execute')
      const stopping = own.kill('SIGTERM')
      while ((await own.get('/health/ready')).status !== 503) await new Promise((resolve) => setTimeout(resolve, 5))
      turn.resolve()
      expect((await sending).status).toBe(200)
      expect(await stopping).toBe(0)
      await own.start()
      expect(kindsOf(await session.records()).at(-1)).toBe('environment_call_ended')
    } finally {
      server = outer
    }
  })
})
