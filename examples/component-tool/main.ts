import { Brain, brainEnv, component, tool } from '@aexhq/brain'
import { z } from 'zod'

/** Made of examples-rust/inspect; the bytes are uploaded when the session is created, and once only. */
const file = new URL('../../test/fixtures/components/inspect.wasm', import.meta.url)

const inspect = tool({
  name: 'inspect',
  description: 'Lists what is below one path of the workspace.',
  input: z.object({ path: z.string() }),
  options: z.object({ depth: z.number().int().positive() }),
  implementation: component(file),
})

const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })
try {
  const reader = brainEnv({ name: 'reader', filesystem: { workspace: 'read' } })
  const session = await brain.sessions.create({
    model: {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: [{ tool_calls: [{ name: 'inspect', input: { path: '.' } }] }, { text: 'There is one note.' }],
    },
    tools: [inspect({ env: reader, depth: 2 })],
  })
  // The tool may only read; the application fills the workspace.
  const note = new TextEncoder().encode('remember the milk')
  await brain.request('PUT', `/v1/sessions/${session.id}/environments/reader/files/notes/today.txt`, note)
  await session.send('What is there?')
  for await (const { type, data } of session.events())
    if (type === 'tool_result_emitted') console.dir(data, { depth: 5 })
  console.log((await session.transcript()).messages.at(-1)?.content)
  await session.end()
} finally {
  await brain.close()
}
