import { Brain, tool } from '@aexhq/brain'
import { z } from 'zod'

/** Whatever the application has: its functions use it as any other code of it does. */
const customers = new Map([['customer:ada', { value: 'Ada Lovelace, since 1843' }]])

const lookup = tool({
  name: 'lookup',
  description: 'Looks up one customer.',
  input: z.object({ id: z.string() }),
  output: z.object({ value: z.string() }).nullable(),
  options: z.object({ prefix: z.string() }),
  run: async ({ id }, ctx) => {
    await ctx.emit('lookup_started', { id })
    return ctx.finish(customers.get(`${ctx.options.prefix}${id}`) ?? null)
  },
})

const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })
try {
  const session = await brain.sessions.create({
    model: {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: [{ tool_calls: [{ name: 'lookup', input: { id: 'ada' } }] }, { text: 'Ada is a customer since 1843.' }],
    },
    tools: [lookup({ prefix: 'customer:' })],
  })
  await session.send('Who is ada?')
  for await (const { type, data, origin } of session.events())
    if (origin?.kind === 'tool') console.log(type, type === 'lookup_started' ? data : '')
  console.log((await session.transcript()).messages.at(-1)?.content)
  await session.end()
} finally {
  await brain.close()
}
