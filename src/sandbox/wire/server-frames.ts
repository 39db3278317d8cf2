// Between server and supervisor, which trust each other. A call is named by a u32 of the server's choice; the guest's
// words are handed on as bytes.
import type { Limits } from '../../contract/limits.ts'
import type { AgentloopEntry, ComponentRole, Mount, SandboxLevel, SandboxStatus, ToolEntry } from '../sandbox.ts'
import { packEntry } from './entries.ts'
import { packTexts, unpackBytes } from './texts.ts'

/** Server → supervisor. */
export const TO_SUPERVISOR = {
  /** First and once: texts [Setup as JSON, launcher, box runtime]. */
  SETUP: 1,
  /** A call: u32 id, f64 ms until its deadline (Infinity = none), then texts (see `CallTexts`). */
  CALL: 2,
  /** u32 id, u8 index in STOP_REASONS. */
  STOP: 3,
  /** u32 id, then what the box gets: u8 REPLY_OK or REPLY_ERROR, text. */
  HOST_REPLY: 4,
  /** u32 id. */
  STATUS: 5,
  /** An operation on a workspace: u32 id, u8 index in FILE_STEPS, u32 stream, then its bytes. */
  FILE: 6,
} as const

/** Supervisor → server. */
export const FROM_SUPERVISOR = {
  READY: 10,
  /** u32 id, then as the box sent it: u8 index in HOST_METHODS, texts. */
  HOST: 11,
  /** u32 id, DoneHead, then texts [first, second, stdout, stderr]. */
  DONE: 12,
  /** u32 id, SupervisorStatus as JSON. */
  STATUS: 13,
  /** u32 id, u8 0, bytes; or u8 1, `code` LF `message`. */
  FILE: 14,
} as const

export type Setup = {
  readonly limits: Limits
  readonly level: SandboxLevel
  readonly dataDirectory: string
  /** BRAIN_ENV_ISOLATION: `invocation` ends a box after one call. */
  readonly isolation: 'tool' | 'invocation'
  /** Directories that serve as the workspaces of environments of that name, in every session. */
  readonly workspaceDirectories: Readonly<Record<string, string>>
}

export type SupervisorStatus = Pick<SandboxStatus, 'boxes'> & {
  readonly rssBytes: number
  readonly waiting: number
  readonly running: number
}

export const STOP_REASONS = ['timeout', 'cancelled'] as const

/** One texts list of a call. */
export type CallTexts = {
  readonly key: string
  readonly owner: string
  readonly component: string
  readonly mounts: readonly Mount[]
  readonly secrets: Readonly<Record<string, string>>
  readonly network: readonly string[]
  readonly entry: ToolEntry | AgentloopEntry
}

const NOTHING = '{}'

export const packCall = (call: CallTexts): Buffer =>
  packTexts([
    call.key,
    call.owner,
    call.entry.role,
    call.component,
    call.mounts.length === 0 ? '' : JSON.stringify(call.mounts),
    JSON.stringify(call.secrets) === NOTHING ? '' : JSON.stringify(call.secrets),
    call.network.join('\n'),
    ...packEntry(call.entry),
  ])

/** A call as the supervisor reads it: what goes to the guest stays bytes. */
export type ReceivedCall = Omit<CallTexts, 'entry'> & {
  readonly role: ComponentRole
  readonly guestTexts: readonly Buffer[]
}

const EMPTY = Buffer.alloc(0)

export function unpackCall(body: Buffer, start: number): ReceivedCall {
  const texts = unpackBytes(body, start).map((text) => text ?? EMPTY)
  const [key = EMPTY, owner = EMPTY, role = EMPTY, component = EMPTY, ...more] = texts
  const [mounts = EMPTY, secrets = EMPTY, network = EMPTY, ...guestTexts] = more
  return {
    key: key.toString('utf8'),
    owner: owner.toString('utf8'),
    role: role.toString('latin1') === 'agentloop' ? 'agentloop' : 'tool',
    component: component.toString('latin1'),
    mounts: mounts.length === 0 ? [] : (JSON.parse(mounts.toString('utf8')) as Mount[]),
    secrets: secrets.length === 0 ? {} : (JSON.parse(secrets.toString('utf8')) as Record<string, string>),
    network: network.length === 0 ? [] : network.toString('utf8').split('\n'),
    guestTexts,
  }
}

/** Ends of an invocation by number; the texts that belong to them are [first, second]. */
export const ENDS = [
  'returned',
  'failed',
  'failedRetryable',
  'trapped',
  'refused',
  'unloadable',
  'stopped',
  'lost',
] as const

/** u8 end, f64 run ms, f64 CPU ms, u32 file operations, u32 host calls. */
export type DoneHead = {
  readonly end: number
  readonly runMs: number
  readonly cpuMs: number
  readonly fileOps: number
  readonly hostCalls: number
}

const DONE_BYTES = 25

export function packDone(id: number, head: DoneHead): Buffer {
  const out = Buffer.allocUnsafe(4 + DONE_BYTES)
  out.writeUInt32LE(id, 0)
  out[4] = head.end
  out.writeDoubleLE(head.runMs, 5)
  out.writeDoubleLE(head.cpuMs, 13)
  out.writeUInt32LE(head.fileOps, 21)
  out.writeUInt32LE(head.hostCalls, 25)
  return out
}

export function unpackDone(body: Buffer): DoneHead & { readonly texts: readonly (Buffer | undefined)[] } {
  return {
    end: body[4] ?? 0,
    runMs: body.readDoubleLE(5),
    cpuMs: body.readDoubleLE(13),
    fileOps: body.readUInt32LE(21),
    hostCalls: body.readUInt32LE(25),
    texts: unpackBytes(body, 4 + DONE_BYTES),
  }
}

/** Steps of an operation on a workspace. Bodies are never longer than 1 MiB: a stream is asked for piece by piece. */
export const FILE_STEPS = [
  /** JSON {workspace, prefix, after, limit} → JSON FileEntry[] */
  'list',
  /** JSON {workspace, path} → u32 stream, f64 size */
  'openRead',
  /** stream → bytes; none at the end, which closes it */
  'read',
  /** JSON {workspace, path} → u32 stream */
  'openWrite',
  /** stream, bytes → nothing */
  'write',
  /** stream → f64 size */
  'commit',
  /** stream → nothing; forgets it, and what was written */
  'abandon',
  /** JSON {workspace, path} → nothing */
  'remove',
  /** JSON {workspace} → nothing */
  'destroy',
] as const
export type FileStep = (typeof FILE_STEPS)[number]

export const u32 = (value: number): Buffer => {
  const out = Buffer.allocUnsafe(4)
  out.writeUInt32LE(value)
  return out
}
