import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { type Json, parseJson } from '../../kernel/json.ts'
import { controlRequestSchema } from '../../contract/environment-schema.ts'
import type { EnvironmentControlRequest, EnvironmentRef, EnvironmentView } from '../../contract/environment.ts'
import type { SchemaChecker } from '../../contract/schema-checker.ts'
import { TOOL_SERVICES } from '../../contract/tool-service.ts'
import type { HttpEnvironment } from '../../contract/session-request.ts'
import type { EnvironmentEntry } from '../../journal/environment-state.ts'
import type { Budget } from '../budget.ts'
import { assertMay, assertNotWithin, type Authority, mayUse } from './authority.ts'
import type { EnvironmentOperations, OperatedSession } from './environment-operations.ts'
import { assertIs, declared, entryOf, viewOf } from './places.ts'

/** What the start and the end of an operation take beside what was asked, about. */
const RECORDS_BYTES = 512

export type EnvironmentControlParts = {
  readonly operations: EnvironmentOperations
  readonly schemas: SchemaChecker
}

/** What callers may do with a session's environments (contract 5.4). */
export class EnvironmentControl {
  readonly #parts: EnvironmentControlParts

  constructor(parts: EnvironmentControlParts) {
    this.#parts = parts
  }

  /**
   * Serves one control request.
   * @returns a view, a list of views, or what a method gave
   * @throws BrainError `invalid_request` for a request that is wrong or not granted, `not_found` for a stale reference,
   *   `conflict` for one that comes at the wrong time, `environment_not_ready`, `environment_output_invalid`, `ambiguous`
   *   when it is not known what was done; ToolFailure with the environment's own code
   */
  async handle(session: OperatedSession, authority: Authority, request: EnvironmentControlRequest): Promise<Json> {
    if (request.operation !== 'list' && request.operation !== 'get') assertNotOver(session)
    switch (request.operation) {
      case 'list':
        return this.#list(session, authority) as unknown as Json
      case 'get':
        return viewed(session, this.#find(session, authority, 'read', request.environment))
      case 'create':
        return (await this.#create(session, authority, request)) as unknown as Json
      case 'setup':
        return this.#setUp(session, authority, request.environment)
      case 'update':
        return this.#update(session, authority, request)
      case 'delete':
        return this.#delete(session, authority, request.environment)
      case 'call':
        return this.#call(session, authority, request)
      default:
        return request satisfies never
    }
  }

  /**
   * As {@link handle}, for those who speak in texts. What they ask is recorded, and so it is paid for.
   * @throws BrainError `output_limit`
   */
  async handleText(
    session: OperatedSession,
    authority: Authority,
    { text, budget }: { readonly text: string; readonly budget: Budget },
  ): Promise<string> {
    if (authority.kind === 'granted' && authority.grants.length === 0)
      throw new BrainError('unsupported_host_call', 'Cannot use environments: none were granted to whoever asks')
    budget.chargeRecord(RECORDS_BYTES + Buffer.byteLength(text))
    return JSON.stringify(await this.handle(session, authority, parseControl(parseJson(text, 'environments request'))))
  }

  /** An environment by its name alone, as the application's route names it. */
  reference({ state }: OperatedSession, name: string): EnvironmentRef {
    const entry = state.environments.get(name)
    if (entry === undefined || entry.state === 'deleted')
      throw new BrainError('not_found', `Cannot find environment "${name.slice(0, 128)}"`)
    return entry.reference
  }

  #list(session: OperatedSession, authority: Authority): readonly EnvironmentView[] {
    if (authority.kind === 'granted' && !authority.grants.some(({ permissions }) => permissions.includes('read')))
      throw new BrainError('invalid_request', 'Cannot list environments: no grant gives "read" of any')
    return [...session.state.environments.values()]
      .filter(({ state, template }) => state !== 'deleted' && mayUse(authority, 'read', template))
      .map((entry) => viewOf(session, entry))
  }

  #find(
    session: OperatedSession,
    authority: Authority,
    permission: Parameters<typeof assertMay>[1],
    reference: EnvironmentRef,
  ): EnvironmentEntry {
    const template = session.state.environments.get(reference.name)?.template ?? reference.name
    assertMay(authority, permission, template)
    return entryOf(session, reference)
  }

