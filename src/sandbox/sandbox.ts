import type { ComponentId } from '../kernel/ids.ts'
import type { ToolMetadata } from '../contract/session-request.ts'

/** The security level that this machine offers (design 5), and whether components may run on it. */
export type SandboxLevel = {
  readonly name: 'bubblewrap' | 'landlock' | 'none'
  /** At level `bubblewrap`: the program that makes the namespaces. */
  readonly bubblewrap?: { readonly path: string; readonly version: string }
  /** Landlock ABI that the kernel reports; 0 where there is none. */
  readonly landlockAbi: number
  /** Why the level is not better, or what of it is reduced, in words for an operator. */
  readonly remarks: readonly string[]
  /** Level `none` and the operator set BRAIN_ENV_UNSAFE=1: components run with Node's flags alone. */
  readonly unsafe: boolean
}

/** What a component is for: it is of the world of that name (contract 6.3, 7.2). */
export type ComponentRole = 'tool' | 'agentloop'

/** What admission found out about an uploaded component. */
export type Component = {
  readonly id: ComponentId
  readonly role: ComponentRole
  readonly bytes: number
  /** The author's word (contract A7), validated in form. */
  readonly metadata?: ToolMetadata
  /** Interfaces that the component really imports, without versions. */
  readonly imports: readonly string[]
  readonly admittedAtMs: number
}

/** A directory that a guest sees. Brain made it, under its data directory. */
export type Mount =
  | { readonly guest: '/workspace'; readonly workspace: string; readonly write: boolean }
  | { readonly guest: '/scratch'; readonly write: boolean }

/** What the guest's `run` is called with. */
export type ToolEntry = {
  readonly role: 'tool'
  /** Text of the input JSON. */
  readonly input: string
  /** Text of the options JSON. */
  readonly configuration: string
  /** Absolute deadline, milliseconds since the epoch, as the guest is told it; 0 = none. */
  readonly deadlineAtMs: number
}

/** What the guest's `turn` is called with: JSON texts, but for `system` (contract 7.2). */
export type AgentloopEntry = {
  readonly role: 'agentloop'
  readonly input: string
  readonly transcript: string
  readonly kv: string
  readonly events: string
  readonly configuration: string
  readonly system: string
  readonly tools: string
  readonly logicalTimeMs: number
  /** 32 bytes, hexadecimal. */
  readonly deterministicSeed: string
}

/** Everything that one call may hold. Nothing in it names a session or a sequence: a guest sees parts of it. */
export type Invocation = {
  /** Which box serves the call: session, environment, tool and component (design 2). Never reaches the box. */
  readonly key: string
  /** Calls of one owner (a session) are served in order when permits are short. Never reaches the box. */
  readonly owner: string
  readonly component: ComponentId
  /** Which export is called, and with what. Each role has permits of its own (contract 6.2). */
  readonly entry: ToolEntry | AgentloopEntry
  /** Milliseconds from now until the box is killed; undefined = never. */
  readonly deadlineInMs?: number
  readonly mounts: readonly Mount[]
  /** Values of granted secrets by name, served as `/secrets/NAME`. */
  readonly secrets: Readonly<Record<string, string>>
  /** Origins that its HTTP requests may go to (contract/network-origin.ts). Never reaches the box. */
  readonly network: readonly string[]
}

/** The functions of `brain:tool/host` (contract 6.3) and of `brain:agentloop/host` (7.2). */
export type HostMethod =
  | 'emit'
  | 'emitResult'
  | 'returned'
  | 'finish'
  | 'model'
  | 'environments'
  | 'telemetry'
  | 'dispatch'
  | 'events'
  | 'setTranscript'
  | 'kvRead'
  | 'kvPut'
  | 'kvDelete'

/** Answers the guest's host calls, one at a time. */
export interface HostServices {
  /**
   * @param args the texts that the guest passed, uninterpreted; `undefined` for an absent option.
   * @param method any of them: a hostile guest asks for what its own interface does not have.
   * @returns the text of the answer: a sequence number, or JSON; for `kvRead` the empty text is none.
   * @throws BrainError, ToolFailure whose code, message and `retryable` the guest gets as its error.
   */
  call(method: HostMethod, args: readonly (string | undefined)[]): Promise<string>
}

