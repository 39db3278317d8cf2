import { resolve } from 'node:path'
import type { Limits } from '../contract/limits.ts'
import { messageOf } from '../kernel/errors.ts'
import type { ComponentId } from '../kernel/ids.ts'
import { loadScripts } from './bundle.ts'
import { FileClient } from './client/file-client.ts'
import { type SandboxLogger, silentLogger } from './client/logger.ts'
import { readDone, RunningExecution } from './client/running-execution.ts'
import { type SupervisorEvents, SupervisorProcess } from './client/supervisor-process.ts'
import { probeLevel } from './level.ts'
import type {
  Execution,
  HostServices,
  Invocation,
  Sandbox,
  SandboxLevel,
  SandboxStatus,
  WorkspaceFiles,
} from './sandbox.ts'
import { frame } from './wire/frames.ts'
import { FROM_SUPERVISOR, packCall, type SupervisorStatus, TO_SUPERVISOR, u32 } from './wire/server-frames.ts'

export type ProcessSandboxOptions = {
  /** Holds `components`, `artifacts` and the workspaces. */
  readonly dataDirectory: string
  readonly limits: Limits
  /** Default: what this machine offers. */
  readonly level?: SandboxLevel
  /** BRAIN_ENV_ISOLATION: `invocation` gives every call a box of its own. Default `tool`. */
  readonly isolation?: 'tool' | 'invocation'
  /**
   * Directories of the user that serve as the workspaces of environments of that name, as they are: nobody else may use
   * them meanwhile, and they stay. Default: none, workspaces are made under the data directory.
   */
  readonly workspaceDirectories?: Readonly<Record<string, string>>
  readonly logger?: SandboxLogger
  /** The supervisor is on its way, and nothing that the caller does now makes it later. */
  readonly onStarted?: () => void
  /**
   * Makes the artifact of a component again, of which the supervisor said that it cannot be read. The call is then tried
   * once more: it had not begun.
   */
  readonly recoverArtifact?: (id: ComponentId) => Promise<void>
}

/**
 * Starts the supervisor and its warm boxes.
 *
 * At level `none` without the operator's `unsafe` every invocation is refused; files still work where they can.
 *
 * @throws BrainError `sandbox_unavailable` when the supervisor does not come up, `internal` when its script is not there
 */
export async function openProcessSandbox(options: ProcessSandboxOptions): Promise<Sandbox> {
  const level = options.level ?? (await probeLevel())
  const refuses = level.name === 'none' && !level.unsafe
  const { dataDirectory, isolation = 'tool', workspaceDirectories = {}, logger = silentLogger } = options
  const limits = refuses ? { ...options.limits, warmBoxes: 0 } : options.limits
  const directories = Object.entries(workspaceDirectories).map(([name, path]) => [name, resolve(path)] as const)
  const setup = {
    limits,
    level,
    isolation,
    // The supervisor does not stand where this process stands.
    dataDirectory: resolve(dataDirectory),
    workspaceDirectories: Object.fromEntries(directories),
  }
  const scripts = await loadScripts()
  const sandbox = new ProcessSandbox((events) => new SupervisorProcess({ setup, scripts, logger }, events), {
    level,
    logger,
    recoverArtifact: options.recoverArtifact,
  })
  const opening = sandbox.open()
  options.onStarted?.()
  await opening
  return sandbox
}

type Connect = (events: SupervisorEvents) => SupervisorProcess
type Surroundings = {
  readonly level: SandboxLevel
  readonly logger: SandboxLogger
  readonly recoverArtifact: ProcessSandboxOptions['recoverArtifact']
}
/** An invocation that has not ended. */
type Open = {
  readonly invocation: Invocation
  readonly execution: RunningExecution
  readonly sentAt: number
  readonly recovered: boolean
}

class ProcessSandbox implements Sandbox {
  readonly files: WorkspaceFiles
  readonly #surroundings: Surroundings
  readonly #files: FileClient
  readonly #open = new Map<number, Open>()
  readonly #questions = new Map<number, (status: SupervisorStatus | undefined) => void>()
  readonly #supervisor: SupervisorProcess
  #next = 0