  async #create(
    session: OperatedSession,
    authority: Authority,
    { template, name, configuration }: EnvironmentControlRequest & { operation: 'create' },
  ): Promise<EnvironmentView> {
    assertMay(authority, 'create', template)
    const base = declared(session, template)
    if (base?.driver !== 'http' || base.template === undefined)
      throw new BrainError('invalid_request', `Cannot create environment "${name}": "${template}" is no template`)
    await this.#checkConfiguration(base, name, configuration)
    assertNotOver(session)
    assertFree(session, name)
    const { max_instances: most } = base.template
    const others = [...session.state.environments.values()].filter(
      (entry) => entry.template === template && entry.reference.name !== template,
    )
    if (others.length + session.environmentWork.making(template) >= most)
      throw new BrainError(
        'conflict',
        `Cannot create environment "${name}": "${template}" has ${most} instances, which is its max_instances; delete one first`,
      )
    return session.environmentWork.make(name, template, async () => {
      await session.log.commitOwn((sequence) => ({
        kind: 'environment_declared',
        data: newView(session, base, { reference: { name, sequence }, configuration }),
      }))
      const entry = session.state.environments.get(name)
      if (entry === undefined) throw new Error('a declared environment is not in the state')
      return viewOf(session, entry)
    })
  }

  async #checkConfiguration({ template }: HttpEnvironment, name: string, configuration: Json): Promise<void> {
    if (template === undefined) return
    const verdict = await this.#parts.schemas.checkValue(template.configuration_schema, JSON.stringify(configuration))
    if (!verdict.valid)
      throw new BrainError('invalid_request', `Cannot configure environment "${name}": ${verdict.message}`)
  }

  async #setUp(session: OperatedSession, authority: Authority, reference: EnvironmentRef): Promise<Json> {
    const entry = this.#find(session, authority, 'setup', reference)
    assertIs(entry, ['declared'], 'set up')
    assertFreeToChange(session, entry)
    await session.environmentWork.change(reference.name, () => this.#parts.operations.setUp(session, entry))
    return viewed(session, entryOf(session, reference))
  }

  async #update(
    session: OperatedSession,
    authority: Authority,
    { environment: reference, configuration }: EnvironmentControlRequest & { operation: 'update' },
  ): Promise<Json> {
    const { template } = this.#find(session, authority, 'update', reference)
    assertNotWithin(authority, reference.name, 'update')
    const base = declared(session, template)
    if (base?.driver === 'http' && reference.name !== template)
      await this.#checkConfiguration(base, reference.name, configuration)
    else if (base !== undefined) this.#parts.operations.checkConfiguration(session, base, configuration)
    assertNotOver(session)
    const entry = entryOf(session, reference)
    assertIs(entry, ['declared'], 'update')
    assertFreeToChange(session, entry)
    await session.environmentWork.change(reference.name, () =>
      session.log.commit({
        records: [{ kind: 'environment_updated', data: { environment: reference, configuration } }],
      }),
    )
    return viewed(session, entryOf(session, reference))
  }

  async #delete(session: OperatedSession, authority: Authority, reference: EnvironmentRef): Promise<Json> {
    const entry = this.#find(session, authority, 'delete', reference)
    assertNotWithin(authority, reference.name, 'delete')
    assertFreeToChange(session, entry)
    await session.environmentWork.change(reference.name, () => this.#parts.operations.remove(session, entry))
    return viewOf(session, entry, 'deleted') as unknown as Json
  }

  async #call(
    session: OperatedSession,
    authority: Authority,
    { environment: reference, method, input }: EnvironmentControlRequest & { operation: 'call' },
  ): Promise<Json> {
    const { name } = reference
    const template = session.state.environments.get(name)?.template ?? name
    assertMay(authority, 'call', template, method)
    entryOf(session, reference)
    const base = declared(session, template)
    const methods = (base?.driver === 'http' ? base.methods : undefined) ?? {}
    const found = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (found === undefined)
      throw new BrainError('invalid_request', `Cannot call "${method}": environment "${name}" has no such method`)
    const verdict = await this.#parts.schemas.checkValue(found.input_schema, JSON.stringify(input))
    if (!verdict.valid)
      throw new BrainError('invalid_request', `Cannot call "${method}" of environment "${name}": ${verdict.message}`)
    const call = { name: method, input, outputSchema: found.output_schema }
    // Time has passed since it was looked at.
    assertNotOver(session)
    const entry = entryOf(session, reference)
    assertUnchanged(session, name)
    if (found.effect !== 'replace')
      return session.environmentWork.call(name, () => this.#parts.operations.call(session, entry, call))
    assertNotWithin(authority, name, 'replace')
    assertIdle(session, entry)
    return session.environmentWork.change(name, () => this.#parts.operations.replace(session, entry, call))
  }
}

/** @throws BrainError `invalid_request` */
export function parseControl(value: Json): EnvironmentControlRequest {
  const parsed = controlRequestSchema.safeParse(value)
  if (!parsed.success)
    throw new BrainError('invalid_request', `Cannot control environments: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

const viewed = (session: OperatedSession, entry: EnvironmentEntry): Json => viewOf(session, entry) as unknown as Json

const newView = (
  session: OperatedSession,
  { name: template, lifecycle }: HttpEnvironment,
  instance: { readonly reference: EnvironmentRef; readonly configuration: Json },
): EnvironmentView => viewOf(session, { ...instance, template, lifecycle, state: 'declared', mayHold: false })

/** What is over keeps what it has until it is deleted, and gets nothing new. */
function assertNotOver({ log, state: { status }, closing }: OperatedSession): void {
  if (status === 'ended' || status === 'failed' || status === 'ending' || closing === 'ending')
    throw new BrainError('invalid_request', `Cannot use environments of session "${log.session}": it is ${status}`)
}

/** Those that are set up with their session are its creation's until that has come to its end. */
function assertFreeToChange(session: OperatedSession, { reference, template, lifecycle }: EnvironmentEntry): void {
  assertUnchanged(session, reference.name)
  const isOfCreation = lifecycle === 'automatic' && reference.name === template
  if (session.state.status === 'creating' && isOfCreation)
    throw new BrainError(
      'conflict',
      `Cannot change environment "${reference.name}": its session is being created, which sets it up`,
    )
}

function assertUnchanged({ environmentWork }: OperatedSession, name: string): void {
  if (environmentWork.isChanging(name))
    throw new BrainError('conflict', `Cannot change environment "${name}": something else changes it right now`)
}

function assertFree(session: OperatedSession, name: string): void {
  const isTaken = session.state.environments.has(name) || name === TOOL_SERVICES.name
  if (isTaken || session.environmentWork.isChanging(name))
    throw new BrainError('conflict', `Cannot create environment "${name}": there is one of this name`)
}

/** What is replaced under somebody's feet would answer for something else (contract 5.4). */
function assertIdle(session: OperatedSession, { reference: { name }, state, pending }: EnvironmentEntry): void {
  const isUsed = [...session.openCalls.values()].some((call) => call.environment === name) || runsLoop(session, name)
  if (state === 'ready' && (isUsed || pending !== undefined || session.environmentWork.isCalled(name)))
    throw new BrainError('conflict', `Cannot replace environment "${name}": something runs in it`)
}

const runsLoop = ({ configuration, state }: OperatedSession, name: string): boolean =>
  state.status === 'running' && configuration.agentloop.environment === name
