import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BrainError } from '../../src/sdk/brain-error.ts'
import { runToolHandler, runToolProcess, type ToolFrame } from '../../src/sdk/runtime.ts'
import { MOST_FRAME_BYTES } from '../../src/sdk/runtime/process-frames.ts'

const at = (path: string): string => JSON.stringify(new URL(`../../${path}`, import.meta.url).href)

const TOOLS = `
import { writeSync } from 'node:fs'
import { tool } from ${at('src/sdk/index.ts')}
import { z } from ${at('node_modules/zod/index.js')}
const declared = (name, run, more) => tool({ name, description: 'x', input: z.looseObject({}), run, ...more })
export const all = declared('all', async (input, ctx) => {
  console.log('to be read')
  process.stdout.write('by people\\n')
  const first = await ctx.emit('seen', input)
  const second = await ctx.emitResult({ n: 1 }, { content: 'one' })
  const { stop_reason } = await ctx.model({ messages: [] })
  const views = await ctx.environments.list()
  const { sessionId, sequence, deadline, options } = ctx
  return ctx.finish({ n: 2, first, second, stop_reason, views, sessionId, sequence, deadline: deadline.getTime(), options })
}, { input: z.object({ id: z.string().trim() }), output: z.looseObject({ n: z.number() }), options: z.object({ by: z.number().default(2) }) })
export const fails = declared('fails', ({ how, value }, ctx) => {
  if (how === 'throw') throw new Error('not today')
  if (how === 'return') return value
  if (how === 'finish') return ctx.finish(value)
}, { output: z.object({ n: z.number() }) })
export const later = declared('later', async (_, ctx) => {
  setTimeout(async () => { await ctx.emit('later', 1); await ctx.finish('done') }, 5)
  return 'early'
})
export const waits = declared('waits', async (_, ctx) => {
  await ctx.emit('waits', 1)
  ctx.signal.addEventListener('abort', () => console.error('told: ' + ctx.signal.reason.name))
  await new Promise(() => {})
})
export const stubborn = declared('stubborn', async (_, ctx) => {
  await ctx.emit('waits', 1)
  for (;;) {}
})
export const refused = declared('refused', async (_, ctx) => {
  const error = await ctx.finish('large').catch((thrown) => thrown)
  const { code, status, retryable, details } = error
  return ctx.finish({ code, status, retryable, details })
})
export const stray = declared('stray', () => { setTimeout(() => { throw new Error('stray') }); return new Promise(() => {}) })
export const exits = declared('exits', () => process.exit(3))
export const prints = declared('prints', () => { writeSync(1, 'not a frame\\n'); return new Promise(() => {}) })
`

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-tool-runtime-'))
  const exports = { '.': { 'brain-tool': './tools.js' }, './slow': { 'brain-tool': './slow.js' } }
  const manifest = { name: 'tools', version: '1.0.0', type: 'module', exports }
  await mkdir(join(folder, 'node_modules/tools'), { recursive: true })
  await writeFile(join(folder, 'node_modules/tools/package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'node_modules/tools/tools.js'), TOOLS)
  await writeFile(join(folder, 'node_modules/tools/slow.js'), 'await new Promise(() => setInterval(() => {}, 1000))')
})
afterAll(() => rm(folder, { recursive: true }))

type Asked = { readonly method: string; readonly input: any }

/** One call, with a Brain that answers what it is told. */
function callOf(
  tool: string,
  input: unknown = {},
  { answer = () => 7 as unknown, ...more }: { answer?: (asked: Asked) => unknown; [member: string]: unknown } = {},
) {
  const asked: Asked[] = []
  const implementation = {
    type: 'node_package',
    package: 'tools',
    version: '1.0.0',
    entry: '.',
    export: tool,
    configuration: {},
  }
  const call = { implementation, input, sessionId: 'ses_1', environment: 'box', sequence: 4, ...more }
  const service = async (method: string, given: unknown) => {
    asked.push({ method, input: given })
    return (await answer({ method, input: given })) as never
  }
  return { asked, frame: { ...call, service } as unknown as ToolFrame, call }
}

