import { Brain, environment, tool } from '@aexhq/brain'
import { z } from 'zod'
import { credential, serveTracker } from './controller.ts'

const served = await serveTracker()
const tracker = environment({ url: served.url, credential })

const fetchIssue = tool({
  name: 'fetch_issue',
  description: 'Fetches one issue.',
  input: z.object({ number: z.number().int() }),
  options: z.object({ repository: z.string() }),
  implementation: ({ repository }) => ({
    type: 'http_json',
    method: 'GET',
    path: `/repos/${repository}/issues/{number}`,
  }),
})

const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })
try {
  const session = await brain.sessions.create({
    model: {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: [{ tool_calls: [{ name: 'fetch_issue', input: { number: 7 } }] }, { text: 'You are to say hello.' }],
    },
    tools: [fetchIssue({ env: tracker({ name: 'github' }), repository: 'aexhq/brain' })],
  })
  await session.send('What is issue 7?')
  for await (const { type, data } of session.events())
    if (type === 'tool_result_emitted') console.dir(data, { depth: 4 })
  await session.end()
  await session.delete()
} finally {
  await brain.close()
  await served.close()
}
