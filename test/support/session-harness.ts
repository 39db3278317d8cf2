import { randomUUID } from 'node:crypto'
import { afterAll } from 'vitest'
import type { BrainError } from '../../src/kernel/errors.ts'
import { localTenant, type SessionId } from '../../src/kernel/ids.ts'
import type { Json } from '../../src/kernel/json.ts'
import { parseProxyRules, type ProxyTexts } from '../../src/kernel/net/proxy-rules.ts'
import type { SessionEnvironment } from '../../src/contract/session-request.ts'
import { toolServiceBinding } from '../../src/bindings/tool-service/tool-service-binding.ts'
import type { ToolService } from '../../src/contract/tool-service.ts'
import type { ToolFailure } from '../../src/contract/tool-failure.ts'
import type { SchemaChecker } from '../../src/contract/schema-checker.ts'
import { defaultLimits, type Limits } from '../../src/contract/limits.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory/memory-journal.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import { Dispatcher } from '../../src/dispatch/dispatcher.ts'
import { Callbacks } from '../../src/dispatch/environments/callbacks.ts'
import { openEnvironments } from '../../src/dispatch/environments/environments.ts'
import { Reporters } from '../../src/dispatch/environments/reporters.ts'
import type { ToolBinding } from '../../src/dispatch/tool-binding.ts'
import type { CallLog } from '../../src/dispatch/call-log.ts'
import { openSchemaChecker } from '../../src/dispatch/schemas/open-schema-checker.ts'
import { toProblem } from '../../src/http/problem.ts'
import type { ModelProvider } from '../../src/model/model-provider.ts'
import { scriptedProvider } from '../../src/model/scripted/scripted-provider.ts'
import { Catalog } from '../../src/session/catalog.ts'
import { parseCreateRequest } from '../../src/session/create-request.ts'
import { BrainEnv } from '../../src/sandbox/brain-env.ts'
import { DirectCalls, type CallAnswer, type DirectCall } from '../../src/session/direct-calls.ts'
import { EventFeed } from '../../src/session/event-feed.ts'
import { Requests, type Answer, type ClaimInHand, type Work } from '../../src/session/requests.ts'
import { SessionService } from '../../src/session/session-service.ts'
import { Sessions } from '../../src/session/sessions.ts'
import { ToolActivity } from '../../src/session/tool-activity.ts'
import type { Agentloop, Agentloops } from '../../src/turn/agentloop.ts'
import { ServedAgentloops } from '../../src/turn/loops/served-agentloops.ts'
import { ComponentLoops } from '../../src/turn/loops/component/component-loops.ts'
import { RemoteLoops } from '../../src/turn/loops/remote/remote-loops.ts'
import { HandBinding } from './hand-binding.ts'

export const TOOL_IMPLEMENTATION = {
  type: 'brain_component',
  entrypoint: 'run',
  id: 'a'.repeat(64),
  configuration: null,
}

type ToolOptions = { readonly input_schema?: Json; readonly output_schema?: Json }

/** A tool entry of a create request, placed in environment `box`. */
export const toolNamed = (name: string, options: ToolOptions = {}): Json => ({
  name,
  description: `does ${name}`,
  input_schema: { type: 'object' },
  ...options,
  placements: { box: { implementation: TOOL_IMPLEMENTATION } },
})

export type HarnessOptions = {
  readonly limits?: Partial<Limits>
  readonly journal?: Journal
  readonly fault?: () => string | undefined
  /** Beside the scripted one. */
  readonly providers?: readonly ModelProvider[]
  /** In place of the built-in one. */
  readonly loop?: Agentloop
  readonly defaultIdleTtlMs?: number
  /** Shared by many harnesses, and the caller's to close: each of its own has a thread. */
  readonly schemas?: SchemaChecker
  /** In place of the scripted one, under its name. */
  readonly provider?: ModelProvider
  /** Distributed tools, which are really called. */
  readonly toolServices?: readonly ToolService[]
  readonly proxies?: ProxyTexts
}

const neverCalled = (): never => {
  throw new Error('no component is admitted here')
}

/** Opens harnesses that share one thread for schemas, which ends with the tests of the file. */
export function sharedHarnesses(): (options?: HarnessOptions) => Harness {
  const schemas = openSchemaChecker()
  afterAll(() => schemas[Symbol.asyncDispose]())
  return (options = {}) => openHarness({ schemas, ...options })
}

