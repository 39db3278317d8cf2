import { BEARER_TOKEN } from '../../kernel/bearer-token.ts'
import type { Logger } from '../../kernel/logger.ts'
import { proxyFor, type ProxyRules } from '../../kernel/net/proxy-rules.ts'
import type { ToolService } from '../../contract/tool-service.ts'
import { ACCEPTED } from '../../dispatch/environments/environment-operation.ts'
import type { BoundCall, CallServices, RunningCall, ToolBinding } from '../../dispatch/tool-binding.ts'
import { Connections } from './connections.ts'
import { unavailable } from './failures.ts'
import { ServiceCall } from './service-call.ts'
import type { InspectionGrant } from './service-request.ts'

export type ToolServiceBindingParts = {
  /** The bindings of the host config by name, looked up at each call; a call that began keeps its own. */
  readonly services: () => ReadonlyMap<string, ToolService>
  /** The value of a variable that a `token_env` names. */
  readonly secret: (name: string) => string | undefined
  readonly proxies: ProxyRules
  /** Lets the service of a call read the events of its session until it is closed. */
  readonly inspect: (call: BoundCall) => InspectionGrant & { close(): void }
  readonly logger: Logger
  /** Milliseconds from the start of a call to the head of its answer; default 30,000. */
  readonly headersMs?: number
}

/** How long a service may take to its response headers (seed: two time limits). */
const HEADERS_MS = 30_000

/** Runs tools that are services of the operator's, called over HTTP (seed distributed-tools, contract A4, A14-A16). */
export function toolServiceBinding(parts: ToolServiceBindingParts): ToolBinding & { close(): void } {
  const connections = new Connections()
  return {
    driver: 'tool_service',
    boundsResults: true,
    async checkPlacement() {},
    checkEnvironment() {},
    async operate() {
      return ACCEPTED
    },
    timeoutMs(tool) {
      const service = parts.services().get(tool)
      return service && service.timeout_seconds * 1000
    },
    start: (call, services) => startCall(parts, connections, call, services),
    close: () => connections.close(),
  }
}

function startCall(
  { services: offered, secret, proxies, inspect, logger, headersMs = HEADERS_MS }: ToolServiceBindingParts,
  connections: Connections,
  call: BoundCall,
  services: CallServices,
): RunningCall {
  const service = offered().get(call.tool)
  if (service === undefined || service.tenants?.includes(call.tenant) === false)
    return refused(call.tool, 'this server does not offer it any more')
  const token = service.token_env === undefined ? undefined : secret(service.token_env)
  if (service.token_env !== undefined && !isToken(token))
    return refused(call.tool, 'the token of its service is not set, or holds characters that no HTTP header may have')
  const url = new URL(service.url)
  const inspection = service.inspect_session ? inspect(call) : undefined
  const target = { url, proxy: proxyFor(proxies, url) }
  const parts = { service, target, token, inspection, connections, headersMs, logger }
  const running = new ServiceCall(parts, call, services)
  void Promise.race([services.ended, running.receipt]).then(() => inspection?.close())
  return running
}

const isToken = (token: string | undefined): boolean => token !== undefined && BEARER_TOKEN.test(token)

const refused = (tool: string, reason: string): RunningCall => ({
  receipt: Promise.resolve(unavailable(tool, reason)),
  cancel: () => Promise.resolve(),
})
