import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { application, applicationTool, http, httpTool } from '../../../src/sdk/http.ts'
import { createToolHandler, type HttpToolCall, type ToolHandlerOptions } from '../../../src/sdk/http-handler.ts'
import {
  createHttpEnvironment,
  serveEnvironment,
  type Approval,
  type BridgeCall,
  type HttpEnvironment,
  type ServedEnvironment,
} from '../../../src/sdk/http-server.ts'
import { hostEnv, tool, type PlacedTool, type ToolContext } from '../../../src/sdk/index.ts'
import { EnvironmentCommands } from '../../support/environment-commands.ts'
import { bodyOf, EnvironmentServicesServer } from '../../support/environment-services.ts'

const brain = new EnvironmentServicesServer()
const commands = new EnvironmentCommands()
const observed: any[] = []
let approval: Approval | undefined
let asked: BridgeCall[] = []
let bridge: HttpEnvironment
let served: ServedEnvironment

/** What the function of the tool does in this test. */
let run: (input: any, ctx: ToolContext<any, any>) => unknown
const lookup = tool({
  name: 'lookup',
  description: 'Looks something up',
  input: z.object({ id: z.string(), deep: z.boolean().default(true) }),
  output: z.object({ status: z.string() }).nullable(),
  options: z.object({ prefix: z.string() }).partial(),
  run: (input, ctx) => run(input, ctx) as never,
})
const plain = lookup({})
const optional = lookup({ prefix: 'a:' })

let handlers: Record<string, (request: Request) => Promise<Response>> = {}
/** What the application's listener does in place of its handler. */
let instead:
  | ((request: IncomingMessage, body: string) => Response | undefined | Promise<Response | undefined>)
  | undefined
/** The application: `/v1` serves plain tools, `/v2` those with options. */
const app = createServer((request, response) => {
  void (async () => {
    const body = await bodyOf(request)
    observed.push({ ...JSON.parse(body), authorization: request.headers.authorization })
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const web = new Request(`http://app${request.url}`, {
      method: request.method ?? '',
      headers: request.headers as never,
      body,
      signal: gone.signal,
    })
    const answer = await (instead === undefined ? handlers[request.url ?? '']?.(web) : instead(request, body))
    if (answer === undefined) request.socket.destroy()
    else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })()
})
const endpoint = (path: string): string => `http://127.0.0.1:${(app.address() as AddressInfo).port}${path}`

const authorize = (request: Request): boolean => request.headers.get('authorization') === 'Bearer app-token'
const handlerOf = (tools: readonly PlacedTool[], options: Partial<ToolHandlerOptions> = {}) =>
  createToolHandler({ tools, authorize, ...options })