/** Everything between HTTP and the executor, over the memory journal, with the test as executor. */
export function openHarness(options: HarnessOptions = {}) {
  const limits: Limits = { ...defaultLimits, ...options.limits }
  const journal =
    options.journal ?? openMemoryJournal({ limits, ...(options.fault === undefined ? {} : { fault: options.fault }) })
  const schemas = options.schemas ?? openSchemaChecker()
  const binding = new HandBinding()
  const logs = new Map<string, CallLog>()
  const callLogs = {
    write: async (session: SessionId, sequence: number, log: CallLog) => void logs.set(`${session}/${sequence}`, log),
    read: async (session: SessionId, sequence: number) => logs.get(`${session}/${sequence}`),
    forget: async () => undefined,
  }
  const secrets = new Map<string, string>()
  const credentials = {
    put: async (session: SessionId, secret: string) => void secrets.set(session, secret),
    get: async (session: SessionId) => secrets.get(session) ?? '',
    forget: async (session: SessionId) => void secrets.delete(session),
  }
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const services = new Map((options.toolServices ?? []).map((service) => [service.name, service]))
  const bindings = new Map<SessionEnvironment['driver'], ToolBinding>([
    ['brain', binding],
    [
      'tool_service',
      toolServiceBinding({
        services: () => services,
        secret: () => undefined,
        proxies: parseProxyRules(options.proxies ?? {}),
        inspect: neverCalled,
        logger: silent,
      }),
    ],
  ])
  const callbacks = new Callbacks(() => 'http://127.0.0.1:1')
  const reporters = new Reporters({ baseUrl: () => 'http://127.0.0.1:1', sign: (text) => Buffer.from(text) })
  const dispatcher = new Dispatcher({
    limits,
    schemas,
    callLogs,
    logger: silent,
    bindings,
    environments: openEnvironments({ bindings, schemas, callbacks, reporters, logger: silent }),
  })
  const providers = new Map<string, ModelProvider>([
    ['scripted', options.provider ?? scriptedProvider([{ text: 'done' }])],
    ...(options.providers ?? []).map((provider) => [provider.id, provider] as const),
  ])
  const served = new ServedAgentloops(
    new ComponentLoops({
      sandbox: { level: { name: 'none', landlockAbi: 0, remarks: ['a test'], unsafe: true }, invoke: neverCalled },
      components: { get: async () => undefined, ensureArtifact: neverCalled },
      brainEnv: new BrainEnv(
        () => undefined,
        () => undefined,
      ),
      callLogs,
      limits,
    }),
    new RemoteLoops({ send: neverCalled, callbacks, callLogs, limits }),
  )
  const { loop } = options
  const loops: Agentloops = loop === undefined ? served : { check: served.check, of: () => loop }
  const hosts = { bind: async () => undefined, release: async () => undefined, activity: () => undefined }
  const sessions = new Sessions({
    hosts,
    journal,
    dispatcher,
    credentials,
    providers,
    loops,
    limits,
    logger: silent,
    defaultIdleTtlMs: options.defaultIdleTtlMs,
  })
  const encodeError = (error: BrainError | ToolFailure): Answer => {
    const { status, body } = toProblem(error)
    return { status, body: JSON.stringify(body) }
  }
  const requests = new Requests({ journal, encodeError })
  const service = new SessionService({
    hosts,
    sessions,
    journal,
    requests,
    dispatcher,
    components: { get: async () => undefined },
    loops,
    schemas,
    providers,
    credentials,
    callLogs,
    catalog: new Catalog(() => services),
  })
  const calls = new DirectCalls({
    sessions,
    dispatcher,
    journal,
    limits,
    assertTakesWork: () => service.assertTakesWork(),
  })
  const feed = new EventFeed(sessions, limits)
  const activity = new ToolActivity(feed, journal)

  /** Runs work under a fresh key, or under the given one. */
  const once = (
    scope: string,
    work: Work | ((claim: ClaimInHand) => ReturnType<Work['run']>),
    key: string = randomUUID(),
    digest = 'd',
  ) => requests.run({ scope: `local:${scope}`, key, digest }, typeof work === 'function' ? { run: work } : work)

  const json = (value: unknown) => ({ answer: { status: 200, body: JSON.stringify(value) } })

  return {
    limits,
    journal,
    binding,
    requests,
    service,
    sessions,
    calls,
    feed,
    activity,
    /** The credentials that are kept, by session. */
    secrets,
    logs,
    once,
    async create(parts: { tools?: readonly Json[]; script?: Json; [more: string]: unknown } = {}): Promise<SessionId> {
      const { tools = [], script = [{ text: 'done' }], ...more } = parts
      const body = {
        model: { provider: 'scripted', name: 'script', api_key: 'k', script },
        tools,
        environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic' }],
        ...more,
      }
      const answer = await once('create_session', async (claim) =>
        json(await service.create(localTenant, parseCreateRequest(body as Json), claim)),
      )
      return (JSON.parse(answer.body) as { session_id: SessionId }).session_id
    },
    async call(id: SessionId, tool: string, input: Json, more: Partial<DirectCall> = {}): Promise<CallAnswer> {
      const answer = await once(`session:${id}:tool:${tool}:call`, (claim) =>
        calls.call(localTenant, id, { tool, input, wait: 'released', ...more }, claim),
      )
      return JSON.parse(answer.body) as CallAnswer
    },
    send: (id: SessionId, message: string) =>
      once(`session:${id}:message`, async (claim) => json(await service.send(localTenant, id, { message }, claim))),
    cancel: (id: SessionId) =>
      once(`session:${id}:cancel`, async (claim) => {
        await service.cancel(localTenant, id, claim)
        return { answer: { status: 204, body: '' } }
      }),
    end: (id: SessionId) => once(`session:${id}:end`, async (claim) => json(await service.end(localTenant, id, claim))),
    async records(id: SessionId): Promise<readonly JournalRecord[]> {
      return (await journal.page(id, 0, { limit: 10_000, maxBytes: 1 << 30 })).records
    },
    async kinds(id: SessionId): Promise<string[]> {
      const { records } = await journal.page(id, 0, { limit: 10_000, maxBytes: 1 << 30 })
      return records.map((record) => record.event_type)
    },
    async [Symbol.asyncDispose]() {
      if (options.schemas === undefined) await schemas[Symbol.asyncDispose]()
      await journal[Symbol.asyncDispose]()
    },
  }
}

export type Harness = ReturnType<typeof openHarness>