/** @param script runs in place of our own runtime */
function start(script?: string): ChildProcessWithoutNullStreams {
  if (script !== undefined) return spawn(process.execPath, ['-e', script])
  const entry = new URL('../../src/sdk/runtime/brain-tool-runtime.ts', import.meta.url).pathname
  return spawn(process.execPath, [entry, folder])
}

describe('runToolHandler()', () => {
  it.each<[unknown, { readonly deadline_at_ms?: number }, object[], object]>([
    [{ how: 'throw' }, {}, [], { code: 'tool_error', message: 'not today', retryable: false }],
    ['no object', {}, [], { code: 'invalid_input' }],
    [{}, { deadline_at_ms: 1 }, [], { code: 'timeout' }],
    [
      { how: 'return', value: { n: 'x' } },
      {},
      [{ method: 'finish', input: { status: 'error', error: { code: 'invalid_output' } } }],
      { type: 'returned' },
    ],
    [
      {
        how: 'finish',
        value: { status: 'error', error: { code: 'lost', message: 'Lost', retryable: true }, content: 'gone' },
      },
      {},
      [{ method: 'finish', input: { status: 'error', error: { code: 'lost', retryable: true }, content: 'gone' } }],
      { type: 'returned' },
    ],
    [
      { how: 'return', value: { status: 'cancelled' } },
      {},
      [{ method: 'finish', input: { status: 'cancelled' } }],
      { type: 'returned' },
    ],
  ])('ends a call with the input %j', async (input, more, asked, end) => {
    const given = callOf('fails', input, more)
    expect(await runToolHandler(folder, given.frame)).toMatchObject(end)
    expect(given.asked).toMatchObject(asked)
  })

  it('goes on after a return, until the call is finished', async () => {
    const { frame, asked } = callOf('later')
    expect(await runToolHandler(folder, frame)).toEqual({ type: 'returned' })
    expect(asked).toEqual([
      { method: 'returned', input: { status: 'ok', value: 'early' } },
      { method: 'emit', input: { event_type: 'later', data: 1 } },
      { method: 'finish', input: { status: 'ok', value: 'done' } },
    ])
  })

  it('is cancelled before, while its module is evaluated, and while it runs', async () => {
    const before = callOf('waits')
    expect(await runToolHandler(folder, before.frame, AbortSignal.abort())).toMatchObject({ code: 'cancelled' })
    const stop = new AbortController()
    const during = callOf('waits', {}, { answer: () => stop.abort() })
    expect(await runToolHandler(folder, during.frame, stop.signal)).toMatchObject({ code: 'cancelled' })
    expect([before.asked, during.asked.length]).toEqual([[], 1])
    const slow = { ...callOf('x').call.implementation, entry: './slow' }
    const late = new AbortController()
    const loading = runToolHandler(
      (implementation) => {
        queueMicrotask(() => late.abort())
        return new Promise(() => implementation)
      },
      { ...before.frame, implementation: slow },
      late.signal,
    )
    expect(await loading).toMatchObject({ code: 'cancelled' })
  })

  it.each([
    ['throws', () => Promise.reject(new Error('no such tool')), 'no such tool'],
    [
      'throws at once',
      () => {
        throw new Error('no such tool')
      },
      'no such tool',
    ],
    ['gives nothing', () => Promise.resolve(undefined as never), 'Cannot load a tool: toolSource gave none'],
  ])('ends when the function that loads the tool %s', async (_what, toolSource, message) => {
    expect(await runToolHandler(toolSource, callOf('all').frame)).toMatchObject({ code: 'tool_unavailable', message })
  })

  it('says what cannot be loaded', async () => {
    for (const [tool, code] of [
      ['none', 'tool_unavailable'],
      ['a b', 'invalid_request'],
    ] as const)
      expect(await runToolHandler(folder, callOf(tool).frame)).toMatchObject({ type: 'failure', code })
  })
})

