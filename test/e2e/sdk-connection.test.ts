import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Brain, tool } from '../../src/sdk/index.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { rssOf, startServer, TestSession } from '../support/server.ts'
import { soakOr } from '../support/soak.ts'

const CALLS = soakOr(5000, 600)
const AT_ONCE = 8
const MIB = 2 ** 20

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

it(`one connection serves ${CALLS} calls, and neither side keeps any of them`, async () => {
  await using server = await startServer()
  const brain = new Brain({ baseUrl: server.url })
  onTestFinished(() => brain.close())
  const double = tool({
    name: 'double',
    description: 'Doubles a number.',
    input: z.object({ n: z.number() }),
    run: async ({ n }, ctx) => {
      await ctx.emit('doubling', { n })
      return ctx.finish(2 * n)
    },
  })
  const model = { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'done' }] }
  const handle = await brain.sessions.create({ model, tools: [double()] })
  const session = new TestSession(server, handle.id, 'double')
  const calls = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += AT_ONCE) {
      const numbers = Array.from({ length: AT_ONCE }, (_, i) => n + i)
      const doubled = await Promise.all(numbers.map((number) => session.value({ n: number })))
      expect(doubled).toEqual(numbers.map((number) => 2 * number))
    }
  }
  const memory = async (): Promise<{ readonly ours: number; readonly servers: number }> => {
    collect()
    return { ours: process.memoryUsage().heapUsed, servers: await rssOf(server.pid) }
  }
  await calls(CALLS / 2)
  const half = await memory()
  await calls(CALLS / 2)
  const whole = await memory()
  expect(whole.ours - half.ours).toBeLessThan(3 * MIB)
  expect(whole.servers - half.servers).toBeLessThan(64 * MIB)
  const events = await Array.fromAsync(handle.events())
  expect(events.length, 'several pages').toBeGreaterThan(2000)
  expect(events.every(({ sequence }, index) => sequence === index + 1)).toBe(true)
  const countOf = (wanted: string): number => events.filter(({ type }) => type === wanted).length
  expect(countOf('doubling')).toBeGreaterThanOrEqual(CALLS)
  expect(countOf('doubling')).toBe(countOf('tool_call_ended'))
})

it('an application that is closed in the middle of a call leaves one result of each call, and the session goes on (cases D-27)', async () => {
  await using server = await startServer()
  const application = new Brain({ baseUrl: server.url })
  onTestFinished(() => application.close())
  const began = Promise.withResolvers<void>()
  let runs = 0
  const input = z.object({})
  const hanging = tool({
    name: 'hanging',
    description: 'Never ends.',
    input,
    run: async () => {
      runs++
      await new Promise<void>(() => began.resolve())
    },
  })
  const quick = tool({ name: 'quick', description: 'Ends.', input, run: (_, ctx) => ctx.finish('here') })
  const script = [
    {
      tool_calls: [
        { name: 'hanging', input: {} },
        { name: 'quick', input: {} },
      ],
    },
    { text: 'one is missing' },
    { text: 'still here' },
  ]
  const model = { provider: 'scripted', name: 'script', apiKey: 'none', script }
  const { id } = await application.sessions.create({ model, tools: [hanging(), quick()] })
  const session = new TestSession(server, id, 'hanging')
  const sent = session.send('go')
  await began.promise
  await expect
    .poll(async () => (await session.records()).map((record) => record.event_type))
    .toContain('tool_call_ended')
  await application.close()
  expect((await sent).body.status).toBe('idle')
  await session.send('and now?')
  const { messages } = (await server.get(`${session.path}/transcript`)).body
  expect(messages.map(({ role }: { role: string }) => role).join(' ')).toBe(
    'user assistant user assistant user assistant',
  )
  expect(messages[2].content).toMatchObject([
    { type: 'tool_result', is_error: true, content: { code: 'unknown' } },
    { type: 'tool_result', is_error: false, content: 'here' },
  ])
  expect(messages[5].content).toEqual([{ type: 'text', text: 'still here' }])
  expect(runs).toBe(1)
  expectSoundJournal(await session.records())
})
