import { readFile, rm, writeFile } from 'node:fs/promises'
import { Brain, tool, type HostCredentials } from '@aexhq/brain'
import { z } from 'zod'

/** What outlives the application. The credentials are a secret: who has them is called in its place. */
type Saved = { readonly session: string; readonly credentials: HostCredentials; readonly visits: number }

const file = process.argv[2] ?? new URL('saved.json', import.meta.url)
const saved = await readFile(file, 'utf8').then(
  (text) => JSON.parse(text) as Saved,
  () => undefined,
)
let visits = saved?.visits ?? 0

const visit = tool({
  name: 'visit',
  description: 'Counts a visit.',
  input: z.object({}),
  output: z.number(),
  run: (_, ctx) => ctx.finish(++visits),
})

const brain = new Brain({
  baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080',
  ...(saved && { credentials: saved.credentials }),
})
try {
  const session = saved
    ? await brain.sessions.get(saved.session, { tools: [visit()] })
    : await brain.sessions.create({
        model: {
          provider: 'scripted',
          name: 'script',
          apiKey: 'none',
          script: [1, 2].flatMap((n) => [
            { tool_calls: [{ name: 'visit', input: {} }] },
            { text: `That was visit ${n}.` },
          ]),
        },
        tools: [visit()],
      })
  console.log(saved ? 'Taken up again:' : 'Created:')
  const turn = await session.submit('Here I am')
  for await (const { type } of session.stream(turn)) if (type === 'turn_ended') break
  console.log((await session.outcome(turn)).answer?.content, `visits: ${visits}`)
  if (saved) {
    await session.end()
    await rm(file)
  } else {
    const state: Saved = { session: session.id, credentials: await brain.credentials(), visits }
    await writeFile(file, JSON.stringify(state), { mode: 0o600 })
  }
} finally {
  await brain.close()
}
