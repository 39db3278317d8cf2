import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HostCommand } from '../../src/contract/host-protocol.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import { EnvironmentController, useCallback } from '../support/environment-controller.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { HostClient } from '../support/host-client.ts'
import { fixture, startServer, TestSession, type Response, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ BRAIN_API_TOKEN: 'application' })
  server.token = 'application'
})
afterAll(() => server[Symbol.asyncDispose]())

const OBJECT = { type: 'object' }
const ALL = ['read', 'create', 'setup', 'update', 'delete', 'call']
const METHODS = {
  echo: { description: 'gives back', input_schema: OBJECT, output_schema: { type: 'object' } },
  reset: { description: 'starts anew', input_schema: OBJECT, effect: 'replace' },
}

type Setting = {
  readonly environment?: object
  readonly tool?: object
  readonly request?: object
  readonly script?: unknown
}

/** Asks for a session with one tool in one environment, whose controller is the test. */
const create = (controller: EnvironmentController, setting: Setting = {}): Promise<Response> =>
  server.post('/v1/sessions', {
    model: {
      provider: 'scripted',
      name: 'script',
      api_key: 'secret-model-key',
      script: setting.script ?? [{ text: 'done' }],
    },
    tools: [
      {
        name: 'fetch_issue',
        description: 'fetches an issue',
        input_schema: OBJECT,
        placements: { github: { implementation: { type: 'http_json', path: '/issues/{number}' } } },
        ...setting.tool,
      },
    ],
    environments: [
      {
        name: 'github',
        driver: 'http',
        url: controller.url,
        credential: 'environment-secret',
        lifecycle: 'automatic',
        configuration: { repository: 'r' },
        methods: METHODS,
        ...setting.environment,
      },
    ],
    ...setting.request,
  })

async function opened(controller: EnvironmentController, setting?: Setting): Promise<TestSession> {
  const { status, body } = await create(controller, setting)
  if (status !== 200) throw new Error(`no session: ${status} ${body.message}`)
  return new TestSession(server, body.session_id as string, 'fetch_issue')
}

const control = (session: TestSession, request: object, key: string = randomUUID()): Promise<Response> =>
  server.post(`${session.path}/environments`, request, { key })

const declared = { name: 'github', sequence: 1 }

const kindsOf = (records: readonly JournalRecord[]): string[] => records.map(({ event_type: kind }) => kind)
const dataOf = (records: readonly JournalRecord[], type: string): any =>
  records.findLast(({ event_type: kind }) => kind === type)?.data

