import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { systemClock } from './kernel/clock.ts'
import { type BrainError, messageOf } from './kernel/errors.ts'
import type { SessionId } from './kernel/ids.ts'
import type { Logger } from './kernel/logger.ts'
import type { ToolFailure } from './contract/tool-failure.ts'
import { journalIn } from './archive/backup.ts'
import { openHostStore } from './bindings/host/host-store.ts'
import { Hosts } from './bindings/host/hosts.ts'
import { baseUrlOf, openExecutors } from './compose/open-executors.ts'
import { openProviders } from './compose/open-providers.ts'
import type { SchemaChecker } from './contract/schema-checker.ts'
import type { Config } from './config/config.ts'
import { openCallLogDirectory } from './dispatch/call-log-directory.ts'
import { openSchemaChecker } from './dispatch/schemas/open-schema-checker.ts'
import { Access } from './http/access.ts'
import { OpenStreams } from './http/open-streams.ts'
import { toProblem } from './http/problem.ts'
import { buildServer, closeServer, type Health } from './http/server.ts'
import type { Journal } from './journal/journal.ts'
import { checkJournal, type JournalSnapshot, openSnapshot } from './journal/sqlite/snapshot.ts'
import { insertSession } from './journal/sqlite/transfer.ts'
import { openSqliteJournal } from './journal/sqlite/sqlite-journal.ts'
import type { ModelProvider } from './model/model-provider.ts'
import { catalogueOf } from './model/remote/remote-provider.ts'
import { openComponents } from './sandbox/admission/components.ts'
import { loadTranspiler } from './sandbox/admission/transpiler/program.ts'
import { loadScripts } from './sandbox/bundle.ts'
import { spawnBoxed } from './sandbox/launch/spawn-boxed.ts'
import { workspaceName } from './sandbox/brain-env.ts'
import { probeLevel } from './sandbox/level.ts'
import { openProcessSandbox } from './sandbox/process-sandbox.ts'
import type { Sandbox, SandboxLevel } from './sandbox/sandbox.ts'
import { Catalog } from './session/catalog.ts'
import { ComponentRegistry } from './session/component-registry.ts'
import { forgetOrphans, type KeptCredentials, openCredentials } from './session/credentials.ts'
import { DirectCalls } from './session/direct-calls.ts'
import { EnvironmentService } from './session/environment-service.ts'
import { EventFeed } from './session/event-feed.ts'
import { Inspections } from './session/inspections.ts'
import { Requests } from './session/requests.ts'
import { SessionService } from './session/session-service.ts'
import { Sessions } from './session/sessions.ts'
import { ToolActivity } from './session/tool-activity.ts'
import { WorkspaceService } from './session/workspace-service.ts'

/** What commands do with the journal of a data directory, beside a server or instead of one. */
export const archiveJournal = {
  open: openSnapshot,
  openIn: (directory: string): JournalSnapshot => openSnapshot(journalIn(directory)),
  check: checkJournal,
}

/** Writes sessions, and the keys of their models, into a data directory that no server uses. */
export const archiveWriter = (directory: string, secretKey: string | undefined) => ({
  insert: insertSession,
  async keep(session: SessionId, apiKey: string): Promise<void> {
    const credentials = await openCredentials(join(directory, 'credentials'), secretKey)
    await credentials.forget(session)
    await credentials.put(session, apiKey)
  },
})

/** A server that is ready to listen. */
export type Brain = AsyncDisposable & {
  readonly app: FastifyInstance
  readonly level: SandboxLevel
  /** Takes no new work and lets what runs end, at most for `graceMs` (contract A1). */
  drain(graceMs: number): Promise<void>
}

const SWEEP_MS = 600_000
/** A session of which nothing goes on is kept in memory for so long, for those who come back at once. */
const QUIET_MS = 30_000

export type Adapters = {
  readonly journal: Journal
  readonly schemas: SchemaChecker
  readonly sandbox: Sandbox
  readonly components: Awaited<ReturnType<typeof openComponents>>
  readonly callLogs: Awaited<ReturnType<typeof openCallLogDirectory>>
  readonly credentials: KeptCredentials
  readonly hosts: Hosts
  readonly providers: ReadonlyMap<string, ModelProvider>
}

