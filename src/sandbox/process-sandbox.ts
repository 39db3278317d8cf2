import type { Limits } from '../contract/limits.ts'
import { loadScripts } from './bundle.ts'
import { FileClient } from './client/file-client.ts'
import { type SandboxLogger, silentLogger } from './client/logger.ts'
import { RunningExecution } from './client/running-execution.ts'
import { SupervisorProcess } from './client/supervisor-process.ts'
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
  readonly logger?: SandboxLogger
}

/**
 * Starts the supervisor and its warm boxes.
 *
 * At level `none` without the operator's `unsafe` every invocation is refused; files still work where they can.
 *
 * @throws BrainError `sandbox_unavailable` when the supervisor does not come up, `internal` when its script is not there
 */
export async function openProcessSandbox(options: ProcessSandboxOptions): Promise<Sandbox> {
  const level = options.level ?? probeLevel()
  const scripts = await loadScripts()
  const refuses = level.name === 'none' && !level.unsafe
  const sandbox = new ProcessSandbox(
    level,
    (events) =>
      new SupervisorProcess(
        {
          setup: {
            limits: refuses ? { ...options.limits, warmBoxes: 0 } : options.limits,
            level,
            dataDirectory: options.dataDirectory,
            isolation: options.isolation ?? 'tool',
          },
          scripts,
          logger: options.logger ?? silentLogger,
        },
        events,
      ),
    options.logger ?? silentLogger,
  )

  await sandbox.open()
  return sandbox
}

type Connect = (events: ConstructorParameters<typeof SupervisorProcess>[1]) => SupervisorProcess

class ProcessSandbox implements Sandbox {
  readonly level: SandboxLevel
  readonly files: WorkspaceFiles
  readonly #files: FileClient
  readonly #logger: SandboxLogger
  readonly #executions = new Map<number, RunningExecution>()
  readonly #questions = new Map<number, (status: SupervisorStatus | undefined) => void>()
  readonly #supervisor: SupervisorProcess
  #next = 0

  constructor(level: SandboxLevel, connect: Connect, logger: SandboxLogger) {
    this.level = level
    this.#logger = logger
    this.#supervisor = connect({
      onFrame: (type, body) => this.#onFrame(type, body),
      onLost: (how) => this.#onLost(how),
    })
    this.#files = new FileClient((bytes) => this.#supervisor.send(bytes))
    this.files = this.#files
  }

  open(): Promise<void> {
    return this.#supervisor.open()
  }

  invoke(invocation: Invocation, services: HostServices): Execution {
    const id = this.#nextId()
    const send = (bytes: Buffer) => this.#supervisor.send(bytes)
    const execution = new RunningExecution({ id, services, send, logger: this.#logger })
    if (this.level.name === 'none' && !this.level.unsafe) {
      execution.finish(notReady(`this machine offers no sandbox: ${this.level.remarks.join('; ')}`))
      return execution
    }
    if (send(callFrame(id, invocation))) this.#executions.set(id, execution)
    else execution.finish(notReady('the supervisor of the boxes is being replaced; try again'))
    return execution
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
    while (this.#executions.has(this.#next))
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
    const execution = this.#executions.get(id)
    if (type === FROM_SUPERVISOR.HOST) return execution?.onHostCall(body)
    this.#executions.delete(id)
    execution?.finishWith(body)
  }

  #onLost(how: string): void {
    const message = `The supervisor of the boxes was lost (${how}): whether the work of the tool was done is not known`
    for (const execution of this.#executions.values()) execution.finish({ type: 'lost', message })
    this.#executions.clear()
    for (const answer of this.#questions.values()) answer(undefined)
    this.#questions.clear()
    this.#files.onLost()
  }
}

const notReady = (reason: string) =>
  ({ type: 'refused', code: 'environment_not_ready', message: `Cannot start the call: ${reason}` }) as const

function callFrame(id: number, invocation: Invocation): Buffer {
  const head = Buffer.allocUnsafe(12)
  head.writeUInt32LE(id, 0)
  head.writeDoubleLE(invocation.deadlineInMs ?? Number.POSITIVE_INFINITY, 4)
  return frame(
    TO_SUPERVISOR.CALL,
    head,
    packCall({
      key: invocation.key,
      owner: invocation.owner,
      component: invocation.component,
      mounts: invocation.mounts,
      secrets: invocation.secrets,
      deadlineAtMs: String(invocation.deadlineAtMs),
      configuration: invocation.configuration,
      input: invocation.input,
    }),
  )
}