async function recordsWith(session: TestSession, kind: string, nth = 1): Promise<readonly JournalRecord[]> {
  for (;;) {
    const records = await session.records()
    if (kindsOf(records).filter((one) => one === kind).length >= nth) return records
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe.concurrent('an environment elsewhere', () => {
  it('is set up with its session, runs its tools as they were described, and is given up and torn down', async () => {
    await using controller = await EnvironmentController.listen()
    controller.answer = ({ request }) =>
      request.type === 'execute' ? { type: 'result', output: { title: 'It leaks' } } : { type: 'accepted' }
    const session = await opened(controller)
    const answer = await session.call({ number: 7 })
    expect(answer).toMatchObject({ finished: false, results: [{ output: { title: 'It leaks' }, is_error: false }] })
    await server.post(`${session.path}/cancel`)
    await server.post(`${session.path}/end`)
    await server.request('DELETE', session.path)
    expect(controller.types).toEqual(['setup', 'execute', 'cancel', 'detach', 'teardown'])
    expect(controller.authorizations).toEqual(Array.from({ length: 5 }, () => 'Bearer environment-secret'))
    const [setup, execute, cancel] = controller.operations
    expect(setup).toEqual({
      session_id: session.id,
      environment: 'github',
      sequence: 2,
      binding: declared,
      configuration: { repository: 'r' },
      context: expect.objectContaining({ methods: ['emit', 'result'] }),
      reporter: expect.objectContaining({ methods: ['emit', 'result'] }),
      request: { type: 'setup', configuration: { repository: 'r' } },
    })
    expect(execute?.request).toEqual({
      type: 'execute',
      implementation: { type: 'http_json', path: '/issues/{number}' },
      input: { number: 7 },
      deadline_ms: expect.any(Number),
      callback: {
        url: `${server.url}${session.path}/executions/${answer.sequence}/call`,
        token: expect.stringMatching(/^bex_/),
        methods: ['emit', 'result', 'returned', 'finish', 'model', 'telemetry'],
      },
    })
    expect(cancel?.request).toEqual({ type: 'cancel', target_sequence: answer.sequence })
    expect((await server.get(session.path)).status).toBe(404)
  })

  it('keeps its credential and its tokens out of everything that can be read', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    await session.call({})
    const text = JSON.stringify(await session.records())
    const { context, reporter } = controller.operations[0] ?? {}
    for (const secret of ['environment-secret', context?.token, reporter?.token, 'secret-model-key'])
      expect(text).not.toContain(secret)
    expect(server.log).not.toContain('environment-secret')
  })

  it.each([
    [{ type: 'result', output: 5 }, { status: 'ok' }],
    [{ type: 'returned', output: { status: 'error', error: { code: 'no_luck', message: 'm' } } }, 'no_luck'],
    [{ type: 'failure', code: 'gone', message: 'm', retryable: true, details: { at: 1 } }, 'gone'],
    [
      { type: 'unknown', message: 'who knows' },
      { status: 'unknown', message: 'who knows' },
    ],
    [{ type: 'accepted' }, { status: 'unknown' }],
    [{ type: 'progress', data: 1 }, { status: 'unknown' }],
    [{ status: 500, body: '{}' }, { status: 'unknown' }],
    [{ status: 200, body: 'no JSON' }, { status: 'unknown' }],
    [{ status: 302, body: '' }, { status: 'unknown' }],
    [
      { status: 200, body: '{"contract":"environment/v1","sequence":99999,"receipt":{"type":"accepted"}}' },
      { status: 'unknown' },
    ],
    [
      { status: 200, body: '{"contract":"environment/v2","sequence":4,"receipt":{"type":"accepted"}}' },
      { status: 'unknown' },
    ],
  ] as const)('that answers an execution %j', async (receipt, expected) => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = () => receipt
    const answer = await session.call({})
    if (expected === 'no_luck' || expected === 'gone')
      expect(answer.outcome).toMatchObject({ status: 'error', error: { code: expected } })
    else if (expected.status === 'ok') expect(answer).toMatchObject({ finished: false, results: [{ output: 5 }] })
    else expect(answer.outcome).toMatchObject(expected)
    expect(controller.types.filter((type) => type === 'execute')).toHaveLength(1)
  })

  it('may speak for itself while it runs a tool or stops one, beside what the tool says', async () => {
    await using controller = await EnvironmentController.listen()
    const told: unknown[] = []
    controller.answer = async ({ context, reporter, request }) => {
      if (request.type !== 'execute' && request.type !== 'cancel') return { type: 'accepted' }
      if (context === undefined || reporter === undefined) throw new Error('no services')
      const emit = (event_type: string) => ({ method: 'emit', input: { event_type, data: null } })
      told.push((await useCallback(context, emit('busy'))).status)
      told.push((await useCallback(reporter, { type: 'event', event_type: 'seen', data: null })).status)
      if (request.type === 'cancel') return { type: 'accepted' }
      told.push((await useCallback(request.callback ?? context, emit('working'))).status)
      told.push((await useCallback(context, { method: 'finish', input: null })).status)
      return { type: 'returned' }
    }
    const session = await opened(controller)
    const { sequence } = await session.call({})
    const { context, request } = await controller.operation('execute')
    if (context === undefined || request.type !== 'execute' || request.callback === undefined)
      throw new Error('no token')
    expect(context.token).not.toBe(request.callback.token)
    const late = { method: 'emit', input: { event_type: 'late', data: null } }
    expect((await useCallback(context, late)).status).toBe(404)
    expect((await useCallback(request.callback, late)).status).toBe(200)
    await server.post(`${session.path}/cancel`)
    expect(told).toEqual([200, 200, 200, 400, 200, 200])
    const origins = (await session.records()).filter(({ event_type: kind }) =>
      ['busy', 'seen', 'working'].includes(kind),
    )
    const own = { kind: 'environment', environment: declared }
    expect(origins.map(({ origin }) => origin)).toEqual([own, own, { kind: 'tool', sequence }, own, own])
  })

  it('may go on with an execution after it has answered, until it finishes it', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = () => ({ type: 'returned' })
    const { sequence, finished } = await session.call({})
    const { request } = await controller.operation('execute')
    if (request.type !== 'execute' || request.callback === undefined) throw new Error('no callback')
    const { callback } = request
    const use = (method: string, input: unknown) => useCallback(callback, { method, input })
    expect(finished).toBe(false)
    expect(await use('emit', { event_type: 'half', data: [1] })).toEqual({ status: 200, body: expect.any(Number) })
    expect((await use('result', { status: 'ok', value: 'late', content: 'shown' })).status).toBe(200)
    expect(await use('telemetry', { ms: 3 })).toEqual({ status: 200, body: null })
    expect(await use('returned', null)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(await use('emit', { event_type: 'tool_call_ended', data: 1 })).toMatchObject({ status: 400 })
    expect(await use('emit', { data: 1 })).toMatchObject({ status: 400 })
    expect(await use('result', { status: 'ok' })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(await use('dispatch', [])).toMatchObject({ status: 400 })
    expect(await use('environments', { operation: 'list' })).toMatchObject({ status: 400 })
    const model = await use('model', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] })
    expect(model.body).toMatchObject({ message: { role: 'assistant' }, stop_reason: 'end_turn' })
    expect((await use('finish', null)).status).toBe(200)
    expect(await use('emit', { event_type: 'late', data: 1 })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    })
    const records = (await session.records()).filter(({ sequence: at }) => at > sequence)
    expect(records.map(({ event_type: kind }) => kind)).toEqual([
      'tool_call_returned',
      'half',
      'tool_result_emitted',
      'model_call_started',
      'model_call_ended',
      'tool_call_ended',
    ])
    expect(records.every(({ origin }) => JSON.stringify(origin) === JSON.stringify({ kind: 'tool', sequence }))).toBe(
      true,
    )
    expectSoundJournal(await session.records())
  })

  it('opens an execution with its own token only', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = () => ({ type: 'returned' })
    await session.call({})
    const { request } = await controller.operation('execute')
    if (request.type !== 'execute' || request.callback === undefined) throw new Error('no callback')
    const { url, token, methods } = request.callback
    const { reporter } = await controller.operation('setup')
    const body = { method: 'telemetry', input: 1 }
    const status = async (other: { url?: string; token?: string }): Promise<number> =>
      (await useCallback({ url, token, methods, ...other }, body)).status
    expect(await status({})).toBe(200)
    expect(await status({ token: '' })).toBe(401)
    expect(await status({ token: 'application' })).toBe(404)
    expect(await status({ token: `${token}x` })).toBe(404)
    expect(await status({ token: reporter?.token ?? '' })).toBe(404)
    expect(await status({ url: url.replace(/\d+\/call$/, '9999/call') })).toBe(404)
    expect(await status({ url: url.replace(/\d+\/call$/, 'x/call') })).toBe(400)
    const unknownMember = await useCallback(request.callback, { ...body, more: 1 })
    expect(unknownMember.status).toBe(422)
    expect((await server.get(session.path, { authorization: `Bearer ${token}` })).status).toBe(401)
  })

  it('is told of a cancellation once, after the end is on record; what it says later is dropped', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = ({ request }) => (request.type === 'execute' ? undefined : { type: 'accepted' })
    const calling = session.call({})
    const execute = await controller.operation('execute')
    await server.post(`${session.path}/cancel`)
    expect((await calling).outcome).toEqual({ status: 'cancelled' })
    const cancel = await controller.operation('cancel')
    expect(cancel.request).toEqual({ type: 'cancel', target_sequence: execute.sequence })
    await controller.until(() => controller.cut === 1)
    if (execute.request.type !== 'execute' || execute.request.callback === undefined) throw new Error('no callback')
    expect(await useCallback(execute.request.callback, { method: 'finish', input: null })).toMatchObject({
      status: 500,
      body: { code: 'cancelled' },
    })
    const records = await session.records()
    expect(kindsOf(records).slice(-3)).toEqual(['tool_cancel_started', 'tool_call_ended', 'tool_cancel_ended'])
    expect(controller.types.filter((type) => type === 'cancel')).toHaveLength(1)
  })

  it('ends a call at its deadline', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = ({ request }) => (request.type === 'execute' ? undefined : { type: 'accepted' })
    const { outcome } = await session.call({}, { deadlineMs: 600 })
    expect(outcome).toEqual({ status: 'timeout' })
    const { request } = await controller.operation('execute')
    expect(request).toMatchObject({ deadline_ms: expect.toSatisfy((ms: number) => ms > 0 && ms <= 600) })
    await controller.operation('cancel')
  })

  it('whose connection is lost leaves the call unknown, and is not asked again', async () => {
    const controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = async ({ request }) => {
      if (request.type === 'execute') await controller[Symbol.asyncDispose]()
      return undefined
    }
    const { outcome } = await session.call({})
    expect(outcome).toMatchObject({ status: 'unknown' })
    // Nobody listens any more: the same words, whatever the reason.
    expect((await session.call({})).outcome).toEqual(outcome)
    expect(controller.types).toEqual(['setup', 'execute'])
  })

  it('does what a commit of finish has said, whatever it answers after', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = async ({ request }) => {
      if (request.type !== 'execute' || request.callback === undefined) return { type: 'accepted' }
      await useCallback(request.callback, { method: 'finish', input: { status: 'ok', value: 'done' } })
      return { status: 500, body: '' }
    }
    expect(await session.value({})).toBe('done')
  })
})