  constructor(connect: Connect, surroundings: Surroundings) {
    this.#surroundings = surroundings
    this.#supervisor = connect({
      onFrame: (type, body) => this.#onFrame(type, body),
      onLost: (how) => this.#onLost(how),
    })
    this.#files = new FileClient((bytes) => this.#supervisor.send(bytes))
    this.files = this.#files
  }

  get level(): SandboxLevel {
    return this.#surroundings.level
  }

  open(): Promise<void> {
    return this.#supervisor.open()
  }

  invoke(invocation: Invocation, services: HostServices): Execution {
    const id = this.#nextId()
    const send = (bytes: Buffer) => this.#supervisor.send(bytes)
    const execution = new RunningExecution({ id, services, send, logger: this.#surroundings.logger })
    const { name, unsafe, remarks } = this.level
    if (name === 'none' && !unsafe)
      execution.finish(notReady(`this machine offers no sandbox level (${remarks.join('; ')})`))
    else this.#send(id, { invocation, execution, sentAt: performance.now(), recovered: false })
    return execution
  }

  #send(id: number, open: Open): void {
    if (this.#supervisor.send(callFrame(id, open.invocation, performance.now() - open.sentAt))) this.#open.set(id, open)
    else open.execution.finish(notReady('the supervisor of the boxes is being replaced; try again'))
  }

  async status(): Promise<SandboxStatus> {
    const id = this.#nextId()
    const status = await new Promise<SupervisorStatus | undefined>((resolve) => {
      if (this.#supervisor.send(frame(TO_SUPERVISOR.STATUS, u32(id)))) this.#questions.set(id, resolve)
      else resolve(undefined)
    })
    const { pid } = this.#supervisor
    return {
      level: this.level,
      supervisor: status === undefined || pid === undefined ? undefined : { pid, rssBytes: status.rssBytes },
      boxes: status?.boxes ?? [],
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#supervisor.close()
    this.#onLost('the sandbox is closed')
  }

  #nextId(): number {
    do this.#next = (this.#next + 1) >>> 0
    while (this.#open.has(this.#next))
    return this.#next
  }

  #onFrame(type: number, body: Buffer): void {
    if (type === FROM_SUPERVISOR.FILE) return this.#files.onAnswer(body)
    const id = body.readUInt32LE(0)
    if (type === FROM_SUPERVISOR.STATUS) {
      this.#questions.get(id)?.(JSON.parse(body.toString('utf8', 4)) as SupervisorStatus)
      this.#questions.delete(id)
      return
    }
    const open = this.#open.get(id)
    if (open === undefined) return
    if (type === FROM_SUPERVISOR.HOST) return open.execution.onHostCall(body)
    this.#open.delete(id)
    const { end, facts, unloadable } = readDone(body)
    const { recoverArtifact } = this.#surroundings
    if (!unloadable || open.recovered || recoverArtifact === undefined) return open.execution.finish(end, facts)
    recoverArtifact(open.invocation.component).then(
      () => this.#sendAgain(id, open),
      (error: unknown) => open.execution.finish(notReady(messageOf(error))),
    )
  }

  #sendAgain(id: number, open: Open): void {
    const { stopped } = open.execution
    if (stopped === undefined) this.#send(id, { ...open, recovered: true })
    else open.execution.finish({ type: 'stopped', reason: stopped })
  }

  #onLost(how: string): void {
    const message = `The supervisor of the boxes was lost (${how}): whether the work was done is not known`
    for (const { execution } of this.#open.values()) execution.finish({ type: 'lost', message })
    this.#open.clear()
    for (const answer of this.#questions.values()) answer(undefined)
    this.#questions.clear()
    this.#files.onLost()
  }
}

const notReady = (reason: string) =>
  ({ type: 'refused', code: 'environment_not_ready', message: `Cannot start the call: ${reason}` }) as const

/** @param waitedMs since the call was made: its deadline counts from there. */
function callFrame(id: number, invocation: Invocation, waitedMs: number): Buffer {
  const head = Buffer.allocUnsafe(12)
  head.writeUInt32LE(id, 0)
  head.writeDoubleLE((invocation.deadlineInMs ?? Number.POSITIVE_INFINITY) - waitedMs, 4)
  return frame(
    TO_SUPERVISOR.CALL,
    head,
    packCall({
      key: invocation.key,
      owner: invocation.owner,
      component: invocation.component,
      mounts: invocation.mounts,
      secrets: invocation.secrets,
      network: invocation.network,
      entry: invocation.entry,
    }),
  )
}
