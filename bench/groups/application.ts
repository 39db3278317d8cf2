import { z } from 'zod'
import { Brain } from '../../src/sdk/client/brain.ts'
import { tool } from '../../src/sdk/declare/tool.ts'
import { callLane } from '../bench-server.ts'
import { type Group, WORDS } from '../run.ts'

/** As `warm-call-rust`. */
const WARM_UP = 500
const SAMPLES = 300

const count = tool({
  name: 'wordcount',
  description: 'Count words.',
  input: z.object({ text: z.string() }),
  run: ({ text }, ctx) => {
    const words = text.split(' ')
    return ctx.finish({ words: words.length, unique: new Set(words).size })
  },
})

/**
 * Direct calls of a function of this process, over the connection of its client, by a caller in another process: as
 * `warm-call-rust`, with an application in the place of a box.
 */
export const application: Group = async ({ server }) => {
  const brain = new Brain({ baseUrl: `http://127.0.0.1:${server.port}` })
  try {
    const model = { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'nothing to say' }] }
    const { id } = await brain.sessions.create({ model, tools: [count()] })
    const lanes = [callLane(`/v1/sessions/${id}/tools/wordcount/calls`, WORDS.input, WORDS.contains)]
    const plan = { lanes, idleMs: 0, warmUp: { answers: WARM_UP }, until: { answers: SAMPLES } }
    const { latenciesMs } = await server.load(plan)
    return { 'application-tool-call': latenciesMs }
  } finally {
    await brain.close()
  }
}