describe.concurrent('a session whose environment cannot be set up', () => {
  it.each([
    [{ type: 'failure', code: 'no_room', message: 'full', retryable: true } as const, 500, 'no_room'],
    [{ type: 'returned' } as const, 500, 'ambiguous'],
    [{ status: 503, body: '' } as const, 500, 'ambiguous'],
  ])('is told %j, and those before it are torn down in reverse', async (receipt, status, code) => {
    await using controller = await EnvironmentController.listen()
    controller.answer = ({ environment, request }) =>
      request.type === 'setup' && environment === 'third' ? receipt : { type: 'accepted' }
    const environment = { driver: 'http', url: controller.url, lifecycle: 'automatic' }
    const environments = ['first', 'second', 'third', 'fourth'].map((name) => ({ name, ...environment }))
    const refused = await create(controller, { request: { tools: [], environments } })
    expect([refused.status, refused.body.code]).toEqual([status, code])
    expect(controller.operations.map(({ environment: name, request }) => `${request.type} ${name}`)).toEqual([
      'setup first',
      'setup second',
      'setup third',
      'teardown second',
      'teardown first',
    ])
    const id = controller.operations[0]?.session_id ?? ''
    const failed = new TestSession(server, id, '')
    const records = await failed.records()
    expect(dataOf(records, 'session_creation_failed')).toMatchObject({ code: 'environment_preparation_failed' })
    expect((await server.get(failed.path)).body.status).toBe('failed')
    expect((await server.request('DELETE', failed.path)).status).toBe(204)
    expectSoundJournal(records)
  })

  it.each([
    ['https://user:pass@env.example/', 'password'],
    ['https://env.example/?a=1', 'query'],
    ['https://env.example/#x', 'fragment'],
    ['http://env.example/', 'loopback'],
    ['http://localhost:9/', 'loopback'],
    ['http://10.0.0.1/', 'loopback'],
    ['ftp://127.0.0.1/', 'https'],
    ['not a url', 'no URL'],
    ['https://10.0.0.1/', 'public'],
    ['https://169.254.169.254/', 'public'],
    ['https://[::ffff:127.0.0.1]/', 'public'],
    ['https://[fd00::1]/', 'public'],
    ['http://0x7f.1/', 'plainly'],
    ['http://2130706433/', 'plainly'],
    [`https://env.example/${'x'.repeat(2048)}`, '2048'],
  ])('is refused at %s', async (url, reason) => {
    await using controller = await EnvironmentController.listen()
    const { status, body } = await create(controller, { environment: { url } })
    expect([status, body.code]).toEqual([400, 'invalid_request'])
    expect(body.message).toContain(reason)
  })

  it.each([
    [{ tool: { environments: [{ environment: 'nowhere', permissions: ['read'] }] } }, 'nowhere'],
    [{ tool: { environments: [{ environment: 'github', permissions: ['create'] }] } }, 'no template'],
    [{ tool: { environments: [{ environment: 'github', permissions: ['call'], methods: ['x'] }] } }, '"x"'],
    [{ tool: { placements: { github: { implementation: 'text' } } } }, 'object'],
    [{ environment: { url: undefined } }, 'url'],
    [{ environment: { host_id: 'h' } }, 'host_id'],
    [{ environment: { methods: { m: { description: 'd', input_schema: { type: 'nothing' } } } } }, 'method "m"'],
    [{ environment: { template: { max_instances: 1, configuration_schema: { type: 1 } } } }, 'configuration_schema'],
    [
      {
        environment: { lifecycle: 'manual' },
        request: { agentloop: { implementation: { type: 'loop' }, environment: 'github' } },
      },
      'manual',
    ],
  ] as const)('is refused for %j', async (setting, reason) => {
    await using controller = await EnvironmentController.listen()
    const { status, body } = await create(controller, setting as Setting)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
    expect(body.message).toContain(reason)
    expect(controller.operations).toEqual([])
  })
})