beforeAll(async () => {
  await brain.start()
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  handlers = { '/v1': handlerOf([plain]), '/v2': handlerOf([optional]) }
  bridge = createHttpEnvironment({
    authorize: (call) => {
      asked.push(call)
      return approval
    },
    allowPrivateEndpoints: true,
    callbackUrl: () => `${served.url}/v1/callback`,
  })
  served = await serveEnvironment(bridge.handle, {
    token: 'bridge-token',
    callback: bridge.callback,
    maxBodyBytes: 2 ** 20,
  })
})
afterAll(async () => {
  await served.close()
  await served.close()
  app.closeAllConnections()
  app.close()
  await brain[Symbol.asyncDispose]()
})
beforeEach(() => {
  brain.requests.length = 0
  brain.answer = () => ({ body: brain.requests.length })
  observed.length = 0
  asked = []
  instead = undefined
  approval = { endpoint: endpoint('/v1'), token: 'app-token', tools: ['lookup'] }
  run = () => ({ status: 'found' })
})

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(served.url + path, {
    method: 'POST',
    headers: { authorization: 'Bearer bridge-token', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

async function receiptOf(request: object, more: object): Promise<any> {
  const command = commands.next(request, more)
  const response = await post('/v1/operations', command)
  const body: any = await response.json()
  expect({ status: response.status, sequence: body.sequence }).toEqual({
    status: 200,
    sequence: command.operation.sequence,
  })
  return body.receipt
}

const env1 = () => http({ name: 'apps', url: served.url, token: 'bridge-token', binding: 'shop' })
const env2 = (timeoutMs?: number) =>
  application({ name: 'apps', url: served.url, endpoint: endpoint('/v2'), ...(timeoutMs && { timeoutMs }) })
const configuration1 = () => ({ configuration: env1().configuration })
const configuration2 = (timeoutMs?: number) => ({ configuration: env2(timeoutMs).configuration })
const descriptorOf = (placed: PlacedTool): object => (placed.executable as any).descriptor
const execute = (implementation: object, input: unknown, more: object = {}) => ({
  type: 'execute',
  implementation,
  input,
  callback: brain.callback('execution', 'brain-token', 'emit', 'result', 'returned', 'finish', 'model', 'environments'),
  ...more,
})
/** Calls the tool of version 1, or 2, with what Brain would send. */
const callPlain = (input: unknown = { id: '1' }, more: object = {}) =>
  receiptOf(execute(descriptorOf(httpTool(plain, { env: env1() })), input, more), configuration1())
function callRelayed(input: unknown = { id: '1' }, more: object = {}, timeoutMs?: number) {
  approval = { token: 'app-token', tools: ['lookup'] }
  const descriptor = descriptorOf(applicationTool(optional, { env: env2() }))
  return receiptOf(execute(descriptor, input, more), configuration2(timeoutMs))
}

describe('places over HTTP', () => {
  const definition = {
    name: 'lookup',
    description: 'Looks something up',
    inputSchema: optional.definition.input_schema,
    outputSchema: optional.definition.output_schema,
  }

  it('http() and httpTool() are an environment with a binding, and a descriptor without options', () => {
    const env = env1()
    expect(env).toMatchObject({ driver: 'http', name: 'apps', url: served.url, configuration: { binding: 'shop' } })
    expect(env.credential).toBe('bridge-token')
    expect(Object.keys(env.methods ?? {})).toEqual(['inspect'])
    const placed = httpTool(plain, { env })
    expect(placed).toMatchObject({ name: 'lookup', env, definition: plain.definition })
    expect(descriptorOf(placed)).toEqual({ type: 'http_tool', definition, configuration: {} })
    expect(Object.isFrozen(placed)).toBe(true)
    expect(() => httpTool(optional, { env })).toThrow('it has options: use application() and applicationTool()')
  })

  it('application() and applicationTool() are an environment with an endpoint, and a descriptor with options', () => {
    const env = application({ name: 'app', url: served.url, endpoint: 'https://app.example/tools/', credential: 'c' })
    expect(env.configuration).toEqual({
      type: 'application',
      endpoint: 'https://app.example/tools/',
      timeoutMs: 30_000,
    })
    expect(env.credential).toBe('c')
    expect(descriptorOf(applicationTool(optional, { env }))).toEqual({
      type: 'application_tool',
      definition,
      options: { prefix: 'a:' },
    })
  })

  it('are not made of what they cannot be', () => {
    const base = { name: 'apps', url: 'https://bridge.example' }
    expect(() => http({ ...base, binding: '' })).toThrow('binding must be an identifier')
    expect(() => http({ ...base, binding: 'b', endpoint: '' } as never)).toThrow('it has no member "endpoint"')
    expect(() => application({ ...base, endpoint: 'http://app.example' })).toThrow('endpoint must be https')
    for (const timeoutMs of [0, 1.5, 300_001])
      expect(() => application({ ...base, endpoint: 'https://app.example', timeoutMs })).toThrow('timeoutMs must be')
    const env = http({ ...base, binding: 'b' })
    const descriptor = tool({ name: 'a', description: 'x', input: z.object({}), implementation: {} })({ env })
    expect(() => httpTool(descriptor, { env })).toThrow('give a placed function')
    expect(() => httpTool(lookup as never, { env })).toThrow('give a placed function')
    expect(() => httpTool(plain, { env: hostEnv({ name: 'h' }) } as never)).toThrow('made by http() or application()')
    const granted = lookup({ environments: [{ environment: 'apps', permissions: ['call'] }] })
    expect(() => applicationTool(granted, { env })).toThrow('controls no environments')
  })
})

describe('a tool of httpTool()', () => {
  it('gives plain JSON, which is its result whatever it looks like', async () => {
    run = (input, ctx) => {
      expect(input).toEqual({ id: '1', deep: true })
      expect(ctx).toMatchObject({ options: {}, sessionId: 'ses_1', sequence: commands.last })
      return { status: 'cancelled' }
    }
    const outcome = { status: 'ok', value: { status: 'cancelled' } }
    expect(await callPlain()).toEqual({ type: 'result', output: outcome })
    expect(brain.requests).toEqual([
      { path: '/execution', token: 'brain-token', body: { method: 'finish', input: outcome } },
    ])
    const [call] = observed
    expect(call).toEqual({
      contract: 'http-tool/v1',
      sessionId: 'ses_1',
      environment: 'remote',
      sequence: commands.last,
      tool: (descriptorOf(httpTool(plain, { env: env1() })) as any).definition,
      input: { id: '1' },
      deadlineAtMs: expect.any(Number),
      authorization: 'Bearer app-token',
    })
    expect(call.deadlineAtMs - Date.now()).toBeLessThanOrEqual(30_000)
  })

  it.each(['emit', 'emitResult', 'finish', 'model'] as const)('has no ctx.%s', async (member) => {
    run = (_, ctx) => (ctx[member] as (...given: unknown[]) => unknown)('kind', {})
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'tool_error', retryable: false })
    expect(brain.requests).toEqual([])
  })

  it('fails with its input, with what it throws and with what its output schema does not take', async () => {
    expect(await callPlain({ id: 1 })).toMatchObject({ type: 'failure', code: 'invalid_input' })
    run = () => {
      throw new Error('Not today')
    }
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'tool_error', message: 'Not today' })
    for (const value of [undefined, 3, { status: Number.NaN }]) {
      run = () => value
      expect(await callPlain()).toMatchObject({ type: 'failure', code: 'invalid_output' })
    }
    expect(brain.requests).toEqual([])
  })

  it('is unknown when Brain\u2019s answer to its end gets lost, and refused as Brain refuses it', async () => {
    brain.answer = () => undefined
    expect(await callPlain()).toMatchObject({ type: 'unknown' })
    brain.answer = () => ({ status: 400, body: { code: 'emit_limit', message: 'Too much', retryable: false } })
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'emit_limit' })
    expect(observed).toHaveLength(2)
  })
})

