import { expect, it } from 'vitest'
import { componentBinding } from '../../../src/bindings/component/component-binding.ts'
import { CallNotes } from '../../../src/dispatch/call-log.ts'
import type { BoundCall, CallServices } from '../../../src/dispatch/tool-binding.ts'
import { BrainEnv } from '../../../src/sandbox/brain-env.ts'
import type { HostServices, Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { LoopHost } from '../../../src/turn/agentloop.ts'
import { TextHost } from '../../../src/turn/loops/text-host.ts'

const AGENTLOOP_METHODS = ['dispatch', 'events', 'setTranscript', 'kvRead', 'kvPut', 'kvDelete'] as const
const TOOL_METHODS = ['emitResult', 'returned', 'finish'] as const

/** Whatever the session would do must not be reached. */
const unreachable = (): never => expect.unreachable()

/** What the sandbox is given to answer a tool's host calls with. */
function servicesOfTool(): Promise<HostServices> {
  const { promise, resolve } = Promise.withResolvers<HostServices>()
  const sandbox = {
    invoke: (_: unknown, services: HostServices) => {
      resolve(services)
      return { ended: new Promise<never>(() => {}), stop: () => {} }
    },
  } as unknown as Sandbox
  const id = 'a'.repeat(64)
  const binding = componentBinding({
    sandbox,
    components: { get: unreachable, ensureArtifact: async () => {} },
    brainEnv: new BrainEnv(
      () => undefined,
      () => undefined,
    ),
  })
  const environment = { name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: {} } as const
  const implementation = { type: 'brain_component', entrypoint: 'run', id }
  const place = { environment, reference: { name: 'box', sequence: 1 }, template: 'box' }
  binding.start({ place, implementation } as unknown as BoundCall, {} as CallServices)
  return promise
}

it.each(AGENTLOOP_METHODS)('a box that runs a tool is refused %s, whatever its code asks for', async (method) => {
  const services = await servicesOfTool()
  await expect(services.call(method, ['[]', '1'])).rejects.toMatchObject({ code: 'unsupported_host_call' })
})

it.each(TOOL_METHODS)('a box that runs an agentloop is refused %s, whatever its code asks for', async (method) => {
  const host = new TextHost({} as LoopHost, new CallNotes())
  await expect(host.call(method, ['{}'])).rejects.toMatchObject({ code: 'unsupported_host_call' })
})
