import { environmentHandler } from '@aexhq/brain'
import { serveEnvironment } from '@aexhq/brain/http/server'
import { z } from 'zod'

export const credential = 'issues-secret'

/** The descriptors that this environment understands; nobody before it looks into them. */
const descriptor = z.strictObject({ type: z.literal('http_json'), method: z.literal('GET'), path: z.string() })

/** What would be the API of somebody else. */
const api = new Map([['/repos/aexhq/brain/issues/7', { number: 7, title: 'Say hello' }]])

const handler = environmentHandler({
  setup: () => console.log('set up'),
  execute: async ({ implementation, input }, ctx) => {
    const { path } = descriptor.parse(implementation)
    const members = z.record(z.string(), z.union([z.string(), z.number()])).parse(input)
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(members[name])))
    await ctx.execution.finish(api.get(filled) ?? null)
  },
  teardown: () => console.log('given up'),
})

/** Whoever knows the credential may have operations done here: Brain, and nobody else. */
export const serveTracker = () => serveEnvironment(handler.run, { token: credential })