describe('brain-tool-runtime', () => {
  it('runs a call, keeps what is printed from its frames, and passes on what the tool asks', async () => {
    const answers: Record<string, unknown> = {
      emit: 11,
      result: 12,
      model: { stop_reason: 'end_turn' },
      environments: [{ name: 'box' }],
    }
    const deadline_at_ms = Date.now() + 60_000
    const { frame, asked } = callOf(
      'all',
      { id: ' a ', more: 1 },
      { deadline_at_ms, answer: ({ method }) => answers[method] },
    )
    const child = start()
    const printed = text(child.stderr)
    expect(await runToolProcess(child, frame)).toEqual({ type: 'returned' })
    expect(child.exitCode).toBe(0)
    expect(await printed).toBe('to be read\nby people\n')
    expect(asked).toEqual([
      { method: 'emit', input: { event_type: 'seen', data: { id: 'a' } } },
      { method: 'result', input: { status: 'ok', value: { n: 1 }, content: 'one' } },
      { method: 'model', input: { messages: [] } },
      { method: 'environments', input: { operation: 'list' } },
      {
        method: 'finish',
        input: {
          status: 'ok',
          value: {
            n: 2,
            first: 11,
            second: 12,
            stop_reason: 'end_turn',
            views: [{ name: 'box' }],
            sessionId: 'ses_1',
            sequence: 4,
            deadline: deadline_at_ms,
            options: { by: 2 },
          },
        },
      },
    ])
  })

  it('tells the tool what was refused, whole, and the call goes on', async () => {
    const refusal = new BrainError(400, 'emit_limit', 'Too much', { details: { limit: 1 } })
    const { frame, asked } = callOf(
      'refused',
      {},
      {
        answer: ({ input }) => {
          if (input.value === 'large') throw refusal
        },
      },
    )
    expect(await runToolProcess(start(), frame)).toEqual({ type: 'returned' })
    const value = { code: 'emit_limit', status: 400, retryable: false, details: { limit: 1 } }
    expect(asked.at(-1)).toEqual({ method: 'finish', input: { status: 'ok', value } })
  })

  it('takes inputs as deep as Brain does', async () => {
    const deep = Array.from({ length: 62 }).reduce<unknown>((inner) => [inner], [])
    const { frame, asked } = callOf('fails', { how: 'finish', value: { n: 1 }, deep })
    expect(await runToolProcess(start(), frame)).toEqual({ type: 'returned' })
    expect(asked).toEqual([{ method: 'finish', input: { status: 'ok', value: { n: 1 } } }])
  })

  it('tells the tool of a cancellation, and ends', async () => {
    const stop = new AbortController()
    const { frame } = callOf('waits', {}, { answer: () => void setImmediate(() => stop.abort()) })
    const child = start()
    const printed = text(child.stderr)
    const end = await runToolProcess(child, frame, { signal: stop.signal })
    expect(end).toMatchObject({ type: 'failure', code: 'cancelled', retryable: false })
    expect(await printed).toBe('told: AbortError\n')
    expect(child.exitCode).toBe(0)
  })

  it('ends with its input, and is killed where the tool does not let it', async () => {
    const child = start()
    const frames = text(child.stdout)
    child.stdin.end(`${JSON.stringify(callOf('waits').call)}\n`)
    await once(child, 'exit')
    expect(JSON.parse((await frames).trim().split('\n').at(-1)!)).toMatchObject({ type: 'failure', code: 'cancelled' })
    const stop = new AbortController()
    const { frame } = callOf('stubborn', {}, { answer: () => void setImmediate(() => stop.abort()) })
    const stubborn = start()
    expect(await runToolProcess(stubborn, frame, { signal: stop.signal, graceMs: 50 })).toMatchObject({
      code: 'cancelled',
    })
    expect(stubborn.signalCode).toBe('SIGKILL')
  })

  it('is killed after its deadline where its tool leaves it no time to hear of it', async () => {
    const child = start('for (;;) {}')
    const { frame } = callOf('stubborn', {}, { deadline_at_ms: Date.now() + 20 })
    expect(await runToolProcess(child, frame, { graceMs: 20 })).toMatchObject({ type: 'failure', code: 'timeout' })
    expect(child.signalCode).toBe('SIGKILL')
  })

  it('ends with its process, whoever else holds its output open', async () => {
    const child = start(`
      const { spawn } = require('node:child_process')
      const left = spawn('sleep', ['30'], { stdio: ['ignore', 'inherit', 'ignore'], detached: true })
      process.stderr.write(String(left.pid), () => process.exit(3))`)
    const left = text(child.stderr)
    expect(await runToolProcess(child, callOf('exits').frame)).toMatchObject({
      code: 'unknown',
      message: expect.stringContaining('its exit code is 3'),
    })
    process.kill(Number(await left))
  })

  it('holds no more answers than a process may leave unread', async () => {
    const child = start(`
      const { writeSync } = require('node:fs')
      for (let id = 1; ; id++) writeSync(1, JSON.stringify({ type: 'service', id, method: 'emit', input: 1 }) + '\\n')`)
    const { frame } = callOf('asks', {}, { answer: () => 'x'.repeat(1000) })
    expect(await runToolProcess(child, frame)).toMatchObject({
      code: 'unknown',
      message: expect.stringContaining('does not read'),
    })
  })

  it('tells the tool that it is in doubt what Brain was asked when a service fails in a way of its own', async () => {
    // As clients of HTTP and of databases fail: no refusal of Brain, and nothing that a frame could hold.
    const failure = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', status: undefined, details: 1n })
    const { frame, asked } = callOf(
      'refused',
      {},
      {
        answer: ({ input }) => {
          if (input.value === 'large') throw failure
        },
      },
    )
    expect(await runToolProcess(start(), frame)).toMatchObject({ type: 'failure', code: 'unknown' })
    expect(asked).toHaveLength(1)
  })

  it.each([
    ['stray', { code: 'tool_error', message: 'stray' }],
    [
      'exits',
      { code: 'unknown', message: 'The process of the tool did not say how the call ended: its exit code is 3' },
    ],
    ['prints', { code: 'unknown', message: expect.stringContaining('Cannot read frame 1: Cannot read it') }],
  ])('ends in some way when a tool %s', async (tool, end) => {
    expect(await runToolProcess(start(), callOf(tool).frame)).toMatchObject({ type: 'failure', ...end })
  })

  it('ends in some way when its process cannot be started', async () => {
    const end = await runToolProcess(spawn('/nowhere/brain-tool-runtime'), callOf('waits').frame)
    expect(end).toMatchObject({ code: 'unknown', message: expect.stringContaining('ENOENT') })
  })

  const first = (): string => `${JSON.stringify(callOf('waits').call)}\n`
  it.each<[string, () => string, RegExp]>([
    ['nothing', () => '', /^Cannot read frame 1: standard input ended before there was a call\n$/],
    ['no JSON', () => 'hello\n', /^Cannot read frame 1: Cannot read it: it is not usable JSON/],
    ['no call', () => '{"input":1}\n', /^Cannot read frame 1: ✖ [^]*implementation/],
    ['half a line', () => '{"input"', /^Cannot read frame 1: the input ends in the middle of it\n$/],
    [
      'an endless line',
      () => 'x'.repeat(MOST_FRAME_BYTES + 1),
      /^Cannot read frame 1: it is longer than 34603008 bytes\n$/,
    ],
    [
      'an answer to nothing',
      () => `${first()}{"id":9,"output":1}\n`,
      /^Cannot read frame 2: it answers 9, which was not asked\n$/,
    ],
  ])('exits 2 after %s on standard input, saying what is wrong', async (_what, input, message) => {
    const child = start()
    const printed = text(child.stderr)
    child.stdin.on('error', () => {})
    child.stdin.end(input())
    const [code] = (await once(child, 'exit')) as [number]
    expect({ code, printed: await printed }).toEqual({ code: 2, printed: expect.stringMatching(message) })
  })
})
