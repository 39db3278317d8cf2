import { z } from 'zod'
import { BrainError, clip, messageOf } from '../../../kernel/errors.ts'
import { type ComponentId, isIdentifier, parseComponentId, type SessionId, type TenantId } from '../../../kernel/ids.ts'
import { type Json, parseJson } from '../../../kernel/json.ts'
import { describeLimit, type Limits } from '../../../contract/limits.ts'
import type {
  ComponentLoopImplementation,
  BrainEnvironment,
  SessionEnvironment,
} from '../../../contract/session-request.ts'
import { CallNotes, type CallLogs } from '../../../dispatch/call-log.ts'
import type { Place } from '../../../dispatch/environments/environment-operation.ts'
import { assertRunnable, type BrainEnv } from '../../../sandbox/brain-env.ts'
import type {
  AgentloopEntry,
  Components,
  HostServices,
  InvocationEnd,
  InvocationFacts,
  Sandbox,
} from '../../../sandbox/sandbox.ts'
import {
  type ActivationContext,
  type Agentloop,
  AgentloopFailure,
  type LoopHost,
  type TurnInput,
} from '../../agentloop.ts'
import { TextHost } from '../text-host.ts'

export type ComponentLoopsParts = {
  readonly sandbox: Pick<Sandbox, 'level' | 'invoke'>
  readonly components: Pick<Components, 'get' | 'ensureArtifact'>
  readonly brainEnv: BrainEnv
  readonly callLogs: Pick<CallLogs, 'write'>
  readonly limits: Limits
}

const implementationSchema = z.strictObject({
  type: z.literal('brain_component'),
  entrypoint: z.literal('turn'),
  id: z.string(),
})

/** Stands in the key of a box where a tool's name would: no tool can have it. */
const NO_TOOL = ''

/** Agentloops that are components (contract 7.2): they run in boxes as tools do, under permits of their own. */
export class ComponentLoops {
  readonly #parts: ComponentLoopsParts

  constructor(parts: ComponentLoopsParts) {
    this.#parts = parts
  }

