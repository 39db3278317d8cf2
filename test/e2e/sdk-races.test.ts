import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Brain, tool, type PlacedTool } from '../../src/sdk/index.ts'
import { freePort } from '../docs/page-shell.ts'
import { startServer, TestSession } from '../support/server.ts'

const model = { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'done' }] }
const probe = (run: (input: any, ctx: any) => unknown): PlacedTool =>
  tool({ name: 'probe', description: 'Does what a test says.', input: z.object({}).loose(), run })()

describe('a cancellation and a finish at the same time', () => {
  it('leave one end, the same in answer and journal, 200 times (cases D-30)', async () => {
    await using server = await startServer()
    const brain = new Brain({ baseUrl: server.url })
    const late: string[] = []
    const tools = [
      probe(async ({ after }, ctx) => {
        await sleep(after)
        await ctx.finish('done').catch((error: Error) => late.push(error.name))
        await ctx.emit('late', {}).catch((error: Error) => late.push(error.name))
      }),
    ]
    try {
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const { id, ...handle } = await brain.sessions.create({ model, tools }).then((session) => ({
            id: session.id,
            interrupt: () => session.interrupt(),
            events: () => Array.fromAsync(session.events()),
          }))
          const direct = new TestSession(server, id, 'probe')
          const answers: { sequence: number; status: string | undefined }[] = []
          for (let round = 0; round < 25; round++) {
            const call = direct.call({ after: Math.random() * 5 }, { wait: 'finished' })
            await sleep(Math.random() * 10)
            await handle.interrupt()
            const { sequence, outcome } = await call
            answers.push({ sequence, status: outcome?.status })
          }
          const events = await handle.events()
          for (const { sequence, status } of answers) {
            const ends = events.filter(
              ({ type, data }: any) => /^tool_call_(ended|failed)$/.test(type) && data.sequence === sequence,
            )
            expect(ends.map(({ data }: any) => data.outcome.status)).toEqual([status])
            const results = events.filter(
              ({ type, data }: any) => type === 'tool_result_emitted' && data.sequence === sequence,
            )
            expect(results).toHaveLength(status === 'ok' ? 1 : 0)
          }
          expect(events.filter(({ type }) => type === 'late')).toEqual([])
          return answers.map(({ status }) => status)
        }),
      )
      expect(new Set(outcomes.flat())).toEqual(new Set(['cancelled', 'ok']))
      expect(new Set(late)).toEqual(new Set(['BrainError']))
    } finally {
      await brain.close()
    }
  })
})

describe('a server that is stopped in the middle of a turn', () => {
  it('lets the function go on and say what it has, takes nothing new, and keeps the turn (contract 10.3)', async () => {
    await using server = await startServer()
    const brain = new Brain({ baseUrl: server.url })
    try {
      const [running, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const slow = probe(async (_, ctx) => {
        running.resolve()
        await release.promise
        await ctx.emit('nearly', {})
        return ctx.finish('there')
      })
      const script = [{ tool_calls: [{ name: 'probe', input: { name: 'x' } }] }, { text: 'ok' }]
      const session = await brain.sessions.create({ model: { ...model, script }, tools: [slow] })
      const sent = session.send('Go')
      await running.promise
      const exit = server.kill('SIGTERM')
      await expect.poll(async () => (await fetch(`${server.url}/health/ready`)).status).toBe(503)
      await expect(brain.sessions.create({ model })).rejects.toMatchObject({ status: 503, code: 'overloaded' })
      release.resolve()
      expect(await sent).toMatchObject({ status: 'idle' })
      expect(await exit).toBe(0)
      await server.start()
      const after = new Brain({ baseUrl: server.url })
      const events = await Array.fromAsync((await after.sessions.get(session.id)).events())
      const types = events.map(({ type }) => type)
      expect(
        types.filter((type) => ['nearly', 'tool_result_emitted', 'tool_call_ended', 'turn_ended'].includes(type)),
      ).toEqual(['nearly', 'tool_result_emitted', 'tool_call_ended', 'turn_ended'])
    } finally {
      await brain.close()
    }
  })
})

describe('a server that dies in the middle of a call', () => {
  it('is connected again, by the same host, and never asks for that call again', async () => {
    await using server = await startServer({ BRAIN_LISTEN: `127.0.0.1:${await freePort()}` })
    let registrations = 0
    const brain = new Brain({
      baseUrl: server.url,
      fetch: (url, init) => {
        if (url.endsWith('/v1/hosts')) registrations++
        return fetch(url, init)
      },
    })
    try {
      const calls: unknown[] = []
      const running = Promise.withResolvers<AbortSignal>()
      const session = await brain.sessions.create({
        model,
        tools: [
          probe((input, ctx) => {
            calls.push(input.name)
            if (input.name === 'second') return ctx.finish('here')
            running.resolve(ctx.signal)
            return new Promise(() => {})
          }),
        ],
      })
      const direct = new TestSession(server, session.id, 'probe')
      const lost = direct.call({ name: 'first' }, { wait: 'finished' }).catch(() => 'lost')
      const signal = await running.promise
      await server.kill('SIGKILL')
      await lost
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await server.start()
      for (;;) {
        const { outcome } = await direct.call({ name: 'second' }, { wait: 'finished' })
        if (outcome?.status === 'ok') break
        await sleep(50)
      }
      expect(calls).toEqual(['first', 'second'])
      expect(registrations).toBe(1)
      const events = await Array.fromAsync(session.events())
      expect(events.find(({ type }) => type === 'tool_call_failed')?.data).toMatchObject({
        code: 'interrupted',
        ambiguous: true,
      })
    } finally {
      await brain.close()
    }
  })
})
