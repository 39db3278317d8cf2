import * as host from 'brain:agentloop/host'
import { messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { BrainError } from '../brain-error.ts'
import { environmentRequests } from '../host/environment-requests.ts'
import { jsonOf } from '../json-value.ts'
import type { ActivationTool, AgentloopContext, LoopCall, LoopEnvironments, LoopMemory } from './agentloop-context.ts'

/** What the host calls the export `turn` with. */
export type GuestTurnInput = {
  readonly inputJson: string
  readonly transcriptJson: string
  readonly kvJson: string
  readonly eventsJson: string
  readonly configurationJson: string
  readonly system: string
  readonly toolsJson: string
  readonly runtime: { readonly logicalTimeMs: number | bigint; readonly deterministicSeed: Iterable<number> }
}

/** The context of one activation, over the functions that its component imports. */
export function openContext(input: GuestTurnInput): AgentloopContext {
  const tools = read<readonly ActivationTool[]>(input.toolsJson)
  let calls = 0
  const invocation = ({ name, input: given, ...rest }: LoopCall): object => {
    const environment = rest.environment ?? tools.find((tool) => tool.name === name)?.environments[0]
    if (environment === undefined)
      throw new BrainError(0, 'invalid_request', `Cannot call "${name}": there is no such tool in this session`)
    const refs = tools.find((tool) => tool.name === name)?.environment_refs
    const sequence = rest.environment_sequence ?? refs?.find((ref) => ref.name === environment)?.sequence
    return {
      call_id: rest.call_id ?? `loop_call_${++calls}`,
      name,
      environment,
      ...(sequence !== undefined && sequence !== 1 && { environment_sequence: sequence }),
      input: given,
    }
  }
  const callTools: AgentloopContext['callTools'] = (given) =>
    ask(host.dispatch, text(given.map(invocation), 'calls')) as never
  const { logicalTimeMs, deterministicSeed } = input.runtime
  return Object.freeze<AgentloopContext>({
    input: read<AgentloopContext['input'] | null>(input.inputJson) ?? undefined,
    transcript: read(input.transcriptJson),
    events: read(input.eventsJson),
    configuration: read(input.configurationJson),
    system: input.system,
    tools,
    runtime: { logical_time_ms: Number(logicalTimeMs), deterministic_seed: [...deterministicSeed] },
    kv: memoryOf(read(input.kvJson)),
    environments: environments(),
    model: (request) => ask(host.model, text(request, 'request')) as never,
    callTool: (call) => callTools([call])[0] as never,
    callTools,
    setTranscript: (messages) => tell(() => host.setTranscript(text(messages, 'messages'))),
    readEvents: (after) => tell(() => read(host.events(after))),
    emit: (kind, data) => tell(() => host.emit(kind, text(data, 'data'))),
    telemetry: (record) => host.telemetry(text(record, 'record')),
  })
}

/** What is set is recorded at once. Values are kept as text: what the loop does to one it got changes none that it gets. */
function memoryOf(start: Readonly<Record<string, Json>>): LoopMemory {
  const values = new Map(Object.entries(start).map(([key, value]) => [key, JSON.stringify(value)]))
  return Object.freeze<LoopMemory>({
    get: (key) => {
      const value = values.get(key)
      return value === undefined ? undefined : read(value)
    },
    set: (key, value) => {
      const copy = text(value, 'value')
      const sequence = tell(() => host.kvPut(key, copy))
      values.set(key, copy)
      return sequence
    },
    delete: (key) => {
      const sequence = tell(() => host.kvDelete(key))
      values.delete(key)
      return sequence
    },
  })
}

function environments(): LoopEnvironments {
  const operations = Object.entries(environmentRequests).map(([operation, request]) => [
    operation,
    (...args: never[]) => ask(host.environments, text((request as (...given: never[]) => object)(...args), 'request')),
  ])
  return Object.freeze(Object.fromEntries(operations)) as LoopEnvironments
}

const read = <Value>(json: string): Value => JSON.parse(json) as Value

const text = (value: unknown, what: string): string => JSON.stringify(jsonOf(value, what))

const ask = (service: (request: string) => string, request: string): Json => tell(() => read(service(request)))

/** @throws BrainError for what the host refuses */
function tell<Answer>(work: () => Answer): Answer {
  try {
    return work()
  } catch (error) {
    const payload = (error as { payload?: { code: string; message: string; retryable: boolean } } | null)?.payload
    if (payload === undefined) throw error
    const { code, message, retryable } = payload
    throw new BrainError(0, code, message || messageOf(error), { retryable })
  }
}