  /** @throws BrainError `invalid_request`, `sandbox_unavailable` */
  async check(
    tenant: TenantId,
    { implementation, environment }: { readonly implementation: Json; readonly environment?: SessionEnvironment },
  ): Promise<ComponentLoopImplementation> {
    const refuse = (reason: string): never => {
      throw new BrainError('invalid_request', `Cannot create the session: ${reason}`)
    }
    const parsed = implementationSchema.safeParse(implementation)
    if (!parsed.success)
      return refuse(
        `agentloop.implementation must be {"type":"brain_component","entrypoint":"turn","id":…}: ${z.prettifyError(parsed.error)}`,
      )
    if (environment?.driver !== 'brain')
      refuse('an agentloop that is a component needs agentloop.environment, the name of one with driver "brain"')
    assertRunnable(this.#parts.sandbox.level)
    const { id } = parsed.data
    if ((await this.#parts.components.get(tenant, parseComponentId(id)))?.role !== 'agentloop')
      refuse(`no agentloop ${id} is admitted; upload it to POST /v1/agentloops first`)
    return parsed.data
  }

  of({ id }: ComponentLoopImplementation, place: Place | undefined): Agentloop {
    const environment = place?.environment
    return {
      run: (input, host, context) => {
        // A session that was imported may name anything.
        if (environment?.driver !== 'brain')
          throw new AgentloopFailure('environment_not_ready', 'Cannot start the agentloop: it has no environment')
        return this.#run(parseComponentId(id), environment, { input, host, context })
      },
    }
  }

  async #run(
    component: ComponentId,
    environment: BrainEnvironment,
    {
      input,
      host,
      context,
    }: { readonly input: TurnInput; readonly host: LoopHost; readonly context: ActivationContext },
  ): Promise<{ result?: Json }> {
    const { sandbox, components, brainEnv, limits } = this.#parts
    const { tenant, session, signal } = context
    await components.ensureArtifact(component)
    signal.throwIfAborted()
    const notes = new CallNotes()
    const services = new TextHost(host, notes)
    const mostMs = limits.guestCpuSecs === 0 ? Number.POSITIVE_INFINITY : limits.guestCpuSecs * 1000
    const call: HostServices['call'] = async (method, args) => {
      try {
        return await services.call(method, args)
      } finally {
        // The thread that reads it is everybody's: what it computes for the loop is the loop's.
        if (services.servedMs > mostMs) execution.stop('cancelled')
      }
    }
    const execution = sandbox.invoke(
      {
        key: [session, environment.name, NO_TOOL, component].join('/'),
        owner: session,
        component,
        entry: toEntry(input, limits),
        ...brainEnv.grants(tenant, session, environment),
      },
      { call },
    )
    const stop = (): void => execution.stop('cancelled')
    signal.addEventListener('abort', stop, { once: true })
    try {
      const { end, facts } = await execution.ended
      noteEnd(notes, end, facts)
      if (end.type === 'stopped' && services.servedMs > mostMs) throw outOfTime(limits)
      return toResult(end)
    } finally {
      signal.removeEventListener('abort', stop)
      this.#keep(session, context.sequence, notes)
    }
  }

  /** What a loop printed stands beside the logs of calls, under the sequence of its activation. */
  #keep(session: SessionId, sequence: number, { log }: CallNotes): void {
    if (log !== undefined) this.#parts.callLogs.write(session, sequence, log).catch(() => undefined) // promised to nobody
  }
}

/** @throws AgentloopFailure where it is more than a component may be given. */
function toEntry(input: TurnInput, limits: Limits): AgentloopEntry {
  const entry: AgentloopEntry = {
    role: 'agentloop',
    input: JSON.stringify(input.input ?? null),
    transcript: JSON.stringify(input.transcript),
    kv: JSON.stringify(input.kv),
    events: JSON.stringify(input.events),
    configuration: JSON.stringify(input.configuration),
    system: input.system,
    tools: JSON.stringify(input.tools),
    logicalTimeMs: input.runtime.logical_time_ms,
    deterministicSeed: Buffer.from(input.runtime.deterministic_seed).toString('hex'),
  }
  let bytes = 0
  for (const text of Object.values(entry)) if (typeof text === 'string') bytes += Buffer.byteLength(text)
  if (bytes > limits.executionInputBytes)
    throw new AgentloopFailure(
      'agentloop_failed',
      `The agentloop cannot be given ${bytes} bytes of conversation and events: the limit is ${describeLimit('executionInputBytes', limits)}`,
    )
  return entry
}

function noteEnd(notes: CallNotes, end: InvocationEnd, { stdout, stderr }: InvocationFacts): void {
  if (stdout !== '') notes.add({ type: 'stdout', text: stdout })
  if (stderr !== '') notes.add({ type: 'stderr', text: stderr })
  if (end.type === 'trapped') notes.add({ type: 'trap', message: end.message })
}

const outOfTime = (limits: Limits): AgentloopFailure =>
  new AgentloopFailure(
    'agentloop_failed',
    `The server computed for the agentloop longer than ${describeLimit('guestCpuSecs', limits)}`,
  )

/** @throws AgentloopFailure (contract 6.2: traps and exhausted limits of a loop are `agentloop_failed`) */
function toResult(end: InvocationEnd): { result?: Json } {
  switch (end.type) {
    case 'returned':
      return end.text === '' ? {} : { result: parseResult(end.text) }
    case 'failed':
      throw new AgentloopFailure(isIdentifier(end.code) ? end.code : 'agentloop_failed', clip(end.message), {
        retryable: end.retryable,
      })
    case 'trapped':
      throw new AgentloopFailure('agentloop_failed', clip(end.message))
    case 'refused':
      throw new AgentloopFailure(end.code, clip(end.message), { retryable: end.code === 'overloaded' })
    case 'stopped':
      throw new AgentloopFailure(end.reason, 'The agentloop was stopped')
    case 'lost':
      throw new AgentloopFailure('unknown', clip(end.message), { ambiguous: true })
    default:
      return end satisfies never
  }
}

function parseResult(text: string): Json {
  try {
    return parseJson(text, 'result')
  } catch (error) {
    throw new AgentloopFailure('agentloop_failed', clip(`The agentloop returned what is no JSON: ${messageOf(error)}`))
  }
}
