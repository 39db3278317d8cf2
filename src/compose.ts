import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type BrainError, messageOf } from './kernel/errors.ts'
import type { SessionId } from './kernel/ids.ts'
import type { Logger } from './kernel/logger.ts'
import type { ToolFailure } from './contract/tool-failure.ts'
import { journalIn } from './archive/backup.ts'
import { assembleServices, type Services } from './compose/assemble-services.ts'
import { type Adapters, openAdapters } from './compose/open-adapters.ts'
import { baseUrlOf } from './compose/open-executors.ts'
import type { Config, HostSettings } from './config/config.ts'
import { Access } from './http/access.ts'
import { OpenStreams } from './http/open-streams.ts'
import { toProblem } from './http/problem.ts'
import { buildServer, closeServer, type Health } from './http/server.ts'
import type { Journal } from './journal/journal.ts'
import { checkJournal, type JournalSnapshot, openSnapshot } from './journal/sqlite/snapshot.ts'
import { insertSession } from './journal/sqlite/transfer.ts'
import { openSqliteJournal } from './journal/sqlite/sqlite-journal.ts'
import { catalogueOf } from './model/remote/remote-provider.ts'
import type { Sandbox, SandboxLevel } from './sandbox/sandbox.ts'
import { forgetOrphans, openCredentials } from './session/credentials.ts'
import type { SessionService } from './session/session-service.ts'

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
  /** Goes on with what was read again: who is let in, and which tools there are. Calls that run keep what they have. */
  adopt(settings: HostSettings): void
}

const SWEEP_MS = 600_000
/** A session of which nothing goes on is kept in memory for so long, for those who come back at once. */
const QUIET_MS = 30_000

/** Where adapters meet ports: the whole server, put together (design 1). */
export async function composeBrain(config: Config, logger: Logger): Promise<Brain> {
  await using stack = new AsyncDisposableStack()
  const { limits, dataDirectory } = config
  const journal = stack.use(await openSqliteJournal({ directory: dataDirectory, limits }))
  const adapters = await openAdapters(config, { journal, logger }, stack)
  let settings: HostSettings = config
  const { app, service, streams, sessions } = assemble(config, { logger, settings: () => settings }, adapters)
  await sessions.recover()
  stack.defer(await startForgettingOrphans(adapters, logger))
  stack.defer(startReleasingHosts(adapters, logger))
  stack.defer(() => closeServer(app))
  stack.defer(startSweeping({ ...adapters, limits, logger }))
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
    adopt(next) {
      settings = next
      streams.endWithdrawn()
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

type Assembled = Pick<Services, 'service' | 'sessions'> & {
  readonly app: FastifyInstance
  readonly streams: OpenStreams
}

type Surroundings = { readonly logger: Logger; readonly settings: () => HostSettings }

function assemble(config: Config, { logger, settings }: Surroundings, adapters: Adapters): Assembled {
  const baseUrl = (): string => baseUrlOf(config, app)
  const services = assembleServices(config, adapters, { logger, settings, baseUrl, encodeError })
  const { service, sessions } = services
  const { journal, sandbox, hosts } = adapters
  const streams = new OpenStreams()
  const app: FastifyInstance = buildServer({
    ...services,
    sessions: service,
    limits: config.limits,
    streams,
    logger,
    warning: sandbox.level.unsafe
      ? 'This server runs components with the flags of Node alone (BRAIN_ENV_UNSAFE=1): run code that you trust only'
      : undefined,
    access: new Access({ tenants: () => settings().tenants, hosts: hostsOf(config), corsOrigins: config.corsOrigins }),
    health: healthOf({ journal, sandbox, service }),
    hosts,
    models: catalogueOf(config.providers),
  })
  return { app, service, streams, sessions }
}

function encodeError(error: BrainError | ToolFailure): { status: number; body: string } {
  const { status, body } = toProblem(error)
  return { status, body: JSON.stringify(body) }
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

type Sweeping = Pick<Adapters, 'journal' | 'callLogs'> & { readonly limits: Config['limits']; readonly logger: Logger }

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
