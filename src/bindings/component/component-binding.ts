import { z } from 'zod'
import { BrainError, clip, messageOf } from '../../kernel/errors.ts'
import { isIdentifier, parseComponentId, type ComponentId } from '../../kernel/ids.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import { covers, type NetworkOrigin, parseOrigin } from '../../contract/network-origin.ts'
import type {
  BrainEnvConfiguration,
  ComponentImplementation,
  SessionEnvironment,
} from '../../contract/session-request.ts'
import type { BoundCall, CallServices, Receipt, RunningCall, ToolBinding } from '../../dispatch/tool-binding.ts'
import type {
  Components,
  Execution,
  HostMethod,
  InvocationEnd,
  InvocationFacts,
  Mount,
  Sandbox,
} from '../../sandbox/sandbox.ts'

/** What the operator lets a brainEnv hold (contract 6.1). */
export type BrainEnvAllowance = {
  readonly secrets: readonly string[]
  readonly filesystem: readonly ('workspace' | 'scratch')[]
  readonly network: readonly NetworkOrigin[]
}

export type ComponentBindingParts = {
  readonly sandbox: Sandbox
  readonly components: Pick<Components, 'get'> & { ensureArtifact(id: ComponentId): Promise<void> }
  readonly allow: BrainEnvAllowance
  /** Value of a secret, read at each call; undefined when the server does not have it. */
  readonly secret: (name: string) => string | undefined
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
      assertRunnable(parts.sandbox)
      if ((await parts.components.get(tenant, parseComponentId(id))) === undefined)
        throw new BrainError(
          'invalid_request',
          `Cannot place a tool in environment "${environment.name}": component ${id} is not admitted; upload it to POST /v1/tools first`,
        )
    },
    checkEnvironment: (configuration) => checkGrants(parts, configuration),
    start: (call, services) => startCall(parts, call, services),
  }
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

function assertRunnable({ level }: Sandbox): void {
  if (level.name !== 'none' || level.unsafe) return
  const reason = level.remarks.join('; ')
  throw new BrainError(
    'sandbox_unavailable',
    `Cannot run components on this machine: ${reason}. Use Linux 5.13 or newer with landlock and seccomp, or set BRAIN_ENV_UNSAFE=1 for code that you trust`,
  )
}

const deny = (what: string, remedy: string): never => {
  throw new BrainError('invalid_request', `Cannot grant ${what}: ${remedy}`)
}

function checkGrants({ allow, secret }: ComponentBindingParts, configuration: BrainEnvConfiguration): void {
  for (const name of configuration.secrets ?? []) {
    if (!allow.secrets.includes(name)) deny(`secret "${name}"`, "it is not on the server's list BRAIN_ENV_SECRET_ALLOW")
    if (secret(name) === undefined)
      deny(`secret "${name}"`, 'it is allowed, but the server has no variable of that name')
  }
  for (const origin of configuration.network ?? []) {
    if (!isAllowed(allow.network, origin))
      deny(`network access to "${origin}"`, "it is not on the server's list BRAIN_ENV_NETWORK_ALLOW")
  }
  for (const directory of ['workspace', 'scratch'] as const) {
    if (configuration.filesystem?.[directory] !== undefined && !allow.filesystem.includes(directory))
      deny(`filesystem "${directory}"`, "it is not on the server's list BRAIN_ENV_FILESYSTEM_ALLOW")
  }
}

function isAllowed(list: readonly NetworkOrigin[], text: string): boolean {
  const wanted = parseOrigin(text)
  return wanted !== undefined && list.some((allowed) => covers(allowed, wanted))
}

/** The name of a session's workspace in one environment. */
export const workspaceName = (session: string, environment: string): string => `${session}/${environment}`

/** What the session was granted, within what the operator allows now: lists shrink while sessions live. */
function mountsOf({ allow }: ComponentBindingParts, session: string, environment: SessionEnvironment): Mount[] {
  const { workspace, scratch } = environment.configuration.filesystem ?? {}
  const mounts: Mount[] = []
  if (workspace !== undefined && allow.filesystem.includes('workspace'))
    mounts.push({
      guest: '/workspace',
      workspace: workspaceName(session, environment.name),
      write: workspace === 'write',
    })
  if (scratch !== undefined && allow.filesystem.includes('scratch'))
    mounts.push({ guest: '/scratch', write: scratch === 'write' })
  return mounts
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
        key: [call.session, call.environment.name, call.tool, id].join('/'),
        owner: call.session,
        component,
        input: call.input,
        configuration: JSON.stringify(configuration),
        deadlineAtMs: call.deadlineAtMs,
        ...(call.deadlineInMs === undefined ? {} : { deadlineInMs: Math.max(0, call.deadlineInMs - spent) }),
        mounts: mountsOf(parts, call.session, call.environment),
        secrets: secretsOf(parts, call.environment),
        network: networkOf(parts, call.environment),
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

function networkOf({ allow }: ComponentBindingParts, environment: SessionEnvironment): string[] {
  return (environment.configuration.network ?? []).filter((origin) => isAllowed(allow.network, origin))
}

function secretsOf({ secret }: ComponentBindingParts, environment: SessionEnvironment): Record<string, string> {
  const values: Record<string, string> = {}
  for (const name of environment.configuration.secrets ?? []) {
    const value = secret(name)
    if (value !== undefined) values[name] = value
  }
  return values
}

async function callHost(
  services: CallServices,
  method: HostMethod,
  args: readonly (string | undefined)[],
): Promise<string> {
  const [first, second] = args
  switch (method) {
    case 'emit':
      return String(await services.emit(first ?? '', second ?? ''))
    case 'emitResult':
      return String(await services.emitResult(first ?? ''))
    case 'returned':
      return String(await services.returned(first))
    case 'finish':
      return String(await services.finish(first))
    case 'model':
      return services.model(first ?? '')
    case 'environments':
      return services.environments(first ?? '')
    case 'telemetry':
      services.note({ type: 'telemetry', record: first ?? '' })
      return ''
    default:
      return method satisfies never
  }
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