describe('a tool of applicationTool()', () => {
  const finishes = () => brain.at('execution').filter(({ method }) => method === 'finish')

  it('has options, results and an end, each answered when Brain has it', async () => {
    run = async (input, ctx) => {
      expect(input).toEqual({ id: '1', deep: true })
      expect(ctx.options).toEqual({ prefix: 'a:' })
      expect(Object.isFrozen(ctx.options)).toBe(true)
      expect(await ctx.emitResult({ status: 'begun' }, { content: 'Begun.' })).toBe(1)
      await ctx.finish({ status: 'ok', value: { status: 'unknown' } })
      expect(brain.at('execution')).toHaveLength(2)
      await expect(ctx.emitResult(null)).rejects.toMatchObject({ code: 'invalid_request' })
    }
    expect(await callRelayed()).toEqual({ type: 'accepted' })
    expect(brain.at('execution')).toEqual([
      { method: 'result', input: { status: 'ok', value: { status: 'begun' }, content: 'Begun.' } },
      { method: 'finish', input: { status: 'ok', value: { status: 'unknown' } } },
    ])
    const [{ callback, ...call }] = observed
    expect(call).toMatchObject({ contract: 'http-tool/v2', options: { prefix: 'a:' } })
    expect(callback).toEqual({
      url: `${served.url}/v1/callback`,
      token: expect.stringMatching(/^[0-9a-f]{64}$/),
      methods: ['result', 'returned', 'finish'],
    })
    expect(JSON.stringify(observed)).not.toContain('brain-token')
  })

  it.each(['emit', 'model'] as const)('has no ctx.%s, and no environments', async (member) => {
    run = async (_, ctx) => {
      await expect(ctx.environments.list()).rejects.toMatchObject({ code: 'unsupported' })
      return (ctx[member] as (...given: unknown[]) => unknown)('kind', {})
    }
    expect(await callRelayed()).toMatchObject({ type: 'failure', code: 'tool_error' })
    expect(brain.requests).toEqual([])
  })

  it.each([
    [{ status: 'found' }, { method: 'returned', input: { status: 'ok', value: { status: 'found' } } }, 'returned'],
    [undefined, { method: 'returned', input: null }, 'returned'],
    [{ status: 'cancelled' }, { method: 'finish', input: { status: 'cancelled' } }, 'accepted'],
  ])(
    'that returns %j publishes that, and has ended only with an outcome other than ok',
    async (value, update, type) => {
      run = () => value
      expect(await callRelayed()).toEqual({ type })
      expect(brain.at('execution')).toEqual([update])
    },
  )

  it('fails with what it throws, and with what its output schema does not take unless something else follows', async () => {
    run = () => Promise.reject(new Error('Not today'))
    expect(await callRelayed()).toMatchObject({ type: 'failure', code: 'tool_error', message: 'Not today' })
    run = (_, ctx) => ctx.finish(3)
    expect(await callRelayed()).toMatchObject({ type: 'failure', code: 'invalid_output' })
    run = () => 3
    expect(await callRelayed()).toMatchObject({ type: 'failure', code: 'invalid_output' })
    run = async (_, ctx) => {
      await ctx.finish(3).catch(() => ctx.finish(null))
      throw new Error('Too late')
    }
    expect(await callRelayed()).toEqual({ type: 'accepted' })
    expect(brain.at('execution')).toEqual([{ method: 'finish', input: { status: 'ok', value: null } }])
  })

  it('has ended when its end was acknowledged, although its own answer is lost', async () => {
    instead = async (_, body) => {
      const { callback } = JSON.parse(body)
      const said = await fetch(callback.url, {
        method: 'POST',
        headers: { authorization: `Bearer ${callback.token}` },
        body: JSON.stringify({ method: 'finish', input: null }),
      })
      expect(await said.json()).toEqual({ sequence: 1 })
      return undefined
    }
    expect(await callRelayed()).toEqual({ type: 'accepted' })
    expect(finishes()).toHaveLength(1)
  })

  it('is unknown when Brain\u2019s answer to its end gets lost, which is not said again', async () => {
    brain.answer = () => undefined
    run = async (_, ctx) => {
      await expect(ctx.finish(null)).rejects.toMatchObject({ code: 'ambiguous' })
      await ctx.finish(null)
    }
    expect(await callRelayed()).toMatchObject({ type: 'unknown' })
    expect(finishes()).toHaveLength(1)
    expect(observed).toHaveLength(1)
  })

  it('has nothing beyond its request: its signal aborts and its capability is gone', async () => {
    let ctx: any
    run = async (_, given) => {
      ctx = given
      return null
    }
    await callRelayed()
    if (!ctx.signal.aborted) await once(ctx.signal, 'abort')
    await expect(ctx.emitResult(null)).rejects.toMatchObject({ name: 'AbortError' })
    const { token } = observed[0].callback
    const late = await post('/v1/callback', { method: 'finish', input: null }, { authorization: `Bearer ${token}` })
    expect(late.status).toBe(403)
    // So is what arrives slower than its call is over.
    const slow = new TransformStream<Uint8Array, Uint8Array>()
    let answer: Promise<Response> | undefined
    instead = (_, text) => {
      const headers = { authorization: `Bearer ${JSON.parse(text).callback.token}` }
      const init = { method: 'POST', headers, body: slow.readable, duplex: 'half' }
      answer = bridge.callback(new Request('http://bridge', init as RequestInit))
      return Response.json({ type: 'completed' })
    }
    expect(await callRelayed()).toEqual({ type: 'returned' })
    const writer = slow.writable.getWriter()
    await writer.write(new TextEncoder().encode(JSON.stringify({ method: 'finish', input: null })))
    await writer.close()
    expect((await answer)?.status).toBe(403)
    expect(brain.at('execution')).toHaveLength(1)
  })

  it.each([
    [{ method: 'emit', input: {} }, 400],
    [{ method: 'model', input: {} }, 400],
    [{ method: 'result', input: { status: 'ok' } }, 400],
    ['not json', 400],
    [{ method: 'result', input: 'x'.repeat(2 ** 20) }, 413],
  ])('may say results and its end only: %.60j', async (body, status) => {
    let relayed: Response | undefined
    instead = async (_, text) => {
      relayed = await post('/v1/callback', body, { authorization: `Bearer ${JSON.parse(text).callback.token}` })
      return Response.json({ type: 'completed' })
    }
    await callRelayed()
    expect(relayed?.status).toBe(status)
    expect(brain.requests).toEqual([])
  })

  it('says at most 4 MiB at once', async () => {
    let status = 0
    instead = async (_, text) => {
      const { url, token } = JSON.parse(text).callback
      const body = JSON.stringify({ method: 'result', input: 'x'.repeat(4 * 2 ** 20) })
      const headers = { authorization: `Bearer ${token}` }
      status = (await bridge.callback(new Request(url, { method: 'POST', headers, body }))).status
      return Response.json({ type: 'completed' })
    }
    await callRelayed()
    expect(status).toBe(413)
  })

  it('has sixteen things to say at once at most', async () => {
    const sixteen = Promise.withResolvers<void>()
    brain.answer = async () => {
      await sixteen.promise
      return { body: 1 }
    }
    let statuses: number[] = []
    instead = async (_, text) => {
      const { token } = JSON.parse(text).callback
      const say = async () => {
        const { status } = await post(
          '/v1/callback',
          { method: 'result', input: null },
          { authorization: `Bearer ${token}` },
        )
        if (status === 503) sixteen.resolve()
        return status
      }
      statuses = await Promise.all(Array.from({ length: 17 }, say))
      return Response.json({ type: 'completed' })
    }
    expect(await callRelayed()).toEqual({ type: 'returned' })
    expect(statuses.filter((status) => status === 200)).toHaveLength(16)
    expect(statuses).toContain(503)
  })
})

