import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BrainError } from '../kernel/errors.ts'
import { type ComponentId, localTenant, parseSessionId, type SessionId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import { within } from '../kernel/within.ts'
import type { ToolOutput } from '../contract/outcome.ts'
import type { Logger } from '../kernel/logger.ts'
import type { ToolFailure } from '../contract/tool-failure.ts'
import type { Config } from '../config/config.ts'
import type { CallLog } from '../dispatch/call-log.ts'
import { openMemoryJournal } from '../journal/memory/memory-journal.ts'
import { dataOf, isReservedKind, type JournalRecord } from '../journal/record.ts'
import { type DataDirectory, openDataDirectory } from '../journal/sqlite/data-directory.ts'
import { WORLDS } from '../sandbox/admission/world.ts'
import { openProcessSandbox, type ProcessSandboxOptions } from '../sandbox/process-sandbox.ts'
import { loadTranspiler } from '../sandbox/admission/transpiler/program.ts'
import type { Component, ComponentRole, SandboxLevel } from '../sandbox/sandbox.ts'
import { parseCreateRequest } from '../session/create-request.ts'
import { answerOf } from '../session/direct-calls.ts'
import type { ClaimInHand } from '../session/requests.ts'
import type { Services } from './assemble-services.ts'
import { type LocalItem, toLocalItem } from './local-item.ts'
import type { Adapters } from './open-adapters.ts'
import { rememberedLevel } from './remembered-level.ts'

export type LocalCall = {
  readonly tool: string
  readonly input: Json
  /** Milliseconds; default: BRAIN_MAX_TOOL_SECS. */
  readonly deadlineMs?: number
  /** Cancels the call. */
  readonly signal?: AbortSignal
  /** Is told everything of the call that a reader of the session's event stream sees, as it comes. */
  readonly onItem?: (item: LocalItem) => void
}

export type LocalAnswer = {
  readonly sequence: number
  readonly outcome: ToolOutput
  /** What it emitted, in order. */
  readonly results: readonly Json[]
  readonly events: readonly { readonly kind: string; readonly payload: Json }[]
  readonly log: CallLog
}

/** Brain inside a command: real admission, boxes and dispatch, without a network and with a journal that ends with it. */
export type LocalBrain = AsyncDisposable & {
  readonly level: SandboxLevel
  /** @throws BrainError as an upload does */
  admit(component: Uint8Array, role?: ComponentRole): Promise<Component>
  /** Puts a file into a workspace of a session. @throws BrainError as the route does (contract A12) */
  putFile(session: SessionId, environment: string, file: { path: string; bytes: Uint8Array }): Promise<void>
  /** @returns undefined when there is no such file */
  readFile(session: SessionId, environment: string, path: string): Promise<Uint8Array | undefined>
  /**
   * @param request body of `POST /v1/sessions` (contract 2.1)
   * @throws BrainError as that does
   */
  createSession(request: Json): Promise<SessionId>
  /** Ends a session, which gives its boxes up. */
  endSession(session: SessionId): Promise<void>
  /** Makes a direct call and waits for its end. @throws BrainError when it cannot be started */
  call(session: SessionId, call: LocalCall): Promise<LocalAnswer>
}

export type LocalBrainOptions = {
  /** Everything but `dataDirectory`, which is chosen here. */
  readonly config: Config
  /** Where components stay admitted from one command to the next; undefined = nowhere. */
  readonly cacheDirectory: string | undefined
  readonly logger: Logger
}

/** Commands that share a cache, each with a data directory of its own; more of them have none that lasts. */
const PLACES = 4
/** What an admitted component is made of; everything else in a data directory is of the command that had it before. */
const KEPT = new Set(['components', 'artifacts', 'level.json', 'lock.sqlite', 'journal'])
/** Components that stay admitted in one place. */
const KEPT_COMPONENTS = 8

export async function openLocalBrain(options: LocalBrainOptions): Promise<LocalBrain> {
  await using stack = new AsyncDisposableStack()
  const { logger } = options
  const config = { ...options.config, dataDirectory: await takePlace(options.cacheDirectory, stack) }
  const { limits } = config
  const { level, forget } = await rememberedLevel(config.dataDirectory, {
    unsafe: config.isUnsafeAllowed,
    searchPath: config.searchPath,
  })
  const openSandbox = startSandbox({ ...config, level, logger }, stack)
  const [{ openAdapters }, { assembleServices }] = await Promise.all([
    import('./open-adapters.ts'),
    import('./assemble-services.ts'),
  ])
  const journal = stack.use(openMemoryJournal({ limits }))
  let program: ReturnType<typeof loadTranspiler> | undefined
  const transpiler = (): ReturnType<typeof loadTranspiler> => (program ??= loadTranspiler())
  const adapters = await openAdapters(config, { journal, logger, level, transpiler, openSandbox }, stack)
  const services = assembleServices(config, adapters, {
    logger,
    settings: () => config,
    baseUrl: () => 'http://127.0.0.1',
    encodeError: noAnswer,
  })
  return new Local({ adapters, services, forget, stack: stack.move() })
}

/** Supervisor and box start at once, while this process loads what else it needs; both take as long. */
function startSandbox(options: ProcessSandboxOptions, stack: AsyncDisposableStack): typeof openProcessSandbox {
  let recover: ProcessSandboxOptions['recoverArtifact']
  const recoverArtifact = async (id: ComponentId): Promise<void> => recover?.(id)
  const opening = openProcessSandbox({ ...options, recoverArtifact })
  stack.defer(async () => (await opening.catch(() => undefined))?.[Symbol.asyncDispose]())
  return ({ recoverArtifact: given }) => {
    recover = given
    return opening
  }
}

/** Full name of the world that components of a role are of. */
export const worldOf = (role: ComponentRole): string => WORLDS[role].name

/** Keys of requests are used once here, and nobody asks for their answers again. */
const noAnswer = (error: BrainError | ToolFailure): { status: number; body: string } => ({
  status: 500,
  body: error.message,
})

/** A data directory that is this command's alone until the stack ends. */
async function takePlace(cacheDirectory: string | undefined, stack: AsyncDisposableStack): Promise<string> {
  for (let place = 0; place < PLACES && cacheDirectory !== undefined; place++) {
    const directory = join(cacheDirectory, `place-${place}`)
    const taken = take(directory)
    if (taken === undefined) continue
    stack.use(taken)
    for (const name of await readdir(directory))
      if (!KEPT.has(name)) await rm(join(directory, name), { recursive: true, force: true })
    return directory
  }
  const directory = await mkdtemp(join(tmpdir(), 'brain-run-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Not there when another command has it, and when it cannot be used: a cache is nothing to fail for. */
function take(directory: string): DataDirectory | undefined {
  try {
    return openDataDirectory(directory, { waitMs: 0 })
  } catch {
    return undefined
  }
}

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
  readonly services: Services
  /** Has the level probed anew by the next command. */
  readonly forget: () => Promise<void>
  readonly stack: AsyncDisposableStack
}

class Local implements LocalBrain {
  readonly #parts: LocalParts

  constructor(parts: LocalParts) {
    this.#parts = parts
  }

  get level(): SandboxLevel {
    return this.#parts.adapters.sandbox.level
  }

  admit(component: Uint8Array, role: ComponentRole = 'tool'): Promise<Component> {
    return this.#parts.adapters.components.admit(localTenant, once(component), role)
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
