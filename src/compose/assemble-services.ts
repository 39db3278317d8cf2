import type { BrainError } from '../kernel/errors.ts'
import type { Logger } from '../kernel/logger.ts'
import type { ToolFailure } from '../contract/tool-failure.ts'
import type { Config, HostSettings } from '../config/config.ts'
import { workspaceName } from '../sandbox/brain-env.ts'
import { Catalog } from '../session/catalog.ts'
import { ComponentRegistry } from '../session/component-registry.ts'
import { DirectCalls } from '../session/direct-calls.ts'
import { EnvironmentService } from '../session/environment-service.ts'
import { EventFeed } from '../session/event-feed.ts'
import { Inspections } from '../session/inspections.ts'
import { type Answer, Requests } from '../session/requests.ts'
import { SessionService } from '../session/session-service.ts'
import { Sessions } from '../session/sessions.ts'
import { ToolActivity } from '../session/tool-activity.ts'
import { WorkspaceService } from '../session/workspace-service.ts'
import type { Adapters } from './open-adapters.ts'
import { openExecutors } from './open-executors.ts'

/** What sessions are and do, whoever asks for it: a server, or a command that has them for itself. */
export type Services = {
  readonly sessions: Sessions
  readonly service: SessionService
  readonly requests: Requests
  readonly environments: EnvironmentService
  readonly calls: DirectCalls
  readonly events: EventFeed
  readonly activity: ToolActivity
  readonly tools: ComponentRegistry
  readonly agentloops: ComponentRegistry
  readonly files: WorkspaceService
  readonly catalog: Catalog
  readonly inspections: Inspections
}

type Surroundings = {
  readonly logger: Logger
  /** What the host config says now. */
  readonly settings: () => HostSettings
  /** Under which environments and tool services reach this process. */
  readonly baseUrl: () => string
  /** How an error reads as the kept answer of a request. */
  readonly encodeError: (error: BrainError | ToolFailure) => Answer
}

export function assembleServices(
  config: Config,
  adapters: Adapters,
  { logger, settings, baseUrl, encodeError }: Surroundings,
): Services {
  const { limits } = config
  const { journal, sandbox, components } = adapters
  const inspections = new Inspections()
  const executors = openExecutors(config, { ...adapters, inspections, logger, settings, baseUrl })
  const { dispatcher, loops } = executors
  const sessions = new Sessions({
    ...adapters,
    dispatcher,
    loops,
    limits,
    logger,
    defaultIdleTtlMs: config.sessionIdleTtlMs,
  })
  const requests = new Requests({ journal, encodeError })
  const catalog = new Catalog(() => settings().toolServices)
  const service = new SessionService({ ...adapters, catalog, loops, sessions, requests, dispatcher })
  const assertTakesWork = (): void => service.assertTakesWork()
  const events = new EventFeed(sessions, limits)
  return {
    sessions,
    service,
    requests,
    environments: new EnvironmentService({
      sessions,
      environments: executors.environments,
      requests,
      assertTakesWork,
    }),
    calls: new DirectCalls({ sessions, dispatcher, journal, limits, assertTakesWork }),
    events,
    activity: new ToolActivity(events, journal),
    tools: new ComponentRegistry('tool', components, journal),
    agentloops: new ComponentRegistry('agentloop', components, journal),
    files: new WorkspaceService(sessions, sandbox.files, workspaceName),
    catalog,
    inspections,
  }
}