/** Opens everything that has a life of its own; the stack ends it in reverse. */
async function openAdapters(config: Config, logger: Logger, stack: AsyncDisposableStack): Promise<Adapters> {
  const { limits, dataDirectory } = config
  const journal = stack.use(await openSqliteJournal({ directory: dataDirectory, limits }))
  const schemas = stack.use(openSchemaChecker())
  const level = await probeLevel({ unsafe: config.isUnsafeAllowed, searchPath: config.searchPath })
  const components = stack.use(await openComponentStore(config, level, schemas))
  const sandbox = stack.use(
    await openProcessSandbox({
      dataDirectory,
      limits,
      level,
      isolation: config.isolation,
      logger,
      recoverArtifact: (id) => {
        components.distrustArtifact(id)
        return components.ensureArtifact(id)
      },
    }),
  )
  return {
    journal,
    schemas,
    sandbox,
    components,
    callLogs: await openCallLogDirectory(join(dataDirectory, 'call-logs')),
    credentials: await openCredentials(join(dataDirectory, 'credentials'), config.secretKey),
    hosts: stack.use(new Hosts({ store: await openHostStore(join(dataDirectory, 'hosts')), limits, logger })),
    providers: await openProviders(config),
  }
}

/** Where adapters meet ports: the whole server, put together (design 1). */
export async function composeBrain(config: Config, logger: Logger): Promise<Brain> {
  await using stack = new AsyncDisposableStack()
  const adapters = await openAdapters(config, logger, stack)
  const { app, service, streams, sessions } = assemble(config, logger, adapters)
  await sessions.recover()
  stack.defer(await startForgettingOrphans(adapters, logger))
  stack.defer(startReleasingHosts(adapters, logger))
  stack.defer(() => closeServer(app))
  stack.defer(startSweeping({ ...adapters, limits: config.limits, logger }))
  const lettingGo = setInterval(() => sessions.letGo(QUIET_MS), QUIET_MS / 3).unref()
  stack.defer(() => clearInterval(lettingGo))
  const rest = stack.move()
  return {
    app,
    level: adapters.sandbox.level,
    async drain(graceMs) {
      await service.drain(graceMs)
      streams.end()
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

/** Whose credentials are kept is looked at before the server listens: a session that is being made has no record yet. */
async function startForgettingOrphans({ credentials, journal }: Adapters, logger: Logger): Promise<() => void> {
  const stop = new AbortController()
  const isOrphan = async (id: SessionId): Promise<boolean> => (await journal.session(id)) === undefined
  const kept = await credentials.sessions()
  forgetOrphans(credentials, { kept, isOrphan, signal: stop.signal }).catch((error: unknown) => {
    if (!stop.signal.aborted)
      logger.warn({ error: messageOf(error) }, 'cannot forget credentials of sessions that were never made')
  })
  return () => stop.abort()
}

/** Hosts are let go of by sessions that a crash kept from doing it; those of today's are not looked at. */
function startReleasingHosts({ hosts, journal }: Adapters, logger: Logger): () => void {
  const stop = new AbortController()
  const bound = hosts.sessions
  const release = async (): Promise<void> => {
    for (const id of bound) {
      if (stop.signal.aborted) return
      const row = await journal.session(id)
      if (row === undefined || row.status === 'ended' || row.status === 'failed') await hosts.release(id)
    }
  }
  release().catch((error: unknown) => {
    if (!stop.signal.aborted) logger.warn({ error: messageOf(error) }, 'cannot release hosts of sessions that are over')
  })
  return () => stop.abort()
}

type Assembled = {
  readonly app: FastifyInstance
  readonly service: SessionService
  readonly streams: OpenStreams
  readonly sessions: Sessions
}

function assemble(config: Config, logger: Logger, adapters: Adapters): Assembled {
  const { limits } = config
  const { journal, sandbox, components, hosts } = adapters
  const inspections = new Inspections()
  const { dispatcher, loops, environments } = openExecutors(config, {
    ...adapters,
    inspections,
    logger,
    baseUrl: () => baseUrlOf(config, app),
  })
  const sessions = new Sessions({
    ...adapters,
    dispatcher,
    loops,
    limits,
    logger,
    defaultIdleTtlMs: config.sessionIdleTtlMs,
  })
  const requests = new Requests({ journal, encodeError })
  const { files } = sandbox
  const catalog = new Catalog(config.toolServices)
  const service = new SessionService({ ...adapters, catalog, loops, sessions, requests, dispatcher })
  const assertTakesWork = (): void => service.assertTakesWork()
  const streams = new OpenStreams()
  const events = new EventFeed(sessions, limits)
  const app: FastifyInstance = buildServer({
    limits,
    requests,
    streams,
    logger,
    warning: sandbox.level.unsafe
      ? 'This server runs components with the flags of Node alone (BRAIN_ENV_UNSAFE=1): run code that you trust only'
      : undefined,
    access: new Access({ tenants: config.tenants, hosts: hostsOf(config), corsOrigins: config.corsOrigins }),
    health: healthOf({ journal, sandbox, service }),
    sessions: service,
    hosts,
    environments: new EnvironmentService({ sessions, environments, requests, assertTakesWork }),
    calls: new DirectCalls({ sessions, dispatcher, journal, limits, assertTakesWork }),
    events,
    activity: new ToolActivity(events, journal),
    tools: new ComponentRegistry('tool', components, journal),
    agentloops: new ComponentRegistry('agentloop', components, journal),
    files: new WorkspaceService(sessions, files, workspaceName),
    models: catalogueOf(config.providers),
    catalog,
    inspections,
  })
  return { app, service, streams, sessions }
}

function encodeError(error: BrainError | ToolFailure): { status: number; body: string } {
  const { status, body } = toProblem(error)
  return { status, body: JSON.stringify(body) }
}

async function openComponentStore(
  { dataDirectory: directory, limits }: Config,
  level: SandboxLevel,
  schemas: SchemaChecker,
): ReturnType<typeof openComponents> {
  const { launcher } = await loadScripts()
  return openComponents({
    directory,
    limits,
    schemas,
    level,
    clock: systemClock,
    transpiler: await loadTranspiler(),
    spawn: (start, events) => spawnBoxed({ ...start, launcher, level }, events),
  })
}

/** The names under which the server answers: its own address, `localhost` and its public name (design 5). */
function hostsOf({ listen, publicUrl }: Config): readonly string[] {
  const own = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  return [
    ...new Set([own, 'localhost', '127.0.0.1', '[::1]', ...(publicUrl === undefined ? [] : [publicUrl.hostname])]),
  ]
}

function healthOf({
  journal,
  sandbox,
  service,
}: {
  journal: Journal
  sandbox: Sandbox
  service: SessionService
}): Health {
  return {
    isReady: () => !service.isDraining && journal.health().state === 'ok',
    async describe() {
      return { draining: service.isDraining, journal: journal.health(), sandbox: await sandbox.status() }
    },
  }
}

type Sweeping = {
  readonly journal: Journal
  readonly callLogs: Awaited<ReturnType<typeof openCallLogDirectory>>
  readonly limits: Config['limits']
  readonly logger: Logger
}

/** Lets go of what is kept for a day: answers of old requests, call logs. */
function startSweeping({ journal, callLogs, limits, logger }: Sweeping): () => void {
  const sweep = async (): Promise<void> => {
    await journal.expireClaims(limits.requestRetentionSecs * 1000)
    await callLogs.sweep(Date.now())
  }
  const run = (): void =>
    void sweep().catch((error: unknown) =>
      logger.warn({ error: messageOf(error) }, 'cannot sweep old answers and logs'),
    )
  const timer = setInterval(run, SWEEP_MS).unref()
  run()
  return () => clearInterval(timer)
}
