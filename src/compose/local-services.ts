import { BrainError } from '../kernel/errors.ts'
import { type ComponentId, localTenant, parseSessionId, type SessionId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { Logger } from '../kernel/logger.ts'
import { within } from '../kernel/within.ts'
import type { ToolFailure } from '../contract/tool-failure.ts'
import type { Config } from '../config/config.ts'
import { openSchemaChecker, type TrustingSchemaChecker } from '../dispatch/schemas/open-schema-checker.ts'
import { openMemoryJournal } from '../journal/memory/memory-journal.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import { loadTranspiler } from '../sandbox/admission/transpiler/program.ts'
import type { openProcessSandbox } from '../sandbox/process-sandbox.ts'
import type { Component, ComponentRole, SandboxLevel } from '../sandbox/sandbox.ts'
import { parseCreateRequest } from '../session/create-request.ts'
import { answerOf } from '../session/direct-calls.ts'
import type { ClaimInHand } from '../session/requests.ts'
import { assembleServices, type Services } from './assemble-services.ts'
import type { LocalAnswer, LocalBrain, LocalCall } from './local-brain.ts'
import { type LocalItem, toLocalItem } from './local-item.ts'
import { type Adapters, openAdapters } from './open-adapters.ts'

type Given = {
  readonly level: SandboxLevel
  /** Has the level probed anew by the next command. */
  readonly forget: () => Promise<void>
  readonly openSandbox: typeof openProcessSandbox
  readonly logger: Logger
}

/** @param stack what was opened before; all of it ends with the answer */
export async function openLocalServices(
  config: Config,
  { level, forget, openSandbox, logger }: Given,
  stack: AsyncDisposableStack,
): Promise<LocalBrain> {
  const journal = stack.use(openMemoryJournal({ limits: config.limits }))
  let program: ReturnType<typeof loadTranspiler> | undefined
  const transpiler = (): ReturnType<typeof loadTranspiler> => (program ??= loadTranspiler())
  // Most commands have nothing for its thread to do.
  const schemas = openSchemaChecker({ atOnce: false })
  const adapters = await openAdapters(config, { journal, logger, level, transpiler, schemas, openSandbox }, stack)
  const services = assembleServices(config, adapters, {
    logger,
    settings: () => config,
    baseUrl: () => 'http://127.0.0.1',
    encodeError: noAnswer,
  })
  return new LocalServices({ adapters, schemas, services, forget, stack: stack.move() })
}

/** Keys of requests are used once here, and nobody asks for their answers again. */
const noAnswer = (error: BrainError | ToolFailure): { status: number; body: string } => ({
  status: 500,
  body: error.message,
})

/** Components that stay admitted in one place. */
const KEPT_COMPONENTS = 8

/** How long a tool may go on after its end before its log is read as far as it is. */
const LOG_MS = 1000

/** How calls end for which no box could be had. */
const NO_BOX = new Set(['environment_not_ready', 'overloaded'])

const isEndOf = (record: JournalRecord, sequence: number): boolean =>
  (dataOf(record, 'tool_call_ended') ?? dataOf(record, 'tool_call_failed'))?.sequence === sequence

/** Nothing here is asked for twice. */
const newClaim = (): ClaimInHand => ({
  claim: { scope: 'local', key: crypto.randomUUID(), digest: '' },
  made: () => {},
})

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

type LocalParts = {
  readonly adapters: Adapters
  readonly schemas: TrustingSchemaChecker
  readonly services: Services
  /** Has the level probed anew by the next command. */
  readonly forget: () => Promise<void>
  readonly stack: AsyncDisposableStack
}

class LocalServices implements LocalBrain {
  readonly #parts: LocalParts

  constructor(parts: LocalParts) {
    this.#parts = parts
  }

  get level(): SandboxLevel {
    return this.#parts.adapters.sandbox.level
  }

  async admit(bytes: Uint8Array, role: ComponentRole = 'tool'): Promise<Component> {
    const component = await this.#parts.adapters.components.admit(localTenant, once(bytes), role)
    const { input_schema, output_schema, options_schema } = component.metadata ?? {}
    // Admission looked at them, now or in the command that admitted the component.
    for (const schema of [input_schema, output_schema, options_schema])
      if (schema !== undefined) this.#parts.schemas.trust(schema)
    return component
  }

  prepare(): Promise<void> {
    return this.#parts.adapters.components.prepare()
  }

  async putFile(
    session: SessionId,
    environment: string,
    { path, bytes }: { path: string; bytes: Uint8Array },
  ): Promise<void> {
    await this.#parts.services.files.write(localTenant, session, environment, { path, body: once(bytes) })
  }

  async readFile(session: SessionId, environment: string, path: string): Promise<Uint8Array | undefined> {
    try {
      const { body } = await this.#parts.services.files.read(localTenant, session, environment, path)
      return Buffer.concat(await Array.fromAsync(body))
    } catch (error) {
      if (error instanceof BrainError && error.code === 'not_found') return undefined
      throw error
    }
  }

  async createSession(request: Json): Promise<SessionId> {
    const parsed = parseCreateRequest(request)
    const summary = await this.#parts.services.service.create(localTenant, parsed, newClaim())
    return parseSessionId(summary.session_id)
  }

  async endSession(session: SessionId): Promise<void> {
    await this.#parts.services.service.end(localTenant, session, newClaim())
  }

  async call(session: SessionId, { signal, onItem = () => {}, ...call }: LocalCall): Promise<LocalAnswer> {
    const { calls, service } = this.#parts.services
    const { last_sequence: before } = await service.get(localTenant, session)
    const attended = await calls.attend(localTenant, session, call, () => {})
    const interrupt = (): void => void attended.interrupt()
    if (signal?.aborted === true) interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    try {
      const records = await this.#follow(session, { before, sequence: attended.sequence, onItem })
      const answer = answerOf(attended.sequence, records, 'finished')
      const outcome = answer.outcome ?? { status: 'unknown', message: 'The call ended without an outcome' }
      if (outcome.status === 'error' && NO_BOX.has(outcome.error.code)) await this.#parts.forget()
      await within(attended.logged, LOG_MS)
      return {
        sequence: attended.sequence,
        outcome,
        results: answer.results.map(({ output }) => output),
        events: answer.events.flatMap(({ event_type: kind, data }) =>
          isReservedKind(kind) ? [] : [{ kind, payload: data as Json }],
        ),
        log: await service.callLog(localTenant, session, attended.sequence),
      }
    } finally {
      signal?.removeEventListener('abort', interrupt)
    }
  }

  /** Reads on until the call has ended, also when it says more than a reader's backlog holds. */
  async #follow(
    session: SessionId,
    { before, sequence, onItem }: { before: number; sequence: number; onItem: (item: LocalItem) => void },
  ): Promise<JournalRecord[]> {
    const records: JournalRecord[] = []
    let cursor = before
    for (;;) {
      const feed = await this.#parts.services.events.follow(localTenant, session, cursor, new AbortController().signal)
      for await (const item of feed) {
        onItem(toLocalItem(item))
        if (item.type === 'live') continue
        const { record } = item
        cursor = record.sequence
        records.push(record)
        if (isEndOf(record, sequence)) return records
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.services.service.drain(0)
    await this.#forgetOldest()
    await this.#parts.stack.disposeAsync()
  }

  async #forgetOldest(): Promise<void> {
    const { components } = this.#parts.adapters
    const admitted = (await components.list(localTenant)).toSorted((a, b) => b.admittedAtMs - a.admittedAtMs)
    const remove = (id: ComponentId): Promise<unknown> => components.remove(localTenant, id)
    for (const { id } of admitted.slice(KEPT_COMPONENTS)) await remove(id)
  }
}
