import { Brain, tool } from '@aexhq/brain'
import { z } from 'zod'

const ways = ['value', 'content', 'error', 'throw', 'wrong', 'hang', 'background'] as const

const parcel = tool({
  name: 'parcel',
  description: 'Where a parcel is.',
  input: z.object({ way: z.enum(ways) }),
  output: z.object({ status: z.string() }),
  run: async ({ way }, ctx) => {
    switch (way) {
      case 'value':
        return ctx.finish({ status: 'delivered' })
      case 'content': // "unknown" is a word of outcomes, so this value says outright that it is one
        return ctx.finish({ status: 'ok', value: { status: 'unknown' } }, { content: 'Nobody has scanned it yet.' })
      case 'error':
        return ctx.finish({
          status: 'error',
          error: { code: 'lost', message: 'It is lost', retryable: false, details: { since: 'Monday' } },
        })
      case 'throw':
        throw new Error('The scanner is off')
      case 'wrong':
        return ctx.finish({ status: 42 as unknown as string })
      case 'hang': // a function that waits must stop when nobody waits for it any more
        return new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
      case 'background': // a result at once, and another one later: only finish ends a call
        setTimeout(() => void ctx.finish({ status: 'delivered' }), 100)
        return { status: 'on its way' }
      default:
        return way satisfies never
    }
  },
})

const brain = new Brain({ baseUrl: process.env['BRAIN_URL'] ?? 'http://127.0.0.1:8080' })
try {
  const session = await brain.sessions.create({
    model: {
      provider: 'scripted',
      name: 'script',
      apiKey: 'none',
      script: [{ tool_calls: ways.slice(0, 4).map((way) => ({ name: 'parcel', input: { way } })) }, { text: 'Done.' }],
    },
    tools: [parcel()],
  })
  console.log('How calls end:')
  for (const way of ways) {
    const { outcome, results } = await session.call('parcel', { way }, { wait: 'finished', deadlineMs: 500 })
    const reason =
      outcome?.status === 'error' ? outcome.error.code : results.map(({ output }) => JSON.stringify(output))
    console.log(`${way}: ${outcome?.status} ${String(reason)}`.trim())
  }
  console.log('What the model sees:')
  await session.send('Where are they?')
  const blocks = (await session.transcript()).messages.flatMap(({ content }) => content)
  for (const block of blocks) if (block.type === 'tool_result') console.log(block.is_error, block.content)
  await session.end()
} finally {
  await brain.close()
}
