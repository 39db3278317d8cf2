import { expect, it } from 'vitest'
import { environmentBinding } from '../../../src/bindings/environment/environment-binding.ts'
import { EnvironmentUrls } from '../../../src/bindings/environment/environment-urls.ts'
import { HttpEnvironments } from '../../../src/bindings/environment/http-environments.ts'
import { LIMITS, type LimitName, type Limits } from '../../../src/contract/limits.ts'
import { Callbacks } from '../../../src/dispatch/environments/callbacks.ts'
import type { BoundCall } from '../../../src/dispatch/tool-binding.ts'
import { localTenant, newSessionId } from '../../../src/kernel/ids.ts'
import { EnvironmentController } from '../../support/environment-controller.ts'
import { RecordedServices } from '../../support/tool-service-lab.ts'

const names = Object.keys(LIMITS) as LimitName[]
const limits = Object.fromEntries(names.map((name) => [name, LIMITS[name].default])) as Limits
const silent = { debug() {}, info() {}, warn() {}, error() {} }

const callAt = (url: string, deadlineInMs: number): BoundCall => ({
  tenant: localTenant,
  session: newSessionId(),
  sequence: 5,
  tool: 'fetch',
  place: {
    environment: { name: 'away', driver: 'http', url, lifecycle: 'automatic', configuration: null, methods: {} },
    reference: { name: 'away', sequence: 1 },
    template: 'away',
  },
  grants: [],
  implementation: {},
  input: '{}',
  deadlineAtMs: Date.now(),
  deadlineInMs,
  controllerServices: () => {
    const none = { url, token: 'none', methods: [] }
    return { context: none, reporter: none, close: () => undefined }
  },
})

it('a call whose deadline has passed is not sent, and no deadline that is sent is 0', async () => {
  await using controller = await EnvironmentController.listen()
  const environments = new HttpEnvironments({
    urls: () => new EnvironmentUrls({ allow: undefined, isLocal: true }),
    credentialOf: () => Promise.resolve(undefined),
    limits,
    logger: silent,
  })
  const binding = environmentBinding({ environments, callbacks: new Callbacks(() => 'http://127.0.0.1:1') })
  for (const late of [-3, 0, 0.9]) {
    const running = binding.start(callAt(controller.url, late), new RecordedServices())
    expect(await running.receipt).toEqual({ type: 'stopped', reason: 'timeout' })
    await running.cancel('timeout', 6)
  }
  const last = binding.start(callAt(controller.url, 1.9), new RecordedServices())
  expect(await last.receipt).toEqual({ type: 'result', text: 'null' })
  expect(controller.operations.map(({ request }) => request)).toMatchObject([{ type: 'execute', deadline_ms: 1 }])
})
