import { readFile } from 'node:fs/promises'
import { Brain, tool } from '@aexhq/brain'
import { z } from 'zod'

const summarize = tool({
  name: 'summarize',
  description: 'Summarizes one of the documents of the application.',
  input: z.object({ document: z.enum(['README.md']) }),
  output: z.object({ summary: z.string(), isComplete: z.boolean(), characters: z.number() }),
  run: async ({ document }, ctx) => {
    const text = await readFile(new URL(document, import.meta.url), 'utf8')
    // A conversation of its own: the session's never holds the document, and this one nothing of the session's.
    const { message, stop_reason: stop } = await ctx.model({
      system: 'Summarize the document in one sentence.',
      messages: [{ role: 'user', content: [{ type: 'text', text }] }],
      max_output_tokens: 200,
    })
    const summary = message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
    const value = { summary, isComplete: stop === 'end_turn', characters: text.length }
    return ctx.finish(value, { content: summary })
  },
})

const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })
try {
  const session = await brain.sessions.create({
    model: {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: [
        { tool_calls: [{ name: 'summarize', input: { document: 'README.md' } }] },
        { text: 'A tool asks the model itself.' }, // the answer to ctx.model
        { text: 'The document says that a tool can ask the model itself.' },
      ],
    },
    tools: [summarize()],
  })
  await session.send('What does the document say?')
  for await (const { type, data, origin } of session.events()) {
    if (type === 'model_call_ended')
      console.log('the model answered', origin?.kind === 'tool' ? 'the tool' : 'the loop')
    if (type === 'tool_result_emitted') console.dir(data, { depth: 4 })
  }
  const { messages } = await session.transcript()
  const blocks = messages.flatMap(({ content }) => content)
  for (const block of blocks) if (block.type === 'tool_result') console.log('the conversation has:', block.content)
  await session.end()
} finally {
  await brain.close()
}