describe.concurrent('control of environments', () => {
  it('shows what was declared; what is manual waits until somebody sets it up, and can be changed until then', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller, { environment: { lifecycle: 'manual' } })
    expect(controller.operations).toEqual([])
    const { body: list } = await control(session, { operation: 'list' })
    expect(list).toEqual([
      {
        reference: declared,
        template: 'github',
        lifecycle: 'manual',
        state: 'declared',
        configuration: { repository: 'r' },
        methods: METHODS,
        tools: [{ name: 'fetch_issue', description: 'fetches an issue', input_schema: OBJECT }],
      },
    ])
    expect((await session.call({})).outcome).toMatchObject({
      status: 'error',
      error: {
        code: 'environment_not_ready',
        details: { domain: 'environment', environment: 'github', state: 'declared' },
      },
    })
    const update = { operation: 'update', environment: declared, configuration: { repository: 's' } }
    expect((await control(session, update)).body).toMatchObject({ configuration: { repository: 's' } })
    const setup = { operation: 'setup', environment: declared }
    expect((await control(session, setup)).body).toMatchObject({ state: 'ready' })
    expect((await controller.operation('setup')).request).toEqual({
      type: 'setup',
      configuration: { repository: 's' },
    })
    expect((await control(session, setup)).status).toBe(409)
    expect((await control(session, update)).status).toBe(409)
    expect((await session.call({})).results).toHaveLength(1)
    expect((await control(session, { operation: 'delete', environment: declared })).body.state).toBe('deleted')
    expect((await control(session, { operation: 'get', environment: declared })).status).toBe(404)
    expect((await control(session, { operation: 'list' })).body).toEqual([])
    expectSoundJournal(await session.records())
  })

  it('that fails leaves the environment failed, or unknown until it says what became of it', async () => {
    await using controller = await EnvironmentController.listen()
    controller.answer = () => ({ type: 'failure', code: 'no_room', message: 'full', retryable: false, details: [1] })
    const setup = { operation: 'setup', environment: declared }
    const failed = await opened(controller, { environment: { lifecycle: 'manual' } })
    expect(await control(failed, setup)).toMatchObject({
      status: 500,
      body: { code: 'no_room', message: 'full', retryable: false, details: [1] },
    })
    expect((await control(failed, { operation: 'get', environment: declared })).body.state).toBe('failed')
    expect(dataOf(await failed.records(), 'environment_setup_failed')).toMatchObject({
      code: 'no_room',
      ambiguous: false,
      domain: 'environment',
    })
    controller.answer = () => ({ status: 500, body: '' })
    const doubtful = await opened(controller, { environment: { lifecycle: 'manual' } })
    expect((await control(doubtful, setup)).body).toMatchObject({ code: 'ambiguous', retryable: false })
    const records = await doubtful.records()
    expect(dataOf(records, 'environment_setup_failed')).toMatchObject({ ambiguous: true, domain: 'transport' })
    const view = (await control(doubtful, { operation: 'get', environment: declared })).body
    expect(view).toMatchObject({ state: 'unknown', pending_operation: expect.any(Number) })
    const { reporter } = controller.operations.at(-1) ?? {}
    if (reporter === undefined) throw new Error('no reporter')
    const resolve = (sequence: number) =>
      useCallback(reporter, {
        type: 'result',
        output: { observation: { scope: 'operation', sequence, resolution: { status: 'ready' } } },
      })
    expect((await resolve(view.pending_operation + 1)).status).toBe(400)
    expect((await resolve(view.pending_operation)).status).toBe(200)
    const known = (await control(doubtful, { operation: 'get', environment: declared })).body
    expect(known).toMatchObject({ state: 'ready', observation: { scope: 'operation' } })
    expect(known).not.toHaveProperty('pending_operation')
  })

  it('calls methods, and checks what goes in and what comes out', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    controller.answer = ({ request }) =>
      request.type === 'call' ? { type: 'result', output: { said: request.input } } : { type: 'accepted' }
    const call = (method: string, input: unknown) =>
      control(session, { operation: 'call', environment: declared, method, input })
    expect(await call('echo', { a: 1 })).toMatchObject({ status: 200, body: { said: { a: 1 } } })
    const route = `${session.path}/environments/github/calls/echo`
    const key = randomUUID()
    expect((await server.post(route, { input: { b: 2 } }, { key })).body).toEqual({ output: { said: { b: 2 } } })
    expect((await server.post(route, { input: { b: 2 } }, { key })).body).toEqual({ output: { said: { b: 2 } } })
    expect((await server.post(route, { input: { b: 3 } }, { key })).status).toBe(409)
    expect(controller.types).toEqual(['setup', 'call', 'call'])
    expect((await call('echo', 5)).status).toBe(400)
    expect((await call('none', {})).status).toBe(400)
    expect((await server.post(`${session.path}/environments/none/calls/echo`, { input: {} })).status).toBe(404)
    controller.answer = () => ({ type: 'result', output: 'text' })
    expect((await call('echo', {})).body).toMatchObject({ code: 'environment_output_invalid', retryable: false })
    expect(dataOf(await session.records(), 'environment_call_failed')).toMatchObject({ ambiguous: true })
    expect((await control(session, { operation: 'get', environment: { name: 'github', sequence: 2 } })).status).toBe(
      404,
    )
    expect((await control(session, { operation: 'sing' })).status).toBe(422)
    expectSoundJournal(await session.records())
  })

  it('makes instances of a template, within its bound and its schema; they run its tools', async () => {
    await using controller = await EnvironmentController.listen()
    const template = {
      max_instances: 2,
      configuration_schema: { type: 'object', properties: { repository: { type: 'string' } } },
    }
    const session = await opened(controller, { environment: { template, lifecycle: 'manual' } })
    const make = (name: string, configuration: unknown = { repository: name }) =>
      control(session, { operation: 'create', template: 'github', name, configuration })
    const { body: one } = await make('one')
    expect(one).toMatchObject({ template: 'github', state: 'declared', configuration: { repository: 'one' } })
    const made = (await session.records()).findLast(({ event_type: kind }) => kind === 'environment_declared')
    expect(one.reference).toEqual({ name: 'one', sequence: made?.sequence })
    expect(made?.data).toMatchObject({ reference: one.reference })
    expect((await make('one')).status).toBe(409)
    expect((await make('github')).status).toBe(409)
    expect((await make('two', { repository: 5 })).status).toBe(400)
    // Two ask for the last place at once.
    const both = await Promise.all([make('two'), make('three')])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    await control(session, { operation: 'setup', environment: one.reference })
    expect(await controller.operation('setup')).toMatchObject({
      environment: 'one',
      template: 'github',
      binding: one.reference,
      configuration: { repository: 'one' },
    })
    const answer = await server.post(`${session.path}/tools/fetch_issue/calls`, { input: {}, environment: 'one' })
    expect(answer.body).toMatchObject({ results: [{ is_error: false }] })
    expect(dataOf(await session.records(), 'tool_call_started')).toMatchObject({
      environment: 'one',
      environment_sequence: one.reference.sequence,
    })
    await control(session, { operation: 'delete', environment: one.reference })
    expect((await make('one')).status).toBe(200)
    await server.post(`${session.path}/end`)
    expectSoundJournal(await session.records())
  })

  it('replaces an environment when nothing runs there: it has another sequence, and the old one is gone', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    const { reporter } = await controller.operation('setup')
    const reset = (environment: unknown = declared) =>
      control(session, { operation: 'call', environment, method: 'reset', input: {} })
    controller.answer = ({ request }) => (request.type === 'execute' ? undefined : { type: 'accepted' })
    const calling = session.call({})
    await controller.operation('execute')
    expect((await reset()).status).toBe(409)
    await server.post(`${session.path}/cancel`)
    await calling
    await recordsWith(session, 'tool_cancel_ended')
    expect((await reset()).status).toBe(200)
    const replaced = dataOf(await session.records(), 'environment_replace_ended')
    const now = { name: 'github', sequence: replaced.sequence }
    expect((await control(session, { operation: 'get', environment: now })).body).toMatchObject({ state: 'ready' })
    expect((await control(session, { operation: 'get', environment: declared })).status).toBe(404)
    const report = { type: 'event', event_type: 'noticed', data: 1 }
    expect((await useCallback(reporter ?? expect.unreachable(), report)).status).toBe(404)
    const { reporter: next } = controller.operations.at(-1) ?? {}
    expect((await useCallback(next ?? expect.unreachable(), report)).status).toBe(200)
    controller.answer = () => ({ type: 'failure', code: 'not_now', message: 'm', retryable: false })
    expect((await reset(now)).body.code).toBe('not_now')
    expect((await control(session, { operation: 'get', environment: now })).body.state).toBe('ready')
  })

  it('is for tools within their grants, and never over where they run', async () => {
    await using controller = await EnvironmentController.listen()
    const { url } = controller
    const template = { max_instances: 3, configuration_schema: OBJECT }
    const other = { name: 'other', driver: 'http', url, lifecycle: 'automatic', methods: METHODS, template }
    const hidden = { name: 'hidden', driver: 'http', url, lifecycle: 'automatic' }
    const grants = [
      { environment: 'other', permissions: ALL, methods: ['echo'] },
      { environment: 'github', permissions: ALL.filter((one) => one !== 'create') },
    ]
    const own = { name: 'github', driver: 'http', url, lifecycle: 'automatic', methods: METHODS }
    const session = await opened(controller, {
      tool: { environments: grants },
      request: { environments: [own, other, hidden] },
    })
    controller.answer = ({ request }) =>
      request.type === 'execute'
        ? { type: 'returned' }
        : request.type === 'call'
          ? { type: 'result', output: {} }
          : { type: 'accepted' }
    await session.call({})
    const { request } = await controller.operation('execute')
    if (request.type !== 'execute' || request.callback === undefined) throw new Error('no callback')
    const { callback } = request
    const ask = (input: object) => useCallback(callback, { method: 'environments', input })
    const names = (await ask({ operation: 'list' })).body.map((view: any) => view.reference.name)
    expect(names).toEqual(['github', 'other'])
    const there = { name: 'other', sequence: 1 }
    expect((await ask({ operation: 'call', environment: there, method: 'echo', input: {} })).status).toBe(200)
    expect((await ask({ operation: 'call', environment: there, method: 'reset', input: {} })).status).toBe(400)
    expect((await ask({ operation: 'get', environment: { name: 'hidden', sequence: 1 } })).status).toBe(400)
    expect((await ask({ operation: 'delete', environment: declared })).status).toBe(400)
    expect((await ask({ operation: 'call', environment: declared, method: 'reset', input: {} })).status).toBe(400)
    const { body: child } = await ask({ operation: 'create', template: 'other', name: 'child', configuration: {} })
    expect((await ask({ operation: 'setup', environment: child.reference })).body.state).toBe('ready')
    expect((await ask({ operation: 'delete', environment: child.reference })).body.state).toBe('deleted')
    expect((await ask({ operation: 'fly' })).status).toBe(400)
  })
})

