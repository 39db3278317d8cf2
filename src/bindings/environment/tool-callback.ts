import { BrainError } from '../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import type { CallServices } from '../../dispatch/tool-binding.ts'
import type { RemoteCall } from '../remote-call.ts'

/** Methods that every hosted tool may call (contract 5.3). */
export const TOOL_METHODS = ['emit', 'result', 'returned', 'finish', 'model', 'telemetry'] as const

type Ask = (services: CallServices, input: Json) => Promise<number | string>

const textOf = (outcome: Json): string | undefined => (outcome === null ? undefined : JSON.stringify(outcome))

/** Those of which order counts. */
const IN_ORDER: Readonly<Record<string, Ask>> = {
  emit: (services, input) => {
    const event = isJsonObject(input) ? input : {}
    const { event_type: eventType, data } = event
    if (typeof eventType !== 'string' || data === undefined || Object.keys(event).length !== 2)
      throw new BrainError('invalid_request', 'Cannot emit: input must be {"event_type":…,"data":…}')
    return services.emit(eventType, JSON.stringify(data))
  },
  result: (services, outcome) => services.emitResult(JSON.stringify(outcome)),
  returned: (services, outcome) => services.returned(textOf(outcome), 'refuse'),
  finish: (services, outcome) => services.finish(textOf(outcome), 'refuse'),
}

const OTHERS: Readonly<Record<string, Ask>> = {
  model: (services, request) => services.model(JSON.stringify(request)),
  environments: (services, request) => services.environments(JSON.stringify(request)),
  telemetry: async (services, record) => {
    services.note({ type: 'telemetry', record: JSON.stringify(record) })
    return 'null'
  },
}

/** Serves one request of a tool that runs elsewhere. @returns JSON text */
export async function serveTool(call: RemoteCall, method: string, input: Json): Promise<string> {
  const ordered = Object.hasOwn(IN_ORDER, method) ? IN_ORDER[method] : undefined
  const other = Object.hasOwn(OTHERS, method) ? OTHERS[method] : undefined
  if (ordered !== undefined) return String(await call.serveInOrder(async (services) => ordered(services, input)))
  if (other !== undefined) return String(await call.serve(async (services) => other(services, input)))
  throw new BrainError('invalid_request', `Cannot call ${JSON.stringify(method.slice(0, 80))}: there is no such method`)
}
