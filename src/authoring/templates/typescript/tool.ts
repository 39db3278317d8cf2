import { tool } from '@aexhq/brain'
import { z } from 'zod'

/** How often each word stands in a text, the most frequent first. */
export function frequentWords(text: string, most: number): { word: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const [word] of text.toLowerCase().matchAll(/\p{L}+/gu)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts]
    .map(([word, count]) => ({ word, count }))
    .sort((one, other) => other.count - one.count || (one.word < other.word ? -1 : 1))
    .slice(0, most)
}

export const words = tool({
  name: '{{name}}',
  description: 'Counts the words of a text and names the most frequent ones.',
  input: z.object({
    text: z.string().min(1).describe('The text to look at.'),
    most: z.int().min(1).max(100).default(3).describe('How many words to name.'),
  }),
  output: z.array(z.object({ word: z.string(), count: z.int() })),
  run: async ({ text, most }, ctx) => {
    await ctx.emit('counting', { characters: text.length })
    return ctx.finish(frequentWords(text, most))
  },
})