describe.concurrent('tools that run here', () => {
  const manual = (controller: EnvironmentController) => ({
    name: 'github',
    driver: 'http',
    url: controller.url,
    lifecycle: 'manual',
  })
  const grants = [{ environment: 'github', permissions: ['read', 'setup'] }]

  it('control environments from a box, within the grants of the tool and of its environment', async () => {
    await using controller = await EnvironmentController.listen()
    const id = await server.admit(await fixture('outcomes'))
    const implementation = { type: 'brain_component', entrypoint: 'run', id, configuration: {} }
    const session = await opened(controller, {
      tool: {
        placements: { box: { implementation } },
        environments: [{ environment: 'github', permissions: ['read'] }],
      },
      request: {
        environments: [
          manual(controller),
          {
            name: 'box',
            driver: 'brain',
            lifecycle: 'automatic',
            environments: [{ environment: 'github', permissions: ['setup'] }],
          },
        ],
      },
    })
    const ask = (request: object) => ({ do: 'environments', request })
    const plan = [
      ask({ operation: 'list' }),
      ask({ operation: 'setup', environment: declared }),
      ask({ operation: 'delete', environment: declared }),
      { do: 'finish', outcome: { status: 'ok', value: '$log' } },
    ]
    const steps = await session.value({ steps: plan })
    expect(steps[0].answer).toMatchObject([{ reference: declared, state: 'declared' }])
    expect(steps[1].answer).toMatchObject({ reference: declared, state: 'ready' })
    expect(steps[2].code).toBe('invalid_request')
  })

  it('control environments from an application', async () => {
    await using controller = await EnvironmentController.listen()
    const host = await HostClient.register(server)
    const stream = await host.connect()
    const environments = [manual(controller), { name: 'app', driver: 'host', host_id: host.id, lifecycle: 'automatic' }]
    const session = await host.session([{ name: 'lookup', environments: grants } as never], { environments })
    const calling = session.call({}, { wait: 'finished' })
    const command = (await stream.command()) as HostCommand
    const { session_id, sequence } = command
    const ask = (input: object) => host.post('call', { session_id, sequence, call: { method: 'environments', input } })
    expect((await ask({ operation: 'setup', environment: declared })).body).toMatchObject({ state: 'ready' })
    expect((await ask({ operation: 'delete', environment: declared })).status).toBe(400)
    await host.finish(command, null)
    await calling
    stream.close()
  })
})