/** How an invocation ended. */
export type InvocationEnd =
  /** `run` returned this text, or `turn` this result; the empty text is none. */
  | { readonly type: 'returned'; readonly text: string }
  /** It returned an error of its own; a tool has no say on `retryable`. */
  | { readonly type: 'failed'; readonly code: string; readonly message: string; readonly retryable: boolean }
  /** A trap, an exhausted limit, a component that cannot start: known to be over, the reason is certain. */
  | { readonly type: 'trapped'; readonly code: string; readonly message: string }
  /** It never began: no permit or no box in time, or the artifact could not be loaded. */
  | { readonly type: 'refused'; readonly code: 'overloaded' | 'environment_not_ready'; readonly message: string }
  /** Killed by us. */
  | { readonly type: 'stopped'; readonly reason: 'timeout' | 'cancelled' }
  /** The box or the supervisor went away: whether the work was done is not known. */
  | { readonly type: 'lost'; readonly message: string }

/** What is known about a finished invocation besides its end; for the call log (contract A29) and for measurements. */
export type InvocationFacts = {
  readonly stdout: string
  readonly stderr: string
  readonly runMs: number
  readonly cpuMs: number
  readonly fileOps: number
  readonly hostCalls: number
}

export interface Execution {
  /** Never rejects. */
  readonly ended: Promise<{ readonly end: InvocationEnd; readonly facts: InvocationFacts }>
  /** Kills the box of this invocation; returns at once. Has no effect after the end. */
  stop(reason: 'timeout' | 'cancelled'): void
}

export type FileEntry = { readonly path: string; readonly size: number; readonly mtimeMs: number }

/** Files of one workspace as the application sees them (contract A12): same paths, links and quotas as for guests. */
export interface WorkspaceFiles {
  /**
   * Regular files whose path begins with `prefix`, sorted by path, after the path `after`: at most `limit`, and fewer when
   * their paths are very long. There are no more when there are none.
   */
  list(workspace: string, query: { prefix: string; after: string; limit: number }): Promise<readonly FileEntry[]>
  /** @throws BrainError `not_found`, `invalid_request` */
  read(workspace: string, path: string): Promise<{ readonly size: number; readonly body: AsyncIterable<Uint8Array> }>
  /**
   * Replaces the file with the whole of `body`, or leaves it as it was. Missing parent directories are made.
   * @throws BrainError `invalid_request` for a refused path; `output_limit` when the quota is used up.
   */
  write(workspace: string, path: string, body: AsyncIterable<Uint8Array>): Promise<{ readonly size: number }>
  /** @throws BrainError `not_found` */
  remove(workspace: string, path: string): Promise<void>
  /** Deletes the whole workspace (session delete). */
  destroy(workspace: string): Promise<void>
}

export type SandboxStatus = {
  readonly level: SandboxLevel
  readonly supervisor: { readonly pid: number; readonly rssBytes: number } | undefined
  readonly boxes: readonly { readonly pid: number; readonly state: string; readonly privateBytes: number }[]
}

/**
 * Runs components that nobody trusts. Knows nothing of sessions, journals or HTTP, and says nothing about how: another
 * engine must be able to stand behind this port (design 2).
 *
 * S1  An invocation ends exactly once, and `ended` says how; nothing of it runs afterwards.
 * S2  A box serves one `key` only, and one invocation at a time, in a fresh instance.
 * S3  At `deadlineInMs` the box is killed, whatever the guest does.
 * S4  Host calls of an invocation arrive one after another, and none after `ended`.
 * S5  Losing the supervisor ends every open invocation `lost`; later ones work.
 */
export interface Sandbox extends AsyncDisposable {
  readonly level: SandboxLevel
  readonly files: WorkspaceFiles
  invoke(invocation: Invocation, services: HostServices): Execution
  status(): Promise<SandboxStatus>
}

/** Receives, checks, transpiles and keeps components (contract 1.2, A7, A13, A25). */
export interface Components extends AsyncDisposable {
  /**
   * Streams an upload to disk under `BRAIN_MAX_PACKAGE_BYTES`, checks and transpiles it. Admitting the same bytes again
   * answers the same component without work. Nothing of a refused upload stays.
   * @param role what it is to be admitted as; default: a tool.
   * @throws BrainError `invalid_request` (with `body: 'too_large'` when over the limit) naming the fault;
   *   `overloaded`; `sandbox_unavailable`.
   */
  admit(tenant: string, upload: AsyncIterable<Uint8Array>, role?: ComponentRole): Promise<Component>
  /** Components of a tenant by id; undefined when that tenant has not admitted it. */
  get(tenant: string, id: ComponentId): Promise<Component | undefined>
  list(tenant: string): Promise<readonly Component[]>
  /** Takes the component from the tenant; its bytes go when no tenant has it. @returns whether it was there. */
  remove(tenant: string, id: ComponentId): Promise<boolean>
  /**
   * Makes sure that what a component was turned into can be loaded. Costs nothing when this process made or checked it.
   * @throws BrainError `environment_not_ready` when it is not there and cannot be made; `overloaded`.
   */
  ensureArtifact(id: ComponentId): Promise<void>
}
