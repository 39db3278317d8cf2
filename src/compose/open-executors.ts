import type { FastifyInstance } from 'fastify'
import type { Logger } from '../kernel/logger.ts'
import { environmentBinding } from '../bindings/environment/environment-binding.ts'
import { EnvironmentUrls } from '../bindings/environment/environment-urls.ts'
import { HttpEnvironments } from '../bindings/environment/http-environments.ts'
import { componentBinding } from '../bindings/component/component-binding.ts'
import { hostBinding } from '../bindings/host/host-binding.ts'
import { toolServiceBinding } from '../bindings/tool-service/tool-service-binding.ts'
import type { Adapters } from './open-adapters.ts'
import { type Allowance, type Config, type HostSettings, isLoopback } from '../config/config.ts'
import { Dispatcher } from '../dispatch/dispatcher.ts'
import { Callbacks } from '../dispatch/environments/callbacks.ts'
import { type Environments, openEnvironments } from '../dispatch/environments/environments.ts'
import { Reporters } from '../dispatch/environments/reporters.ts'
import { BrainEnv } from '../sandbox/brain-env.ts'
import { credentialIn, readSecrets } from '../session/session-secrets.ts'
import type { Inspections } from '../session/inspections.ts'
import type { Agentloops } from '../turn/agentloop.ts'
import { ComponentLoops } from '../turn/loops/component/component-loops.ts'
import { RemoteLoops } from '../turn/loops/remote/remote-loops.ts'
import { ServedAgentloops } from '../turn/loops/served-agentloops.ts'

/** What runs tools and agentloops: every driver of environments, and what is done with environments themselves. */
export type Executors = {
  readonly dispatcher: Dispatcher
  readonly loops: Agentloops
  readonly environments: Environments
}

type Parts = Pick<Adapters, 'schemas' | 'sandbox' | 'components' | 'callLogs' | 'hosts' | 'credentials'> & {
  readonly logger: Logger
  /** What the host config says now. */
  readonly settings: () => HostSettings
  /** Under which environments and tool services reach this server. */
  readonly baseUrl: () => string
  readonly inspections: Inspections
}

export function openExecutors(config: Config, parts: Parts): Executors {
  const { schemas, sandbox, components, callLogs, hosts, credentials, logger, baseUrl, inspections, settings } = parts
  const { limits, listen } = config
  const allowanceOf = (tenant: string): Allowance | undefined =>
    settings().tenants.find(({ id }) => id === tenant)?.allow
  const brainEnv = new BrainEnv(allowanceOf, (name) => settings().secrets.get(name))
  const urls = (tenant: string): EnvironmentUrls => {
    // Loopback is one person's: of many tenants none is to reach what others have there.
    const isLocal = isLoopback(listen.host) && settings().tenants.length === 1
    const allowance = allowanceOf(tenant)
    return new EnvironmentUrls({ allow: allowance === undefined ? [] : allowance.environmentUrls, isLocal })
  }
  const elsewhere = new HttpEnvironments({
    urls,
    credentialOf: async (session, name) => credentialIn(readSecrets(await credentials.get(session)), name),
    limits,
    logger,
  })
  const callbacks = new Callbacks(baseUrl)
  const bindings = new Map(
    [
      componentBinding({ sandbox, components, brainEnv }),
      hostBinding(hosts),
      environmentBinding({ environments: elsewhere, callbacks }),
      toolServiceBinding({
        services: () => settings().toolServices,
        secret: (name) => settings().toolTokens.get(name),
        proxies: config.proxies,
        inspect: ({ tenant, session }) => ({ ...inspections.open(tenant, session), brainUrl: baseUrl() }),
        logger,
      }),
    ].map((binding) => [binding.driver, binding]),
  )
  const reporters = new Reporters({ baseUrl, sign: (text) => credentials.sign(text) })
  const environments = openEnvironments({ bindings, schemas, callbacks, reporters, logger })
  const dispatcher = new Dispatcher({ limits, schemas, callLogs, logger, bindings, environments })
  const loops = new ServedAgentloops(
    new ComponentLoops({ sandbox, components, brainEnv, callLogs, limits }),
    new RemoteLoops({ send: (sending) => elsewhere.send(sending), callbacks, callLogs, limits }),
  )
  return { dispatcher, loops, environments }
}

/** Under which environments reach this server: its public name, or where it listens. */
export function baseUrlOf({ publicUrl, listen }: Config, app: FastifyInstance): string {
  if (publicUrl !== undefined) return publicUrl.href.replace(/\/+$/, '')
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : listen.port
  const host = ['0.0.0.0', '::'].includes(listen.host) ? '127.0.0.1' : listen.host
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
