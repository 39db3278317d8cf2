import { build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as here from '../../../src/sdk/index.ts'
import { SessionPlan } from '../../../src/sdk/client/session-plan.ts'

type Package = typeof here
let other: Package

/** The package once more, with a Zod of its own, as it is when a dependency brings another version. */
beforeAll(async () => {
  const entry = new URL('../../../src/sdk/index.ts', import.meta.url).pathname
  const contents = `export * from ${JSON.stringify(entry)}; export { z } from 'zod'`
  const stdin = { contents, resolveDir: import.meta.dirname }
  const made = await build({
    stdin,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    logLevel: 'silent',
  })
  const url = `data:text/javascript;base64,${Buffer.from(made.outputFiles[0]!.contents).toString('base64')}`
  other = (await import(/* @vite-ignore */ url)) as Package
})

const thingsOf = ({ brainEnv, component, hostEnv, agentloop, tool }: Package, zod: typeof z) => {
  const box = brainEnv({ name: 'box', filesystem: { workspace: 'read' } })
  const code = component(new Uint8Array([0]))
  const run = tool({
    name: 'double',
    description: 'Doubles',
    input: zod.object({ n: zod.number() }),
    options: zod.object({ by: zod.number().default(2) }),
    run: ({ n }, ctx) => ctx.finish(n * ctx.options.by),
  })
  const boxed = tool({ name: 'count', description: 'Counts', input: zod.object({}), implementation: code })
  return {
    box,
    code,
    run,
    placed: run({}),
    boxed: boxed({ env: box }),
    host: hostEnv({ name: 'app' }),
    loop: agentloop({ implementation: code })({ env: box }),
  }
}

describe('two copies of the package', () => {
  it('are two', () => {
    expect(other.tool).not.toBe(here.tool)
    expect((other as any).z).not.toBe(z)
  })

  it('know each other`s tools, agentloops, environments and components', () => {
    for (const [mine, theirs] of [
      [here, thingsOf(other, (other as any).z)],
      [other, thingsOf(here, z)],
    ] as const) {
      expect(mine.inspectTool(theirs.placed)).toBe(theirs.placed)
      expect(mine.inspectAgentloop(theirs.loop)).toBe(theirs.loop)
      expect(mine.inspectEnvironment(theirs.box)).toBe(theirs.box)
      expect(mine.inspectEnvironment(theirs.host)).toBe(theirs.host)
      expect(mine.inspectComponent(theirs.code)).toBe(theirs.code)
      expect(mine.toolMetadata(theirs.run)).toMatchObject({ name: 'double', options_schema: { type: 'object' } })
      for (const inspect of [mine.inspectTool, mine.inspectAgentloop, mine.inspectEnvironment, mine.inspectComponent])
        for (const no of [
          undefined,
          null,
          3,
          {},
          theirs.run,
          { ...theirs.placed },
          { ...theirs.box },
          { ...theirs.code },
        ])
          expect(inspect(no)).toBeUndefined()
    }
  })

  it('place, plan and merge what the other declared', async () => {
    const theirs = thingsOf(other, (other as any).z)
    const mine = thingsOf(here, z)
    const tools = [
      theirs.placed,
      theirs.boxed,
      here.tool({ name: 'mine', description: 'x', input: z.object({}), implementation: theirs.code })({
        env: theirs.box,
      }),
    ]
    const model = { provider: 'scripted', name: 'script', apiKey: 'none' }
    const plan = new SessionPlan({ model, tools, agentloop: theirs.loop, environments: [mine.box, theirs.host] })
    const request = await plan.request(async ({ type }) => ({ type }), 'host_1')
    expect(request.environments.map(({ name }) => name)).toEqual(['box', 'app', 'brain-sdk-host'])
    expect(request.tools.map(({ name }) => name)).toEqual(['double', 'count', 'mine'])
    expect(plan.hostTools.map(({ executable }) => executable.options)).toEqual([{ by: 2 }])
  })
})