describe.concurrent('what a controller says', () => {
  it('is on record with its environment as origin, within an operation and by its reporter', async () => {
    await using controller = await EnvironmentController.listen()
    controller.answer = async ({ context, request }) => {
      if (request.type !== 'setup' || context === undefined) return { type: 'accepted' }
      expect((await useCallback(context, { method: 'emit', input: { event_type: 'booting', data: 1 } })).status).toBe(
        200,
      )
      expect((await useCallback(context, { method: 'environments', input: { operation: 'list' } })).status).toBe(400)
      return { type: 'accepted' }
    }
    const session = await opened(controller)
    const { context, reporter } = await controller.operation('setup')
    if (context === undefined || reporter === undefined) throw new Error('no services')
    expect((await useCallback(context, { method: 'emit', input: { event_type: 'late', data: 1 } })).status).toBe(404)
    const report = (body: unknown) => useCallback(reporter, body)
    const event = { type: 'event', event_type: 'disk_full', data: { free: 0 } }
    expect(await report(event)).toEqual({ status: 200, body: { sequence: expect.any(Number) } })
    expect((await report({ ...event, event_type: 'turn_ended' })).status).toBe(400)
    expect((await report({ ...event, more: 1 })).status).toBe(422)
    expect((await useCallback({ ...reporter, token: context.token }, event)).status).toBe(404)
    expect((await useCallback({ ...reporter, token: '' }, event)).status).toBe(401)
    const origin = { kind: 'environment', environment: declared }
    await recordsWith(session, 'turn_ended')
    // The two may wake it twice: what was begun has its end once the session is over.
    await server.post(`${session.path}/end`)
    const records = await session.records()
    expect(records.find(({ event_type: kind }) => kind === 'booting')).toMatchObject({ data: 1, origin })
    expect(records.find(({ event_type: kind }) => kind === 'disk_full')).toMatchObject({ data: { free: 0 }, origin })
    // Each of the two may have started a turn of its own.
    await server.post(`${session.path}/end`)
    expectSoundJournal(await session.records())
  })

  it('wakes the loop, which shows observations to the model; not after an interruption until somebody speaks', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller, { script: [{ text: 'seen' }] })
    const { reporter } = await controller.operation('setup')
    const observe = (availability: string) =>
      useCallback(reporter ?? expect.unreachable(), {
        type: 'result',
        output: { observation: { scope: 'environment', availability, message: 'maintenance' }, content: 'It is down' },
      })
    expect((await observe('unavailable')).status).toBe(200)
    const woken = await recordsWith(session, 'turn_ended')
    expect(dataOf(woken, 'turn_started')).toEqual({ trigger: 'events' })
    const transcript = (await server.get(`${session.path}/transcript`)).body.messages
    expect(JSON.stringify(transcript)).toContain('It is down')
    expect((await session.call({})).outcome).toMatchObject({ error: { code: 'environment_not_ready' } })
    await server.post(`${session.path}/cancel`)
    await observe('available')
    expect((await session.call({})).results).toHaveLength(1)
    expect(kindsOf(await session.records()).filter((kind) => kind === 'turn_started')).toHaveLength(1)
    await session.send('hello')
    await observe('unknown')
    const last = await recordsWith(session, 'turn_ended', 3)
    expect(dataOf(last, 'turn_started')).toEqual({ trigger: 'events' })
  })

  it('is bounded until somebody speaks to the session again', async () => {
    await using controller = await EnvironmentController.listen()
    const session = await opened(controller)
    const { reporter } = await controller.operation('setup')
    const data = 'x'.repeat(600_000)
    const report = () => useCallback(reporter ?? expect.unreachable(), { type: 'event', event_type: 'big', data })
    expect((await report()).status).toBe(200)
    expect(await report()).toMatchObject({ status: 400, body: { code: 'emit_limit' } })
    controller.answer = () => ({ status: 500, body: '' })
    await control(session, { operation: 'delete', environment: declared })
    const { pending_operation: sequence } = (await control(session, { operation: 'get', environment: declared })).body
    const observation = { scope: 'operation', sequence, resolution: { status: 'ready' } }
    const resolved = await useCallback(reporter ?? expect.unreachable(), { type: 'result', output: { observation } })
    expect(resolved.status).toBe(200)
    await session.send('hello')
    expect((await report()).status).toBe(200)
  })
})