describe('a call over HTTP', () => {
  it('is stopped by a cancel and at its deadline, and asks nothing again', async () => {
    const begun = Promise.withResolvers<void>()
    const stopped = Promise.withResolvers<AbortSignal>()
    run = async (_, { signal }) => {
      begun.resolve()
      await once(signal, 'abort')
      stopped.resolve(signal)
      return null
    }
    const call = callPlain()
    await begun.promise
    const cancel = { type: 'cancel', target_sequence: commands.last }
    expect(await receiptOf(cancel, configuration1())).toEqual({ type: 'accepted' })
    expect(await call).toMatchObject({ type: 'failure', code: 'cancelled' })
    expect((await stopped.promise).aborted).toBe(true)
    expect(await callPlain({ id: '1' }, { deadline_ms: 400 })).toMatchObject({ type: 'failure', code: 'timeout' })
    expect(await callRelayed({ id: '1' }, {}, 400)).toMatchObject({ type: 'failure', code: 'timeout' })
    expect(observed).toHaveLength(3)
  })

  it.each<[string, () => Response | undefined, object]>([
    ['no answer', () => undefined, { type: 'unknown' }],
    ['500', () => new Response('', { status: 500 }), { type: 'unknown' }],
    ['no JSON', () => new Response('fine'), { type: 'unknown' }],
    ['another type', () => Response.json({ type: 'done' }), { type: 'unknown' }],
    ['another version', () => Response.json({ type: 'completed' }), { type: 'unknown' }],
    ['too much', () => Response.json({ type: 'success', value: 'x'.repeat(4 * 2 ** 20) }), { type: 'unknown' }],
    ['a failure in doubt', () => Response.json({ type: 'failure', code: 'unknown', message: '' }), { type: 'unknown' }],
    ['404', () => new Response('', { status: 404 }), { type: 'failure', code: 'tool_http_status' }],
    ['a redirect', () => Response.redirect('https://app.example'), { type: 'failure', code: 'tool_http_status' }],
  ])('that is answered with %s is not made again', async (_, answer, receipt) => {
    instead = answer
    expect(await callPlain()).toMatchObject(receipt)
    expect(observed).toHaveLength(1)
    expect(brain.requests).toEqual([])
  })

  it('is not made when it is cancelled before it is approved, whenever that is', async () => {
    const asking = Promise.withResolvers<void>()
    const approving = Promise.withResolvers<Approval | undefined>()
    const sent: unknown[] = []
    const slow = createHttpEnvironment({
      authorize: () => {
        asking.resolve()
        return approving.promise
      },
      request: (request) => {
        sent.push(request)
        return Promise.resolve({ status: 200, body: '{"type":"success","value":1}' })
      },
    })
    const call = commands.next(execute(descriptorOf(httpTool(plain, { env: env1() })), { id: '1' }), configuration1())
    const calling = slow.handle(call)
    await asking.promise
    await slow.handle(commands.next({ type: 'cancel', target_sequence: call.operation.sequence }, configuration1()))
    expect((await calling).receipt).toMatchObject({ type: 'failure', code: 'cancelled' })
    approving.resolve(approval)
    await setImmediate()
    expect(sent).toEqual([])
  })

  it('is denied when its operator approves in a way that cannot be used, and nothing of that is told', async () => {
    approval = { tools: ['lookup'], token: 'secret\n' }
    const message = 'Cannot call the application: authorize gave no approval: token cannot be used'
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'denied', message })
  })

  it('that is delivered again is not made again', async () => {
    const command = commands.next(
      execute(descriptorOf(httpTool(plain, { env: env1() })), { id: '1' }),
      configuration1(),
    )
    const answers = await Promise.all([post('/v1/operations', command), post('/v1/operations', command)])
    expect(await answers[0]?.json()).toEqual(await answers[1]?.json())
    expect(observed).toHaveLength(1)
  })
})

