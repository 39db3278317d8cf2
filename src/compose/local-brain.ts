import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ComponentId, SessionId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { ToolOutput } from '../contract/outcome.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Config } from '../config/config.ts'
import type { CallLog } from '../dispatch/call-log.ts'
import { type DataDirectory, openDataDirectory } from '../journal/sqlite/data-directory.ts'
import { WORLDS } from '../sandbox/admission/world.ts'
import { openProcessSandbox, type ProcessSandboxOptions } from '../sandbox/process-sandbox.ts'
import type { Component, ComponentRole, SandboxLevel } from '../sandbox/sandbox.ts'
import type { LocalItem } from './local-item.ts'
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
  /** Starts what the next admission needs, so that it takes half as long. */
  prepare(): Promise<void>
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

/** The part of a configuration with which a sandbox starts, and the rest of it, which takes longer to read. */
export type LocalConfig = Pick<
  Config,
  'limits' | 'isolation' | 'isUnsafeAllowed' | 'searchPath' | 'workspaceDirectories'
> & {
  /** @throws ConfigError */
  readonly load: () => Promise<Config>
}

export type LocalBrainOptions = {
  readonly config: LocalConfig
  /** Where components stay admitted from one command to the next; undefined = nowhere. */
  readonly cacheDirectory: string | undefined
  readonly logger: Logger
}

/** Commands that share a cache, each with a data directory of its own; more of them have none that lasts. */
const PLACES = 4
/** What an admitted component is made of; everything else in a data directory is of the command that had it before. */
const KEPT = new Set(['components', 'artifacts', 'level.json', 'lock.sqlite', 'journal'])
/**
 * @throws ConfigError, BrainError `sandbox_unavailable`
 */
export async function openLocalBrain({ config, cacheDirectory, logger }: LocalBrainOptions): Promise<LocalBrain> {
  await using stack = new AsyncDisposableStack()
  const dataDirectory = await takePlace(cacheDirectory, stack)
  const { limits, isolation, workspaceDirectories, isUnsafeAllowed, searchPath } = config
  const { level, forget } = await rememberedLevel(dataDirectory, { unsafe: isUnsafeAllowed, searchPath })
  const openSandbox = await startSandbox(
    { dataDirectory, limits, isolation, level, workspaceDirectories, logger },
    stack,
  )
  // Nothing before this line loads what sessions need.
  const { openLocalServices } = await import('./local-services.ts')
  const whole = { ...(await config.load()), dataDirectory }
  return await openLocalServices(whole, { level, forget, openSandbox, logger }, stack)
}

/**
 * Supervisor and box start at once, while this process loads what else it needs; both take as long. Loading keeps the one
 * thread that there is, so it begins when they have.
 */
async function startSandbox(
  options: ProcessSandboxOptions,
  stack: AsyncDisposableStack,
): Promise<typeof openProcessSandbox> {
  let recover: ProcessSandboxOptions['recoverArtifact']
  const recoverArtifact = async (id: ComponentId): Promise<void> => recover?.(id)
  const started = Promise.withResolvers<void>()
  const opening = openProcessSandbox({ ...options, recoverArtifact, onStarted: started.resolve })
  stack.defer(async () => (await opening.catch(() => undefined))?.[Symbol.asyncDispose]())
  // What goes wrong is told by whoever asks for the sandbox.
  await Promise.race([started.promise, opening.catch(() => {})])
  return ({ recoverArtifact: given }) => {
    recover = given
    return opening
  }
}

/** Full name of the world that components of a role are of. */
export const worldOf = (role: ComponentRole): string => WORLDS[role].name

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