describe.concurrent('a turn', () => {
  it('calls tools of an environment, and its end is told to who asked for it', async () => {
    await using controller = await EnvironmentController.listen()
    controller.answer = async ({ request }) => {
      if (request.type === 'setup') return { type: 'accepted', on_turn_end: 'save' }
      if (request.type !== 'execute' || request.callback === undefined) return { type: 'result', output: null }
      await useCallback(request.callback, { method: 'finish', input: { status: 'ok', value: { title: 'It leaks' } } })
      return { type: 'accepted' }
    }
    const script = [{ tool_calls: [{ name: 'fetch_issue', input: { number: 7 } }] }, { text: 'done' }]
    const session = await opened(controller, { script })
    await session.send('what is 7?')
    const turn = dataOf(await session.records(), 'turn_ended')
    expect(turn).toBeDefined()
    const { request } = await controller.operation('call')
    const started = (await session.records()).find(({ event_type: kind }) => kind === 'turn_started')
    expect(request).toEqual({ type: 'call', name: 'save', input: { sequence: started?.sequence } })
    await recordsWith(session, 'environment_call_ended')
    controller.answer = () => ({ type: 'failure', code: 'no', message: 'm', retryable: false })
    expect((await session.send('again')).status).toBe(200)
    const records = await recordsWith(session, 'environment_call_failed')
    expect(kindsOf(records)).not.toContain('turn_failed')
    expectSoundJournal(records)
  })

  it('is conducted by an agentloop that runs elsewhere', async () => {
    await using controller = await EnvironmentController.listen()
    const seen: unknown[] = []
    controller.answer = async ({ request }) => {
      if (request.type !== 'execute' || request.callback === undefined) return { type: 'accepted' }
      const { callback, implementation, input, deadline_ms: deadlineMs } = request
      if ((implementation as any).type === 'http_json')
        return { type: 'result', output: { status: 'ok', value: 'an issue' } }
      seen.push(deadlineMs, input)
      const use = async (method: string, value: unknown): Promise<any> => {
        const { status, body } = await useCallback(callback, { method, input: value })
        return status === 200 ? body : { status, ...body }
      }
      seen.push(await use('kv_read', 'notes'), await use('kv_put', { key: 'notes', value: null }))
      seen.push(await use('kv_read', 'notes'), await use('kv_read', 'brain.last_activation'))
      const call = { call_id: 'c1', name: 'fetch_issue', environment: 'github', input: {} }
      const [returned] = await use('dispatch', [call])
      seen.push(
        returned.events.map((one: any) => one.event_type),
        await use('dispatch', [call, call]),
      )
      const { message } = await use('model', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] })
      await use('set_transcript', [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }, message])
      await use('emit', { event_type: 'output_emitted', data: { type: 'assistant_message', message } })
      const page = await use('events', 0)
      seen.push(
        page.events.length === page.next_cursor,
        await use('finish', null),
        await use('environments', { operation: 'list' }),
      )
      return { type: 'result', output: { result: { answered: true } } }
    }
    const agentloop = { implementation: { type: 'my_loop' }, environment: 'github', configuration: { tone: 'kind' } }
    const session = await opened(controller, { request: { agentloop } })
    await session.send('hello')
    const records = await session.records()
    expect(dataOf(records, 'turn_ended')).toMatchObject({ result: { answered: true } })
    expect(records.at(-1)?.event_type).toBe('turn_ended')
    const [deadlineMs, input, none, put, some, marker, events, twice, isWhole, finish, environments] = seen
    expect(deadlineMs).toBe(1_800_000)
    expect(input).toMatchObject({
      input: { message: 'hello' },
      transcript: [],
      configuration: { tone: 'kind' },
      tools: [{ name: 'fetch_issue', environments: ['github'] }],
      runtime: { deterministic_seed: expect.any(Array) },
    })
    expect([none, put, some]).toEqual([{}, expect.any(Number), { value: null }])
    expect(marker).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(events).toEqual(['tool_result_emitted', 'tool_call_returned'])
    expect(twice).toMatchObject({ status: 400 })
    expect([isWhole, (finish as any).status, (environments as any).status]).toEqual([true, 400, 400])
    const { request } = await controller.operation('execute')
    if (request.type !== 'execute' || request.callback === undefined) throw new Error('no callback')
    expect((await useCallback(request.callback, { method: 'events', input: 0 })).status).toBe(404)
    await server.post(`${session.path}/cancel`)
    expectSoundJournal(await recordsWith(session, 'tool_cancel_ended'))
  })

  it('of an agentloop elsewhere fails as that says, and stops when it is cancelled', async () => {
    await using controller = await EnvironmentController.listen()
    const agentloop = { implementation: { type: 'my_loop' }, environment: 'github' }
    const session = await opened(controller, { request: { agentloop } })
    const failing = async (answer: EnvironmentController['answer']): Promise<unknown> => {
      controller.answer = answer
      await session.send('hello')
      return dataOf(await session.records(), 'turn_failed')
    }
    const failure = { type: 'failure', code: 'no_plan', message: 'm', retryable: true } as const
    expect(await failing(() => failure)).toMatchObject({ code: 'no_plan', retryable: true, ambiguous: false })
    expect(await failing(() => ({ type: 'result', output: 5 }))).toMatchObject({ code: 'agentloop_failed' })
    expect(await failing(() => ({ status: 500, body: '' }))).toMatchObject({ code: 'unknown', ambiguous: true })
    controller.answer = () => undefined
    const sending = session.send('hello')
    await controller.operation('execute', 3)
    await server.post(`${session.path}/cancel`)
    await sending
    expect(dataOf(await session.records(), 'turn_failed')).toMatchObject({ code: 'cancelled' })
    await controller.until(() => controller.cut === 1)
  })
})

