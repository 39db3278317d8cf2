import { Brain, environment, environmentHandler, tool, type SessionHandle } from '@aexhq/brain'
import { serveEnvironment } from '@aexhq/brain/http/server'
import { z } from 'zod'

const model = { provider: 'scripted', name: 'script', apiKey: 'none' }
const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })

/** What is behind each environment that is made: a session of its own, which works on one task. */
const agents = new Map<string, SessionHandle>()
const ask = { description: 'Gives the agent a task.', input: z.object({ task: z.string() }), output: z.string() }
const keyOf = (ctx: { sessionId: string; environment: { name: string } }): string =>
  `${ctx.sessionId} ${ctx.environment.name}`

const handler = environmentHandler({
  options: z.object({ role: z.string() }),
  setup: async (ctx) => {
    const script = [{ text: `The ${ctx.options.role} has done it.` }]
    agents.set(
      keyOf(ctx),
      await brain.sessions.create({ model: { ...model, script }, system: `You are a ${ctx.options.role}.` }),
    )
    console.log('set up', ctx.environment.name)
  },
  methods: {
    ask: {
      ...ask,
      run: async ({ task }, ctx) => {
        const agent = agents.get(keyOf(ctx))
        await agent?.send(task)
        const last = (await agent?.transcript())?.messages.at(-1)?.content[0]
        return last?.type === 'text' ? last.text : ''
      },
    },
  },
  teardown: async (ctx) => {
    await agents.get(keyOf(ctx))?.end()
    agents.delete(keyOf(ctx))
    console.log('gave up', ctx.environment.name)
  },
})

const credential = 'agents-secret'
const served = await serveEnvironment(handler.run, { token: credential })

/** May make environments of the one template, set them up, ask and delete them: nothing else, and no other ones. */
const delegate = tool({
  name: 'delegate',
  description: 'Lets another agent do a task.',
  input: z.object({ role: z.string(), task: z.string() }),
  output: z.string(),
  run: async ({ role, task }, ctx) => {
    let answer = ''
    const { reference } = await ctx.environments.create('agent', `agent-${ctx.sequence}`, { role })
    try {
      await ctx.environments.setup(reference)
      answer = z.string().parse(await ctx.environments.call(reference, 'ask', { task }))
    } finally {
      await ctx.environments.delete(reference)
    }
    // Not before: after the end of a call nothing can be asked for it any more.
    return ctx.finish(answer)
  },
})

try {
  const agent = environment({
    url: served.url,
    credential,
    options: z.object({ role: z.string() }),
    methods: { ask },
  })
  const template = agent({
    name: 'agent',
    role: 'nobody',
    template: { maxInstances: 2, configuration: z.object({ role: z.string() }) },
  })
  const script = [
    { tool_calls: [{ name: 'delegate', input: { role: 'gardener', task: 'Water the plants' } }] },
    { text: 'The plants are watered.' },
  ]
  const session = await brain.sessions.create({
    model: { ...model, script },
    environments: [template],
    environment: { lifecycle: { bindings: { agent: 'manual' } } },
    tools: [
      delegate({
        environments: [{ environment: 'agent', permissions: ['create', 'setup', 'call', 'delete'], methods: ['ask'] }],
      }),
    ],
  })
  await session.send('Have the plants watered')
  const blocks = (await session.transcript()).messages.flatMap(({ content }) => content)
  for (const block of blocks) if (block.type === 'tool_result') console.log('delegate:', block.content)
  await session.end()
} finally {
  await brain.close()
  await served.close()
}
