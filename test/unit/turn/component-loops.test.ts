import { expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import type { Place } from '../../../src/dispatch/environments/environment-operation.ts'
import { localTenant, newSessionId } from '../../../src/kernel/ids.ts'
import { BrainEnv } from '../../../src/sandbox/brain-env.ts'
import type { Execution, HostServices, InvocationEnd } from '../../../src/sandbox/sandbox.ts'
import type { LoopHost, TurnInput } from '../../../src/turn/agentloop.ts'
import { ComponentLoops } from '../../../src/turn/loops/component/component-loops.ts'

const facts = { stdout: '', stderr: '', runMs: 0, cpuMs: 0, fileOps: 0, hostCalls: 0 }
const implementation = { type: 'brain_component', entrypoint: 'turn', id: 'a'.repeat(64) } as const
const place: Place = {
  environment: { name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: {} },
  reference: { name: 'box', sequence: 1 },
  template: 'box',
}
const input: TurnInput = {
  transcript: [],
  kv: {},
  events: [],
  configuration: null,
  system: '',
  tools: [],
  runtime: { logical_time_ms: 0, deterministic_seed: [] },
}

/** Runs a loop whose box makes one host call after the other until it is stopped. */
function tireless(guestCpuSecs: number, request: readonly [string, string], most: number): Promise<unknown> {
  const ended = Promise.withResolvers<Awaited<Execution['ended']>>()
  const end = (how: InvocationEnd): void => ended.resolve({ end: how, facts })
  let isStopped = false
  const play = async (services: HostServices): Promise<void> => {
    for (let calls = 0; calls < most && !isStopped; calls++)
      await services.call('kvPut', request).catch(() => undefined)
    end({ type: 'returned', text: '"let be"' })
  }
  const loops = new ComponentLoops({
    sandbox: {
      level: { name: 'none', landlockAbi: 0, remarks: [], unsafe: true },
      invoke: (_invocation, services) => {
        setImmediate(() => void play(services))
        const stop: Execution['stop'] = (reason) => {
          isStopped = true
          end({ type: 'stopped', reason })
        }
        return { ended: ended.promise, stop }
      },
    },
    components: { get: () => expect.unreachable(), ensureArtifact: async () => {} },
    brainEnv: new BrainEnv(
      () => undefined,
      () => undefined,
    ),
    callLogs: { write: async () => {} },
    limits: { ...defaultLimits, guestCpuSecs },
  })
  const host = { kvPut: async () => 1 } as unknown as LoopHost
  const { signal } = new AbortController()
  const controllerServices = () => expect.unreachable()
  const context = { tenant: localTenant, session: newSessionId(), sequence: 1, signal, controllerServices }
  return loops.of(implementation, place).run(input, host, context)
}

const large = JSON.stringify(Array.from({ length: 10_000 }, () => ({})))

it.each([
  ['what is taken', large],
  ['what is refused', `${large}x`],
])('the time that the server takes to read %s is the loop’s own', async (_what, value) => {
  await expect(tireless(0.001, ['key', value], 1000)).rejects.toMatchObject({
    code: 'agentloop_failed',
    message: expect.stringContaining('BRAIN_MAX_GUEST_CPU_SECS'),
  })
})

it('a loop without a limit of its time is let be', async () => {
  await expect(tireless(0, ['key', large], 5)).resolves.toEqual({ result: 'let be' })
})
