import { expect, it } from 'vitest'
import { z } from 'zod'
import { reattachedTools } from '../../../src/sdk/client/reattach.ts'
import { SessionPlan } from '../../../src/sdk/client/session-plan.ts'
import { hostEnv, tool } from '../../../src/sdk/index.ts'

const lookup = tool({ name: 'lookup', description: 'Looks up', input: z.object({}), run: (_, ctx) => ctx.finish() })
const model = { provider: 'scripted', name: 'script', apiKey: 'k' }

it('takes environments named like members that every object has', async () => {
  const tools = [
    lookup(),
    lookup({ env: hostEnv({ name: 'constructor' }) }),
    lookup({ env: hostEnv({ name: 'toString' }) }),
  ]
  const environment = { lifecycle: { bindings: { toString: 'automatic' as const } } }
  const request = await new SessionPlan({ model, tools, environment }).request(async () => null, 'host_1')
  expect(request.environments.map(({ lifecycle }) => lifecycle)).toEqual(Array(3).fill('automatic'))
  const other = { ...request.tools[0]!, name: 'other', placements: { desk: { implementation: {} } } }
  const configuration = { ...request, tools: [...request.tools, other] }
  const events = (async function* () {
    yield { sequence: 1, recordedAt: new Date(0), type: 'session_creation_ended', data: { configuration } as never }
  })()
  expect(await reattachedTools(tools, events, 'host_1')).toHaveLength(3)
})