describe('across a restart', () => {
  it('an environment stays set up, its reporter goes on, and what was open is in doubt', async () => {
    await using own = await startServer()
    await using controller = await EnvironmentController.listen()
    const outer = server
    server = own
    try {
      const session = await opened(controller)
      controller.answer = () => undefined
      const calling = session.call({}).catch(() => undefined)
      await controller.operation('execute')
      const method = { operation: 'call', environment: declared, method: 'echo', input: {} }
      const controlling = control(session, method).catch(() => undefined)
      await controller.operation('call')
      await own.kill()
      await Promise.all([calling, controlling])
      const port = new URL(own.url).port
      await own.start()
      controller.answer = () => ({ type: 'result', output: { fine: true } })
      const records = await session.records()
      expect(dataOf(records, 'tool_call_failed')).toMatchObject({ code: 'interrupted', ambiguous: true })
      expect(dataOf(records, 'environment_call_failed')).toMatchObject({ code: 'interrupted', ambiguous: true })
      expect((await session.call({})).results).toHaveLength(1)
      expect(controller.types).toEqual(['setup', 'execute', 'call', 'execute'])
      const { reporter } = await controller.operation('setup')
      const url = reporter?.url.replace(`:${port}/`, `:${new URL(own.url).port}/`) ?? ''
      const event = { type: 'event', event_type: 'still_here', data: 1 }
      expect((await useCallback({ url, token: reporter?.token ?? '', methods: [] }, event)).status).toBe(200)
      await recordsWith(session, 'turn_ended')
      await server.post(`${session.path}/cancel`)
      expectSoundJournal(await recordsWith(session, 'tool_cancel_failed'))
    } finally {
      server = outer
    }
  })
})
