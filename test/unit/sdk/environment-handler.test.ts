import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { BrainError, environmentHandler, environmentReporter, type EnvironmentHandler } from '../../../src/sdk/index.ts'
import { EnvironmentCommands } from '../../support/environment-commands.ts'
import { bodyOf, EnvironmentServicesServer } from '../../support/environment-services.ts'

const TOOL = ['emit', 'result', 'returned', 'finish', 'model', 'environments', 'telemetry']
const LOOP = 'emit model environments telemetry dispatch events set_transcript kv_read kv_put kv_delete'.split(' ')

const brain = new EnvironmentServicesServer()
let handler: EnvironmentHandler
/** The HTTP listener of the environment, as an application writes one. */
const listener = createServer((request, response) => {
  void (async () => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      response.end(JSON.stringify(await handler.run(JSON.parse(await bodyOf(request)), gone.signal)))
    } catch (error) {
      const { status, code, message } = error as BrainError
      response.writeHead(status).end(JSON.stringify({ code, message }))
    }
  })()
})

const commands = new EnvironmentCommands()
const operation = (request: object, more?: object) => commands.next(request, more)

async function send(command: unknown, signal?: AbortSignal) {
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/v1/operations`
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(command), ...(signal && { signal }) })
  return { status: response.status, body: (await response.json()) as any }
}

/** @returns the receipt of an operation that must have been answered as one */
async function receiptOf(request: object, more: object = {}) {
  const command = operation(request, more)
  const { status, body } = await send(command)
  expect({ status, ...body, receipt: {} }).toEqual({
    status: 200,
    contract: 'environment/v1',
    sequence: command.operation.sequence,
    receipt: {},
  })
  return body.receipt
}

const callback = (...methods: string[]) => brain.callback('execution', 'execution-token', ...methods)
const execute = (...methods: string[]) => ({
  type: 'execute',
  implementation: { type: 'script' },
  input: { n: 1 },
  callback: callback(...(methods.length === 0 ? TOOL : methods)),
})

beforeAll(async () => {
  await brain.start()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
})
afterAll(async () => {
  listener.closeAllConnections()
  listener.close()
  await brain[Symbol.asyncDispose]()
})
beforeEach(() => {
  brain.requests.length = 0
  brain.answer = () => ({ body: brain.requests.length })
})

describe('a controller', () => {
  it('is told options, names and services of an operation, all of it frozen', async () => {
    let seen: any
    handler = environmentHandler({
      options: z.object({ labels: z.array(z.string()), deep: z.boolean().default(true) }),
      setup: (ctx) => {
        expectTypeOf(ctx.options).toEqualTypeOf<{ labels: string[]; deep: boolean }>()
        seen = ctx
      },
    })
    const configuration = { labels: ['a'] }
    const more = { configuration, template: 'remote', binding: { name: 'remote-2', sequence: 7 } }
    expect(await receiptOf({ type: 'setup', configuration }, more)).toEqual({ type: 'accepted' })
    expect(seen).toMatchObject({
      options: { labels: ['a'], deep: true },
      configuration,
      sessionId: 'ses_1',
      environment: { name: 'remote-2', sequence: 7 },
      template: 'remote',
      sequence: commands.last,
      deadline: undefined,
    })
    for (const part of [seen, seen.options, seen.options.labels, seen.environment, seen.reporter])
      expect(Object.isFrozen(part)).toBe(true)
  })

  it('takes what it needs nothing done for, and the configuration of a setup that has no other', async () => {
    const seen: unknown[] = []
    handler = environmentHandler({ setup: (ctx) => void seen.push(ctx.configuration, ctx.options) })
    expect(await receiptOf({ type: 'setup', configuration: [1] })).toEqual({ type: 'accepted' })
    expect(seen).toEqual([[1], {}])
    handler = environmentHandler({})
    expect(handler.methods).toEqual({})
    for (const type of ['setup', 'detach', 'teardown']) expect(await receiptOf({ type })).toEqual({ type: 'accepted' })
  })

  it('names in the answer to setup what is called after every turn, if it is declared', async () => {
    const methods = { tidy: { description: 'Tidies up', input: z.any(), run: () => undefined } }
    handler = environmentHandler({ methods, setup: () => ({ onTurnEnd: 'tidy' }) })
    expect(await receiptOf({ type: 'setup' })).toEqual({ type: 'accepted', on_turn_end: 'tidy' })
    handler = environmentHandler({ methods, setup: () => ({ onTurnEnd: 'toString' }) })
    expect(await receiptOf({ type: 'setup' })).toMatchObject({ type: 'failure', code: 'environment_error' })
  })

  it('calls declared methods with parsed input and checks what they give; there is no method but these', async () => {
    handler = environmentHandler({
      methods: {
        add: {
          description: 'Adds one',
          input: z.object({ n: z.number().default(1) }),
          output: z.object({ sum: z.number() }),
          run: ({ n }) => {
            expectTypeOf(n).toBeNumber()
            return n === 0 ? { sum: 'none' } : { sum: n + 1, more: true }
          },
        },
        quiet: { description: 'Says nothing', input: z.any(), effect: 'replace', run: () => undefined },
        odd: { description: 'Gives a date', input: z.any(), run: () => new Date() },
      },
    })
    expect(Object.keys(handler.methods)).toEqual(['add', 'quiet', 'odd'])
    expect(handler.methods['quiet']).toEqual({ description: 'Says nothing', input_schema: {}, effect: 'replace' })
    const call = (name: string, input: unknown) => receiptOf({ type: 'call', name, input })
    expect(await call('add', {})).toEqual({ type: 'result', output: { sum: 2 } })
    expect(await call('quiet', null)).toEqual({ type: 'result', output: null })
    expect(await call('add', { n: 'x' })).toMatchObject({ type: 'failure', code: 'invalid_input', retryable: false })
    expect(await call('add', { n: 0 })).toMatchObject({ type: 'failure', code: 'invalid_output' })
    expect(await call('odd', null)).toMatchObject({ code: 'invalid_output', message: expect.stringMatching('Date') })
    for (const name of ['inspect', 'toString', 'constructor'])
      expect(await call(name, {})).toMatchObject({ type: 'failure', code: 'unsupported' })
  })

  it('does not do what it has no function for', async () => {
    handler = environmentHandler({})
    expect(await receiptOf(execute())).toMatchObject({ type: 'failure', code: 'unsupported' })
    expect(await receiptOf({ type: 'cancel', target_sequence: 1 })).toMatchObject({ code: 'unsupported' })
  })

  it.each([
    [
      new BrainError(0, 'busy', 'Later', { retryable: true, details: { at: 3 } }),
      { type: 'failure', code: 'busy', message: 'Later', retryable: true, details: { at: 3 } },
    ],
    [new BrainError(0, 'ambiguous', 'Who knows'), { type: 'unknown', message: 'Who knows' }],
    [new BrainError(0, 'unknown', 'Who knows'), { type: 'unknown', message: 'Who knows' }],
    [
      new BrainError(0, 'not an identifier', 'x'),
      { type: 'failure', code: 'environment_error', message: 'x', retryable: false },
    ],
    [
      new Error('a'.repeat(5000)),
      { type: 'failure', code: 'environment_error', message: 'a'.repeat(4096), retryable: false },
    ],
    ['text', { type: 'failure', code: 'environment_error', message: 'text', retryable: false }],
    [undefined, { type: 'failure', code: 'environment_error', message: 'undefined', retryable: false }],
  ])('answers what is thrown as it stands (%#)', async (thrown, receipt) => {
    handler = environmentHandler({
      setup: () => {
        // oxlint-disable-next-line typescript/only-throw-error -- handlers throw anything
        throw thrown
      },
    })
    expect(await receiptOf({ type: 'setup' })).toEqual(receipt)
  })

  it('refuses a configuration that its schema does not take, and calls nobody', async () => {
    let ran = 0
    handler = environmentHandler({ options: z.object({ owner: z.string() }), setup: () => void ran++ })
    expect(await receiptOf({ type: 'setup', configuration: {} })).toMatchObject({ code: 'invalid_configuration' })
    handler = environmentHandler({ options: z.object({ owner: z.string() }) })
    expect(await receiptOf({ type: 'setup', configuration: {} })).toMatchObject({ code: 'invalid_configuration' })
    expect(await receiptOf({ type: 'teardown' })).toEqual({ type: 'accepted' })
    expect(ran).toBe(0)
  })

  it.each([
    ['another contract', { contract: 'environment/v2' }, {}, 'unsupported'],
    ['no binding', {}, { binding: undefined }, 'invalid_request'],
    ['another request', {}, { request: { type: 'dance' } }, 'unsupported'],
    ['a cancel without target', {}, { request: { type: 'cancel' } }, 'invalid_request'],
    [
      'a callback that is no web address',
      {},
      { context: { url: 'file:///a', token: 't', methods: [] } },
      'invalid_request',
    ],
    [
      'more methods than there are',
      {},
      { context: { url: brain, token: 't', methods: Array(65).fill('a') } },
      'invalid_request',
    ],
  ])('refuses a command with %s, and calls nobody', async (_, command, about, code) => {
    handler = environmentHandler({ setup: () => expect.unreachable() })
    const whole = operation({ type: 'setup', configuration: null }, about)
    const { status, body } = await send({ ...whole, ...command })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { sequence: commands.last, receipt: { type: 'failure', code } },
    })
  })

  it.each([
    null,
    [],
    {},
    { operation: { session_id: 'a b', environment: 'e', sequence: 1 } },
    { operation: { sequence: 0 } },
  ])('rejects what names no operation: %j', async (command) => {
    handler = environmentHandler({})
    expect(await send(command)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  it.each([
    [{ needs: [] }, 'it has no member "needs"'],
    [{ setup: {} }, 'setup must be a function'],
    [{ options: z.string() }, 'options must be an object schema'],
    [{ methods: { a: { description: 'x', input: z.any() } } }, 'method "a": run must be a function'],
  ])('is not made of %o', (contract, rule) => {
    expect(() => environmentHandler(contract as never)).toThrow(rule)
    expect(() => environmentHandler({}, { fecth: fetch } as never)).toThrow('it has no member "fecth"')
  })
})

describe('a command that is delivered again', () => {
  it('is answered and not done again, while it is done and after it', async () => {
    let ran = 0
    const may = Promise.withResolvers<void>()
    handler = environmentHandler({
      execute: async () => {
        ran++
        await may.promise
        return { ran }
      },
    })
    const command = operation(execute())
    const first = send(command)
    const second = send(command)
    may.resolve()
    const answers = [await first, await second, await send(command)]
    expect(answers.map(({ body }) => body.receipt)).toEqual(Array(3).fill({ type: 'result', output: { ran: 1 } }))
    const { sequence } = command.operation
    await send(operation(execute(), { sequence, environment: 'other' }))
    await send(operation(execute(), { sequence, session_id: 'ses_2' }))
    expect(ran).toBe(3)
  })

  it('is unknown once its answer is not kept any more, and is not done again either', async () => {
    let ran = 0
    handler = environmentHandler({ execute: () => `${++ran} ${'x'.repeat(2 ** 20)}` })
    const commands = Array.from({ length: 5 }, () => operation(execute()))
    for (const command of commands) await handler.run(command)
    const again = await Promise.all(commands.map((command) => handler.run(command)))
    expect(again.map(({ receipt }) => receipt.type)).toEqual(['unknown', 'unknown', 'result', 'result', 'result'])
    expect(ran).toBe(5)
  })

  it('is known among the last 16384, whatever they were', async () => {
    let ran = 0
    handler = environmentHandler({ setup: () => void ran++ })
    const [first, second] = [operation({ type: 'setup' }), operation({ type: 'setup' })]
    for (const command of [first, second]) await handler.run(command)
    for (let more = 0; more < 16_383; more++) await handler.run(operation({ type: 'setup' }))
    await handler.run(second)
    expect(ran).toBe(16_385)
    await handler.run(first)
    expect(ran).toBe(16_386)
  })

  it('has 1024 others at most beside it', async () => {
    const may = Promise.withResolvers<void>()
    handler = environmentHandler({ setup: () => may.promise })
    const running = Array.from({ length: 1024 }, () => handler.run(operation({ type: 'setup' })))
    const { receipt } = await handler.run(operation({ type: 'setup' }))
    expect(receipt).toMatchObject({ type: 'failure', code: 'overloaded', retryable: true })
    may.resolve()
    await Promise.all(running)
    expect(await handler.run(operation({ type: 'setup' }))).toMatchObject({ receipt: { type: 'accepted' } })
  })
})

describe('the services of an operation', () => {
  const services = () => ({
    context: brain.callback('context', 'context-token', 'emit', 'result', 'environments'),
    reporter: brain.callback('reporter', 'reporter-token', 'emit', 'result'),
  })
  const observation = { scope: 'resource', resource: 'disk', code: 'full', message: 'It is full' } as const

  it('say what the wire says, each with its own bearer', async () => {
    handler = environmentHandler({
      setup: async (ctx) => {
        expect(await ctx.emit('seen', { n: 1 })).toBe(1)
        expect(await ctx.observe(observation, { content: 'Full.' })).toBe(2)
        expect(await ctx.environments.get(ctx.environment)).toBe(3)
        expect(await ctx.reporter.emit('seen', { n: 2 })).toBe(4)
        expect(await ctx.reporter.observe(observation)).toBe(5)
      },
    })
    brain.answer = ({ path }) => {
      const sequence = brain.requests.length
      return { body: path === '/reporter' ? { sequence } : sequence }
    }
    expect(await receiptOf({ type: 'setup' }, services())).toEqual({ type: 'accepted' })
    expect(brain.requests).toEqual([
      {
        path: '/context',
        token: 'context-token',
        body: { method: 'emit', input: { event_type: 'seen', data: { n: 1 } } },
      },
      {
        path: '/context',
        token: 'context-token',
        body: { method: 'result', input: { observation, content: 'Full.' } },
      },
      {
        path: '/context',
        token: 'context-token',
        body: { method: 'environments', input: { operation: 'get', environment: { name: 'remote', sequence: 1 } } },
      },
      { path: '/reporter', token: 'reporter-token', body: { type: 'event', event_type: 'seen', data: { n: 2 } } },
      { path: '/reporter', token: 'reporter-token', body: { type: 'result', output: { observation } } },
    ])
  })

  it('end with it, also those under way; the reporter goes on, and comes back from what was kept of it', async () => {
    let ctx: any
    let pending: Promise<unknown> | undefined
    const asked = Promise.withResolvers<void>()
    brain.answer = () => {
      asked.resolve()
      return new Promise(() => {})
    }
    handler = environmentHandler({
      setup: async (given) => {
        ctx = given
        pending = given.emit('slow', null)
        await asked.promise
      },
    })
    expect(await receiptOf({ type: 'setup' }, services())).toEqual({ type: 'accepted' })
    await expect(pending).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'Cannot go on: the operation is over',
    })
    brain.answer = () => ({ body: { sequence: 9 } })
    await expect(ctx.emit('late', null)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(ctx.environments.list()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await ctx.reporter.emit('late', null)).toBe(9)
    expect(JSON.stringify(ctx.reporter)).not.toContain('reporter-token')
    const kept = JSON.parse(JSON.stringify(ctx.reporter.callback))
    expect(await environmentReporter(kept).observe(observation)).toBe(9)
    expect(() => environmentReporter({} as never)).toThrow('give what ctx.reporter.callback was')
  })

  it('are refused with not_granted where they were not granted, and nothing is sent', async () => {
    handler = environmentHandler({
      setup: async (ctx) => {
        await expect(ctx.reporter.emit('a', null)).rejects.toMatchObject({ code: 'not_granted' })
        await expect(ctx.environments.list()).rejects.toMatchObject({ code: 'not_granted' })
        await ctx.observe(observation)
      },
    })
    const context = brain.callback('context', 't', 'emit')
    expect(await receiptOf({ type: 'setup' }, { context })).toMatchObject({ type: 'failure', code: 'not_granted' })
    expect(brain.requests).toEqual([])
  })

  it('refuse as Brain does, and are in doubt when no answer comes back', async () => {
    const answers = [
      { status: 400, body: { code: 'invalid_request', message: 'A reserved kind', retryable: false } },
      { status: 502, body: 'gateway' },
      undefined,
      { body: 'x'.repeat(32 * 2 ** 20) },
    ]
    brain.answer = () => answers[brain.requests.length - 1]
    const codes: string[] = []
    handler = environmentHandler({
      setup: async (ctx) => {
        for (const _ of answers) await ctx.emit('a', null).catch(({ code }: BrainError) => codes.push(code))
        await expect(ctx.emit('a b', null)).rejects.toThrow('must be an identifier')
        await expect(ctx.emit('a', undefined)).rejects.toThrow('data is undefined, which is not JSON')
        brain.answer = () => undefined
        await ctx.emit('a', null)
      },
    })
    expect(await receiptOf({ type: 'setup' }, services())).toMatchObject({ type: 'unknown' })
    expect(codes).toEqual(['invalid_request', 'http_error', 'ambiguous', 'ambiguous'])
  })

  it('ask eight things at a time at most', async () => {
    const eight = Promise.withResolvers<void>()
    let most = 0
    let now = 0
    brain.answer = async () => {
      most = Math.max(most, ++now)
      if (now === 8) eight.resolve()
      await eight.promise
      now--
      return { body: 1 }
    }
    handler = environmentHandler({
      setup: async (ctx) => void (await Promise.all(Array.from({ length: 20 }, () => ctx.environments.list()))),
    })
    expect(await receiptOf({ type: 'setup' }, services())).toEqual({ type: 'accepted' })
    expect({ most, asked: brain.requests.length }).toEqual({ most: 8, asked: 20 })
  })
})

describe('an execution', () => {
  it('gets its descriptor and input as they are, and the deadline as an instant', async () => {
    let seen: any
    handler = environmentHandler({ execute: (request, ctx) => void (seen = { request, ctx }) })
    const before = Date.now()
    expect(await receiptOf({ ...execute(), deadline_ms: 60_000 })).toEqual({ type: 'returned' })
    expect(seen.request).toEqual({ implementation: { type: 'script' }, input: { n: 1 } })
    expect(seen.ctx.deadline.getTime() - before).toBeGreaterThanOrEqual(60_000)
    expect(seen.ctx.deadline.getTime() - before).toBeLessThan(120_000)
    expect(seen.ctx.execution.granted).toEqual(TOOL)
  })

  it('of a tool says what the wire says, in order, and nothing after its end', async () => {
    handler = environmentHandler({
      execute: async (_, { execution }) => {
        const unawaited = [execution.emit('begun', { at: 1 }), execution.emitResult({ n: 1 }, { content: 'One.' })]
        await execution.returned({ status: 'ok', value: 2 })
        await execution.model({ messages: [] })
        await execution.environments.list()
        await execution.telemetry({ ms: 3 })
        await execution.finish({ status: 'error', error: { code: 'gone', message: 'It is gone' } })
        await expect(execution.emit('late', null)).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(execution.finish()).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(execution.model({ messages: [] })).rejects.toMatchObject({ code: 'invalid_request' })
        await Promise.all(unawaited)
      },
    })
    expect(await receiptOf(execute())).toEqual({ type: 'accepted' })
    expect(new Set(brain.requests.map(({ token }) => token))).toEqual(new Set(['execution-token']))
    expect(brain.at('execution')).toEqual([
      { method: 'emit', input: { event_type: 'begun', data: { at: 1 } } },
      { method: 'result', input: { status: 'ok', value: { n: 1 }, content: 'One.' } },
      { method: 'returned', input: { status: 'ok', value: 2 } },
      { method: 'model', input: { messages: [] } },
      { method: 'environments', input: { operation: 'list' } },
      { method: 'telemetry', input: { ms: 3 } },
      { method: 'finish', input: { status: 'error', error: { code: 'gone', message: 'It is gone' } } },
    ])
  })

  it('of a tool goes on after its answer until it finishes', async () => {
    let ctx: any
    handler = environmentHandler({
      execute: (_, given) => {
        ctx = given
        return 'begun'
      },
    })
    expect(await receiptOf(execute())).toEqual({ type: 'result', output: 'begun' })
    expect(ctx.signal.aborted).toBe(false)
    await ctx.execution.emit('later', null)
    await ctx.execution.finish()
    expect(brain.at('execution').at(-1)).toEqual({ method: 'finish', input: null })
    await expect(ctx.emit('later', null)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('of an agentloop has its services until it is answered, with its own output as the answer', async () => {
    let after: any
    handler = environmentHandler({
      execute: async ({ input }, { execution }) => {
        after = execution
        const values = new Map<string, unknown>()
        brain.answer = ({ body: { method, input: given } }) => {
          if (method === 'kv_put') values.set(given.key, given.value)
          if (method === 'kv_delete') values.delete(given)
          const isThere = method === 'kv_read' && values.has(given)
          return { body: method === 'kv_read' ? (isThere ? { value: values.get(given) } : {}) : brain.requests.length }
        }
        expect(await execution.kv.get('a')).toBeUndefined()
        await execution.kv.set('a', null)
        expect(await execution.kv.get('a')).toBeNull()
        await execution.kv.delete('a')
        expect(await execution.kv.get('a')).toBeUndefined()
        await expect(execution.kv.set('a', undefined)).rejects.toThrow('value is undefined')
        await execution.dispatch([{ call_id: '1', name: 'a', environment: 'e', input: {} }])
        await execution.events(4)
        await execution.setTranscript([])
        await expect(execution.finish(1)).rejects.toMatchObject({ code: 'not_granted' })
        return input
      },
    })
    expect(await receiptOf({ ...execute(...LOOP), input: { result: 3 } })).toEqual({
      type: 'result',
      output: { result: 3 },
    })
    expect(brain.at('execution').slice(-3)).toEqual([
      { method: 'dispatch', input: [{ call_id: '1', name: 'a', environment: 'e', input: {} }] },
      { method: 'events', input: 4 },
      { method: 'set_transcript', input: [] },
    ])
    await expect(after.events(0)).rejects.toMatchObject({ code: 'invalid_request' })
    handler = environmentHandler({ execute: () => undefined })
    expect(await receiptOf(execute(...LOOP))).toEqual({ type: 'result', output: {} })
  })

  it('stays open when a result is malformed or refused, and is not finished twice when the answer got lost', async () => {
    handler = environmentHandler({
      execute: async (_, { execution }) => {
        await expect(execution.finish({ status: 'ok' })).rejects.toMatchObject({ code: 'invalid_output' })
        brain.answer = () => ({ status: 400, body: { code: 'emit_limit', message: 'Too much', retryable: false } })
        await expect(execution.finish('x')).rejects.toMatchObject({ code: 'emit_limit' })
        brain.answer = () => undefined
        await expect(execution.finish(null)).rejects.toMatchObject({ code: 'ambiguous' })
        await execution.finish(null)
      },
    })
    expect(await receiptOf(execute())).toMatchObject({ type: 'failure', code: 'invalid_request' })
    expect(brain.at('execution')).toHaveLength(2)
  })

  it.each(['cancel', 'detach', 'teardown'])('is told of a %s, also after its answer', async (type) => {
    const open: any[] = []
    const targets: number[] = []
    handler = environmentHandler({
      execute: (_, ctx) => void open.push(ctx),
      cancel: (target) => void targets.push(target.sequence),
    })
    await receiptOf(execute())
    const target_sequence = commands.last
    await receiptOf(execute(), { environment: 'other' })
    expect(await receiptOf({ type, target_sequence })).toEqual({ type: 'accepted' })
    expect(open.map(({ signal }) => signal.aborted)).toEqual([true, false])
    expect(open[0].signal.reason).toMatchObject({ name: 'AbortError' })
    expect(targets).toEqual(type === 'cancel' ? [target_sequence] : [])
    await expect(open[0].execution.emit('late', null)).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('is told of that among the newest 4096 that are open, and of its deadline in any case', async () => {
    const signals: AbortSignal[] = []
    const deadlines: Promise<unknown>[] = []
    handler = environmentHandler({
      execute: (_, { signal, deadline }) => {
        signals.push(signal)
        if (deadline !== undefined) deadlines.push(once(signal, 'abort'))
      },
      cancel: () => undefined,
    })
    const executed = Array.from({ length: 4097 }, () => operation(execute()))
    await handler.run(operation({ ...execute(), deadline_ms: 500 }))
    signals.length = 0
    for (const command of executed) await handler.run(command)
    await Promise.all(deadlines)
    for (const { operation: target } of executed.slice(0, 2))
      await handler.run(operation({ type: 'cancel', target_sequence: target.sequence }))
    expect(signals.slice(0, 3).map(({ aborted }) => aborted)).toEqual([false, true, false])
  })

  it('is over with an outcome other than ok, and never begins when its deadline has passed', async () => {
    let ctx: any
    handler = environmentHandler({
      execute: (_, given) => {
        ctx = given
        return { status: 'cancelled' }
      },
    })
    expect(await receiptOf(execute())).toEqual({ type: 'result', output: { status: 'cancelled' } })
    await expect(ctx.execution.emit('late', null)).rejects.toMatchObject({ code: 'invalid_request' })
    handler = environmentHandler({ execute: () => expect.unreachable() })
    expect(await receiptOf({ ...execute(), deadline_ms: 0 })).toMatchObject({ type: 'failure', code: 'timeout' })
  })

  it('fails as timeout or cancelled when that is why it stopped', async () => {
    const begun = Promise.withResolvers<number>()
    handler = environmentHandler({
      execute: async (_, { signal, sequence }) => {
        begun.resolve(sequence)
        if (!signal.aborted) await once(signal, 'abort')
        signal.throwIfAborted()
      },
      cancel: () => undefined,
    })
    expect(await receiptOf({ ...execute(), deadline_ms: 5 })).toMatchObject({ type: 'failure', code: 'timeout' })
    const late = receiptOf(execute())
    await receiptOf({ type: 'cancel', target_sequence: commands.last })
    expect(await late).toMatchObject({ type: 'failure', code: 'cancelled' })
    expect(await begun.promise).toBeGreaterThan(0)
  })

  it('takes no deadline that no date could have', async () => {
    handler = environmentHandler({ execute: () => 1 })
    expect(await receiptOf({ ...execute(), deadline_ms: 1e300 })).toMatchObject({ code: 'invalid_request' })
  })

  it('fails the same way with what Node makes of the signal', async () => {
    handler = environmentHandler({ execute: (_, { signal }) => setTimeout(60_000, undefined, { signal }) })
    expect(await receiptOf({ ...execute(), deadline_ms: 5 })).toMatchObject({
      type: 'failure',
      code: 'timeout',
      message: 'The deadline of the call has passed',
    })
  })

  it('and a method fail with what is no JSON', async () => {
    const run = () => ({ when: new Date() })
    handler = environmentHandler({
      execute: run,
      methods: { look: { description: 'Looks', input: z.object({}), run } },
    })
    const failure = { type: 'failure', code: 'invalid_output', message: expect.stringContaining('output.when') }
    expect(await receiptOf(execute())).toMatchObject(failure)
    expect(await receiptOf({ type: 'call', name: 'look', input: {} })).toMatchObject(failure)
  })

  it('does not begin when it is cancelled while its configuration is looked at', async () => {
    const looking = Promise.withResolvers<void>()
    const looked = Promise.withResolvers<boolean>()
    let begun = 0
    handler = environmentHandler({
      options: z.object({}).refine(() => {
        looking.resolve()
        return looked.promise
      }),
      execute: () => void begun++,
      teardown: () => undefined,
    })
    const executing = receiptOf(execute())
    await looking.promise
    const ending = handler.run(operation({ type: 'teardown' }))
    looked.resolve(true)
    expect(await executing).toMatchObject({ type: 'failure', code: 'cancelled' })
    expect(await ending).toMatchObject({ receipt: { type: 'accepted' } })
    expect(begun).toBe(0)
  })

  it('stops when its request is given up, and is unknown when it does not stop', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    handler = environmentHandler({
      execute: (_, { signal }) => {
        begun.resolve(signal)
        return new Promise(() => {})
      },
    })
    const given = new AbortController()
    const command = operation(execute())
    const sent = send(command, given.signal)
    const signal = await begun.promise
    given.abort()
    await expect(sent).rejects.toMatchObject({ name: 'AbortError' })
    if (!signal.aborted) await once(signal, 'abort')
    expect(await send(command)).toMatchObject({ body: { receipt: { type: 'unknown' } } })
  })
})