describe('a bridge', () => {
  it('asks its operator for every operation, and says what is approved', async () => {
    expect(await receiptOf({ type: 'setup', configuration: null }, configuration1())).toEqual({ type: 'accepted' })
    await callPlain()
    expect(await receiptOf({ type: 'call', name: 'inspect', input: {} }, configuration1())).toEqual({
      type: 'result',
      output: { tools: ['lookup'], timeoutMs: 30_000 },
    })
    const about = { sessionId: 'ses_1', environment: 'remote', configuration: { binding: 'shop' } }
    expect(asked).toEqual([
      { operation: 'setup', ...about },
      { operation: 'execute', ...about, tool: 'lookup' },
      { operation: 'call', ...about },
    ])
  })

  it('calls nobody that is not approved, and no tool that is not', async () => {
    approval = { endpoint: endpoint('/v1'), tools: ['other'] }
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'denied' })
    approval = undefined
    for (const request of [{ type: 'setup' }, { type: 'call', name: 'inspect', input: {} }])
      expect(await receiptOf(request, configuration1())).toMatchObject({ type: 'failure', code: 'denied' })
    expect(await callPlain()).toMatchObject({ type: 'failure', code: 'denied' })
    for (const bad of ['nowhere', 'ftp://app.example', 'http://user:word@127.0.0.1'])
      expect(await callPlain((approval = { endpoint: bad, tools: ['lookup'] }))).toMatchObject({ code: 'denied' })
    expect(observed).toEqual([])
  })

  it('does not say why its operator denies something', async () => {
    const silent = createHttpEnvironment({ authorize: () => Promise.reject(new Error('secret reason')) })
    const { receipt } = await silent.handle(commands.next({ type: 'setup' }, configuration1()))
    expect(receipt).toMatchObject({ type: 'failure', code: 'denied' })
    expect(JSON.stringify(receipt)).not.toContain('secret')
  })

  it('takes configurations and descriptors of its own only', async () => {
    expect(await receiptOf({ type: 'setup' }, { configuration: { binding: 'a', more: 1 } })).toMatchObject({
      code: 'invalid_configuration',
    })
    expect(await receiptOf(execute({ type: 'http_json' }, {}), configuration1())).toMatchObject({ code: 'unsupported' })
    expect(Object.keys(bridge.methods)).toEqual(['inspect'])
  })

  it.each([
    'https://127.0.0.1',
    'https://[::1]',
    'https://10.0.0.1',
    'https://169.254.169.254',
    'https://[::ffff:127.0.0.1]',
    'https://[64:ff9b::7f00:1]',
    'https://localhost',
    'https://app.example:8443',
    'http://app.example',
  ])('connects to public addresses over HTTPS at 443 only unless it is told otherwise: not %s', async (where) => {
    const careful = createHttpEnvironment({ authorize: () => ({ endpoint: where, tools: ['lookup'] }) })
    const request = execute(descriptorOf(httpTool(plain, { env: env1() })), { id: '1' })
    const { receipt } = await careful.handle(commands.next(request, configuration1()))
    expect(receipt).toEqual({
      type: 'failure',
      code: 'tool_unreachable',
      message: 'The application cannot be reached',
      retryable: false,
    })
  })

  it('may send in another way, and ask Brain in another way', async () => {
    const sent: unknown[] = []
    const other = createHttpEnvironment({
      authorize: () => ({ endpoint: 'https://app.example', tools: ['lookup'], timeoutMs: 50 }),
      request: async ({ url, body, timeoutMs, mostBytes }) => {
        sent.push({ url: url.href, tool: JSON.parse(body).tool.name, isShort: timeoutMs <= 50, mostBytes })
        return { status: 200, body: JSON.stringify({ type: 'success', value: null }) }
      },
      fetch: async (url, init) => {
        sent.push({ path: new URL(url).pathname, body: JSON.parse(init?.body as string) })
        return Response.json(3)
      },
    })
    const request = execute(descriptorOf(httpTool(plain, { env: env1() })), { id: '1' })
    await other.handle(commands.next(request, configuration1()))
    expect(sent).toEqual([
      { url: 'https://app.example/', tool: 'lookup', isShort: true, mostBytes: 4 * 2 ** 20 },
      { path: '/execution', body: { method: 'finish', input: { status: 'ok', value: null } } },
    ])
    const relayed = execute(descriptorOf(applicationTool(optional, { env: env2() })), { id: '1' })
    expect(await other.handle(commands.next(relayed, configuration2()))).toMatchObject({
      receipt: { type: 'failure', code: 'unsupported', message: expect.stringContaining('callbackUrl') },
    })
  })
})

