import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, tool, type SessionHandle } from '../../src/sdk/index.ts'
import { startServer, type TestServer } from '../support/server.ts'

const IDLE_MS = 30
/** Long enough for a connection that wrongly rests. */
const SEVERAL_TIMES_MS = 6 * IDLE_MS

/** What a test does with one request: answers it, or lets it go on. */
type Meddling = (path: string, init: RequestInit | undefined) => Promise<Response> | undefined

/** Never answers, as a server that hangs: ends with the signal of the request. */
const hanging = (init: RequestInit | undefined): Promise<Response> =>
  new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)))

describe('a connection that may rest (contract 10.1 F)', () => {
  let server: TestServer
  let brain: Brain
  let asked: string[] = []
  let meddle: Meddling = () => undefined
  let release = (): void => {}
  const count = (what: string): number => asked.filter((path) => path.endsWith(`/${what}`)).length

  beforeAll(async () => {
    server = await startServer()
  })
  afterEach(() => brain.close())
  afterAll(() => server[Symbol.asyncDispose]())

  /** A session of a new client; its tool waits for `release` when it is told to. */
  async function newSession(...script: object[]): Promise<SessionHandle> {
    asked = []
    meddle = () => undefined
    brain = new Brain({
      baseUrl: server.url,
      connectionIdleTimeoutMs: IDLE_MS,
      fetch: (url, init) => {
        const { pathname } = new URL(url)
        asked.push(pathname)
        return meddle(pathname, init) ?? fetch(url, init)
      },
    })
    return another(...script)
  }

  function another(...script: object[]): Promise<SessionHandle> {
    const gate = Promise.withResolvers<void>()
    release = gate.resolve
    const probe = tool({
      name: 'probe',
      description: 'Waits when it is told to.',
      input: z.object({ wait: z.boolean().default(false) }),
      run: async ({ wait }, ctx) => {
        if (wait) await gate.promise
        return ctx.finish('ok')
      },
    })
    const model = {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: (script.length ? script : [{ text: 'ok' }]) as never,
    }
    return brain.sessions.create({ model, tools: [probe()] })
  }

  /** Each connection that was opened has been asked to rest. */
  const rested = (): Promise<void> => expect.poll(() => count('commands') - count('suspend')).toBe(0)

  it('is opened once for messages at the same time, and not for what only reads', async () => {
    const first = await newSession()
    const second = await another()
    await rested()
    const opened = count('commands')
    await Promise.all([first.transcript(), Array.fromAsync(second.events()), brain.sessions.list()])
    expect(count('commands')).toBe(opened)
    const before = count('commands')
    await Promise.all([first.send('One'), second.send('Two')])
    expect(count('commands')).toBe(before + 1)
  })

  it('stays open while a call runs, also when nobody waits for its turn', async () => {
    const session = await newSession({ tool_calls: [{ name: 'probe', input: { wait: true } }] }, { text: 'ok' })
    const turn = await session.submit('Go')
    for await (const { type } of session.stream(turn)) if (type === 'tool_call_started') break
    const before = count('suspend')
    await sleep(SEVERAL_TIMES_MS)
    expect(count('suspend')).toBe(before)
    release()
    for await (const { type } of session.stream(turn)) if (type === 'turn_ended') break
    await rested()
  })

  it('asks again when its rest was refused', async () => {
    await newSession()
    meddle = (path) =>
      path.endsWith('/suspend') && count('suspend') === 1
        ? Promise.resolve(Response.json({ suspended: false }))
        : undefined
    await expect.poll(() => count('suspend')).toBe(2)
    await sleep(SEVERAL_TIMES_MS)
    expect(count('suspend')).toBe(2)
  })

  it('lets a message wait for a suspension under way', async () => {
    const session = await newSession()
    const gate = Promise.withResolvers<void>()
    meddle = (path, init) =>
      path.endsWith('/suspend') ? gate.promise.then(() => fetch(server.url + path, init)) : undefined
    await expect.poll(() => count('suspend')).toBe(1)
    const sent = session.send('Go')
    await sleep(IDLE_MS)
    expect(count('messages')).toBe(0)
    gate.resolve()
    expect(await sent).toMatchObject({ status: 'idle' })
    expect(count('commands')).toBe(2)
  })

  it('whose host is not known any more fails the message before it is sent', async () => {
    const session = await newSession()
    await rested()
    meddle = (path) =>
      path.endsWith('/commands')
        ? Promise.resolve(Response.json({ code: 'unauthorized', message: 'Who?', retryable: false }, { status: 401 }))
        : undefined
    await expect(session.send('Go')).rejects.toMatchObject({ name: 'BrainError', status: 401, code: 'unauthorized' })
    expect(count('messages')).toBe(0)
  })

  it('that is closed while it goes to rest ends what waits for it', async () => {
    const session = await newSession()
    meddle = (path, init) => (path.endsWith('/suspend') ? hanging(init) : undefined)
    await expect.poll(() => count('suspend')).toBe(1)
    const sent = session.send('Go')
    await brain.close()
    await expect(sent).rejects.toMatchObject({ name: 'AbortError' })
    expect(count('messages')).toBe(0)
  })

  it('stays open while a session is created', async () => {
    await newSession()
    await rested()
    const gate = Promise.withResolvers<void>()
    meddle = (path, init) =>
      path.endsWith('/sessions') ? gate.promise.then(() => fetch(server.url + path, init)) : undefined
    const before = count('suspend')
    const creating = another()
    await expect.poll(() => count('sessions')).toBe(2)
    await sleep(SEVERAL_TIMES_MS)
    expect(count('suspend')).toBe(before)
    gate.resolve()
    expect((await creating).state.status).toBe('idle')
  })
})
