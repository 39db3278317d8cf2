import { z } from 'zod'
import { BrainError, clip, messageOf } from '../../kernel/errors.ts'
import { isIdentifier, parseComponentId } from '../../kernel/ids.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import { brainEnvSchema } from '../../contract/brain-env-schema.ts'
import type {
  BrainEnvConfiguration,
  BrainEnvironment,
  ComponentImplementation,
  SessionEnvironment,
} from '../../contract/session-request.ts'
import type { BoundCall, CallServices, Receipt, RunningCall, ToolBinding } from '../../dispatch/tool-binding.ts'
import { ACCEPTED } from '../../dispatch/environments/environment-operation.ts'
import { assertRunnable, type BrainEnv, workspaceName } from '../../sandbox/brain-env.ts'
import type {
  Components,
  Execution,
  HostMethod,
  InvocationEnd,
  InvocationFacts,
  Sandbox,
} from '../../sandbox/sandbox.ts'

export type ComponentBindingParts = {
  readonly sandbox: Sandbox
  readonly components: Pick<Components, 'get' | 'ensureArtifact'>
  readonly brainEnv: BrainEnv
}

const implementationSchema = z.strictObject({
  type: z.literal('brain_component'),
  entrypoint: z.literal('run'),
  id: z.string(),
  /** Options that are left out are none: an empty object. */
  configuration: z.custom<Json>().default({}),
})

/** Runs tools that are components, in boxes (contract 6). */
export function componentBinding(parts: ComponentBindingParts): ToolBinding {
  return {
    driver: 'brain',
    async checkPlacement(tenant, implementation, environment) {
      const { id } = parseImplementation(implementation)
      assertRunnable(parts.sandbox.level)
      if ((await parts.components.get(tenant, parseComponentId(id)))?.role !== 'tool')
        throw new BrainError(
          'invalid_request',
          `Cannot place a tool in environment "${environment.name}": no tool ${id} is admitted; upload it to POST /v1/tools first`,
        )
    },
    checkEnvironment: (tenant, environment) => parts.brainEnv.check(tenant, checkedConfiguration(environment)),
    // Its directories come into being when they are used.
    async operate({ session, place, request }) {
      if (request.type === 'teardown') await parts.sandbox.files.destroy(workspaceName(session, place.reference.name))
      return ACCEPTED
    },
    start: (call, services) => startCall(parts, call, services),
  }
}

function ownEnvironment(environment: SessionEnvironment): BrainEnvironment {
  if (environment.driver === 'brain') return environment
  throw new Error(`environment "${environment.name}" has driver "${environment.driver}"`)
}

/** An update gives any JSON. */
function checkedConfiguration(environment: SessionEnvironment): BrainEnvConfiguration {
  const { name, configuration } = ownEnvironment(environment)
  const parsed = brainEnvSchema.safeParse(configuration)
  if (parsed.success) return configuration
  throw new BrainError('invalid_request', `Cannot configure environment "${name}": ${z.prettifyError(parsed.error)}`)
}

function parseImplementation(implementation: Json): ComponentImplementation {
  if (isJsonObject(implementation) && implementation['type'] === 'brain_program')
    throw new BrainError(
      'unsupported',
      'Cannot place a tool: brain_program is not part of this server; compile it to a component',
    )
  const parsed = implementationSchema.safeParse(implementation)
  if (!parsed.success)
    throw new BrainError(
      'invalid_request',
      `Cannot place a tool in a brain environment: its implementation must be {"type":"brain_component","entrypoint":"run","id":…}: ${z.prettifyError(parsed.error)}`,
    )
  return parsed.data
}

function startCall(parts: ComponentBindingParts, call: BoundCall, services: CallServices): RunningCall {
  let execution: Execution | undefined
  let stopped: 'timeout' | 'cancelled' | undefined
  const receipt = (async (): Promise<Receipt> => {
    const began = performance.now()
    const { id, configuration } = parseImplementation(call.implementation)
    const component = parseComponentId(id)
    await parts.components.ensureArtifact(component)
    if (stopped !== undefined) return { type: 'stopped', reason: stopped }
    const spent = performance.now() - began
    execution = parts.sandbox.invoke(
      {
        key: [call.session, call.place.reference.name, call.tool, id].join('/'),
        owner: call.session,
        component,
        entry: {
          role: 'tool',
          input: call.input,
          configuration: JSON.stringify(configuration),
          deadlineAtMs: call.deadlineAtMs,
        },
        ...(call.deadlineInMs === undefined ? {} : { deadlineInMs: Math.max(0, call.deadlineInMs - spent) }),
        ...parts.brainEnv.grants(call.tenant, call.session, ownEnvironment(call.place.environment)),
      },
      { call: (method, args) => callHost(services, method, args) },
    )
    const { end, facts } = await execution.ended
    noteFacts(services, facts)
    return toReceipt(end, services)
  })().catch((error: unknown) => toFailedReceipt(error, services))
  return {
    receipt,
    cancel: (reason) => {
      stopped ??= reason
      execution?.stop(reason)
      return Promise.resolve()
    },
  }
}

type Answer = (
  services: CallServices,
  first: string | undefined,
  second: string | undefined,
) => Promise<number | string>

/** The functions of `brain:tool/host`; the others are for agentloops. */
const ANSWERS: Partial<Readonly<Record<HostMethod, Answer>>> = {
  emit: (services, kind = '', payload = '') => services.emit(kind, payload),
  emitResult: (services, outcome = '') => services.emitResult(outcome),
  returned: (services, outcome) => services.returned(outcome),
  finish: (services, outcome) => services.finish(outcome),
  model: (services, request = '') => services.model(request),
  environments: (services, request = '') => services.environments(request),
  async telemetry(services, record = '') {
    services.note({ type: 'telemetry', record })
    return ''
  },
}

async function callHost(
  services: CallServices,
  method: HostMethod,
  [first, second]: readonly (string | undefined)[],
): Promise<string> {
  const answer = ANSWERS[method]
  if (answer === undefined) throw new BrainError('unsupported_host_call', `Cannot call ${method}: it is for agentloops`)
  return String(await answer(services, first, second))
}

function noteFacts(services: CallServices, facts: InvocationFacts): void {
  if (facts.stdout !== '') services.note({ type: 'stdout', text: facts.stdout })
  if (facts.stderr !== '') services.note({ type: 'stderr', text: facts.stderr })
}

function toReceipt(end: InvocationEnd, services: CallServices): Receipt {
  switch (end.type) {
    case 'returned':
      return { type: 'result', text: end.text }
    case 'failed':
      return failure(isIdentifier(end.code) ? end.code : 'tool_error', end.message)
    case 'trapped':
      services.note({ type: 'trap', message: end.message })
      return failure(end.code, end.message)
    case 'refused':
      return failure(end.code, end.message)
    case 'stopped':
      return { type: 'stopped', reason: end.reason }
    case 'lost':
      return { type: 'unknown', message: end.message }
    default:
      return end satisfies never
  }
}

const failure = (code: string, message: string): Receipt => ({
  type: 'failure',
  error: { code, message: clip(message), retryable: false },
})

function toFailedReceipt(error: unknown, services: CallServices): Receipt {
  if (error instanceof BrainError) return failure(error.code, error.message)
  services.note({ type: 'warning', message: `the call could not be followed: ${messageOf(error)}` })
  return { type: 'unknown', message: 'The call could not be followed to its end' }
}