describe('serveEnvironment()', () => {
  const command = () => commands.next({ type: 'setup' }, configuration1())

  it.each<[number, string, () => RequestInit]>([
    [401, '/v1/operations', () => ({ method: 'POST', headers: { authorization: 'Bearer x' }, body: '{}' })],
    [401, '/v1/operations', () => ({ method: 'POST', body: '{}' })],
    [405, '/v1/operations', () => ({ method: 'GET' })],
    [404, '/v1/other', () => ({ method: 'POST', body: '{}' })],
    [403, '/v1/callback', () => ({ method: 'POST', body: '{}' })],
    [
      403,
      '/v1/callback',
      () => ({ method: 'POST', headers: { authorization: `Bearer ${'0'.repeat(64)}` }, body: '{}' }),
    ],
  ])('answers %i at %s', async (status, path, init) => {
    const response = await fetch(served.url + path, init())
    expect(response.status).toBe(status)
    expect(Object.keys((await response.json()) as object)).toEqual(['code', 'message', 'retryable'])
  })

  it('answers 400 to no command, 413 to too much of one', async () => {
    expect((await post('/v1/operations', '{')).status).toBe(400)
    expect((await post('/v1/operations', {})).status).toBe(400)
    expect((await post('/v1/operations', 'x'.repeat(2 ** 20 + 1))).status).toBe(413)
  })

  it('reads nothing of what comes without the capability of a call', async () => {
    const outgoing = request(`${served.url}/v1/callback`, {
      method: 'POST',
      headers: { authorization: `Bearer ${'0'.repeat(64)}`, 'content-length': 2 ** 20 },
    })
    outgoing.on('error', () => {})
    outgoing.flushHeaders()
    const [{ statusCode, headers }] = (await once(outgoing, 'response')) as [IncomingMessage]
    outgoing.destroy()
    expect({ statusCode, connection: headers.connection }).toEqual({ statusCode: 403, connection: 'close' })
  })

  it('lets somebody else say who may come in, and leaks nothing of what fails', async () => {
    await using stack = new AsyncDisposableStack()
    const other = await serveEnvironment(() => Promise.reject(new Error('secret fault')), {
      authenticate: ({ headers }) => {
        if (headers.authorization === undefined) throw new Error('secret reason')
        return headers.authorization === 'Bearer b'
      },
    })
    stack.defer(() => other.close())
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${other.url}/v1/operations`, { method: 'POST', headers, body: '{}' })
      return { status: response.status, text: await response.text() }
    }
    const answers = [await ask({}), await ask({ authorization: 'Bearer c' }), await ask({ authorization: 'Bearer b' })]
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 500])
    expect(JSON.stringify(answers)).not.toContain('secret')
    expect((await fetch(`${other.url}/v1/callback`, { method: 'POST', body: '{}' })).status).toBe(404)
  })

  it('needs to know who may come in', async () => {
    for (const options of [
      {},
      { token: 'a', authenticate: () => true },
      { token: '' },
      { token: 'a', maxBodyBytes: 0 },
    ])
      await expect(serveEnvironment(bridge.handle, options)).rejects.toThrow(TypeError)
  })

  it('aborts what is under way when it is closed', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    const other = await serveEnvironment(
      (_, signal) => {
        begun.resolve(signal!)
        return new Promise(() => {})
      },
      { token: 'a' },
    )
    const asking = fetch(`${other.url}/v1/operations`, {
      method: 'POST',
      headers: { authorization: 'Bearer a' },
      body: JSON.stringify(command()),
    })
    const signal = await begun.promise
    await Promise.all([other.close(), expect(asking).rejects.toThrow()])
    if (!signal.aborted) await once(signal, 'abort')
  })
})

describe('createToolHandler()', () => {
  const call = (more: object = {}): HttpToolCall => ({
    contract: 'http-tool/v1',
    sessionId: 'ses_1',
    environment: 'remote',
    sequence: 1,
    tool: (descriptorOf(httpTool(plain, { env: env1() })) as any).definition,
    input: { id: '1' },
    deadlineAtMs: Date.now() + 10_000,
    ...more,
  })
  const ask = (body: unknown, init: RequestInit = {}) =>
    new Request('https://app.example/', {
      method: 'POST',
      headers: { authorization: 'Bearer app-token' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
    })
  const handler = handlerOf([plain], { maxBodyBytes: 4096 })
  const answerTo = async (body: unknown, init?: RequestInit): Promise<any> => (await handler(ask(body, init))).json()

  it.each<[number, () => Request]>([
    [405, () => new Request('https://app.example/', { method: 'GET' })],
    [413, () => ask('x'.repeat(4097))],
    [400, () => ask('x')],
    [400, () => ask({})],
    [400, () => ask(call({ more: 1 }))],
    [400, () => ask(call({ contract: 'http-tool/v3' }))],
    [400, () => ask(call({ contract: 'http-tool/v2', options: {} }))],
    [
      400,
      () =>
        ask(call({ contract: 'http-tool/v2', options: {}, callback: { url: 'file:///a', token: 't', methods: [] } })),
    ],
    [400, () => ask(`${'['.repeat(100)}${']'.repeat(100)}`)],
  ])('answers %i to what is no call', async (status, request) => {
    const response = await handler(request())
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ type: 'failure', code: 'invalid_request' })
  })

  it('looks at deadline, authority, definition and input, in this order', async () => {
    const headers = { authorization: 'Bearer x' }
    const definition = { ...call().tool, description: 'Something else' }
    const wrong = { tool: definition, input: 3 }
    expect(await answerTo(call({ ...wrong, deadlineAtMs: 1 }), { headers })).toMatchObject({ code: 'timeout' })
    expect(await answerTo(call(wrong), { headers })).toMatchObject({ code: 'denied' })
    expect(await answerTo(call(wrong))).toMatchObject({ code: 'incompatible_tool' })
    expect(await answerTo(call({ input: 3 }))).toMatchObject({ code: 'invalid_input' })
    const reordered = Object.fromEntries(Object.entries(call().tool).toReversed())
    expect(await answerTo(call({ tool: reordered }))).toEqual({ type: 'success', value: { status: 'found' } })
    const callback = { url: 'https://bridge.example', token: 't', methods: [] }
    const other = call({ contract: 'http-tool/v2', options: { prefix: 'b' }, callback, input: 3 })
    expect(await answerTo(other)).toMatchObject({ code: 'incompatible_tool' })
  })

  it('takes inputs as deep as Brain does, and no number that it would change', async () => {
    const deep = Array.from({ length: 62 }).reduce<object>((inner) => [inner], [])
    const deepest = call({ input: { id: '1', nested: deep } })
    expect(await answerTo(deepest)).toEqual({ type: 'success', value: { status: 'found' } })
    const text = JSON.stringify(deepest).replace('"id":', '"more":2512292042121000001,"id":')
    expect(await answerTo(text)).toMatchObject({ message: expect.stringContaining('cannot be carried exactly') })
  })

  it('gives its operator request and call to judge, and takes nothing but true', async () => {
    const judged: unknown[] = []
    for (const verdict of [() => undefined, () => 'yes', () => Promise.reject(new Error('secret'))]) {
      const judging = handlerOf([plain], {
        authorize: (request, given) => {
          judged.push([request.headers.get('authorization'), given.tool.name, given.sessionId])
          return verdict() as never
        },
      })
      expect(await (await judging(ask(call()))).json()).toEqual({
        type: 'failure',
        code: 'denied',
        message: 'The call is not authorized',
      })
    }
    expect(judged).toEqual(Array(3).fill(['Bearer app-token', 'lookup', 'ses_1']))
  })

  it('ends a call at its deadline, whatever its function does, and when its request is given up', async () => {
    run = () => new Promise(() => {})
    expect(await answerTo(call({ deadlineAtMs: Date.now() + 20 }))).toMatchObject({ code: 'timeout' })
    const gone = new AbortController()
    const signals: AbortSignal[] = []
    run = (_, { signal }) => {
      signals.push(signal)
      gone.abort()
      return new Promise(() => {})
    }
    expect(await answerTo(call(), { signal: gone.signal })).toMatchObject({ type: 'failure' })
    expect(signals[0]?.aborted).toBe(true)
  })

  it('asks the bridge as it is told to', async () => {
    const said: unknown[] = []
    const own = createToolHandler({
      tools: [plain],
      authorize,
      callbackRequest: async (url, init) => {
        said.push([url, (init as any).headers.authorization, JSON.parse(init?.body as string)])
        return Response.json({ sequence: 5 })
      },
    })
    run = (_, ctx) => ctx.finish(null)
    const callback = { url: 'https://bridge.example/v1/callback', token: 't', methods: ['finish'] }
    const answer = await own(ask(call({ contract: 'http-tool/v2', options: {}, callback })))
    expect(await answer.json()).toEqual({ type: 'completed' })
    expect(said).toEqual([[callback.url, 'Bearer t', { method: 'finish', input: { status: 'ok', value: null } }]])
  })

  it.each([
    [{ tools: {} }, 'tools must be a list'],
    [{ tools: [lookup] }, 'tools must be placed functions'],
    [{ tools: [plain, plain] }, 'there are two tools named "lookup"'],
    [{ tools: [], authorize: true }, 'authorize must be a function'],
    [{ tools: [], maxBodyBytes: 0 }, 'maxBodyBytes must be'],
    [{ tools: [], token: 'a' }, 'it has no member "token"'],
  ])('is not made of %o', (options, rule) => {
    expect(() => createToolHandler({ authorize, ...options } as never)).toThrow(rule)
  })
})
